"""Dense encoding: features of every patch of an image, averaged over the cells of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod
from typing import Any

import torch
from torch import Tensor

from orbitpool.encoders import Encoder, fold
from orbitpool.images.patches import Groups, as_floats, dense_patches, places
from orbitpool.images.whitening import normalize_contrast
from orbitpool.kernels import cells
from orbitpool.kernels.matrices import multiply
from orbitpool.kernels.products import dense_room, fused, shortened
from orbitpool.learners.checks import finite

CellSums = Callable[[Tensor, Tensor], Tensor]  # images (N, H, W, C) and the cells of their P patches to (N, cells, F)
FEWEST = 64  # patches that an image is filled up to where there are kernels
MOST = 65_535  # images that a GPU takes at a time
ENOUGH = 2**31  # multiplications that are worth the start of threads
BUDGET = 128 * 2**20  # bytes of patches, or of their features, at a time


@dataclass(frozen=True)
class Dense:
    """What encodes images on a device: an encoder of whitened patches, and where patches are."""

    encoder: Any
    mean: Tensor  # (D,) of normalised patches; its device and type are those of the work
    P: Tensor | None  # (D, D) what whitens them
    patch: tuple[int, int]
    stride: int
    grid: int
    contrast: float | None
    keep: bool  # poses apart
    alone: bool  # there is but one pose
    precision: str
    width: int  # features of a patch

    def units(self, images: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Which of these images, and which rows of their patches, to encode at a time."""
        (rows, columns), (_, patches, apart) = places(images, self.patch, self.stride), self._sums
        least, threads = FEWEST if self.mean.device.type == "cuda" else 1, torch.get_num_threads() if apart else 1
        parts = ceil(len(images) / min(MOST, max(1, patches // max(least, rows * columns))))
        for part in torch.arange(len(images)).tensor_split(min(len(images), threads * ceil(parts / threads))):
            for some in torch.split(torch.arange(rows), max(1, patches // (len(part) * columns))):
                yield slice(int(part[0]), int(part[-1]) + 1), some

    def threads(self, groups: Groups) -> int:
        """In how many threads to encode these images."""
        patches = sum(len(images) * prod(places(images, self.patch, self.stride)) for _, images in groups)
        return torch.get_num_threads() if patches * self._sums[2] >= ENOUGH else 1

    def means(self, images: Tensor, some: Tensor) -> Tensor:
        """What some rows of patches have in the means over the cells of the grid, (N, grid * grid * F)."""
        rows, columns = places(images, self.patch, self.stride)
        across, down = self._cells(columns), self._cells(rows)
        top, bottom = int(some[0]) * self.stride, int(some[-1]) * self.stride + self.patch[0]
        floats = as_floats(images[:, top:bottom], self.mean.device).to(self.mean.dtype)  # a list may hold other types
        finite(floats)
        total = self._sums[0](floats, (down[some][:, None] * self.grid + across).flatten())
        sizes = torch.outer(torch.bincount(down), torch.bincount(across)).flatten()
        return (total / sizes.to(total)[:, None]).flatten(1)

    def _cells(self, places: int) -> Tensor:
        """The cell along one side that each place belongs to, (places,); the first cells are the larger."""
        sizes = [len(part) for part in torch.arange(places).tensor_split(self.grid)]
        return torch.repeat_interleave(torch.arange(self.grid), torch.tensor(sizes))

    @cached_property
    def _sums(self) -> tuple[CellSums, int, int]:
        """What turns images and the cells of their patches into sums of features; how many patches it takes at a time.

        And the multiplications for a patch, if pieces of this work may be done side by side, or 0.
        """
        mean, encoder, n_cells = self.mean, self.encoder, self.grid**2
        if isinstance(encoder, Encoder) and (not self.keep or encoder.how == "max"):
            if mean.device.type == "cpu":
                return self._on_cpu(encoder)
            if self.precision != "full" and fused(mean) and dense_room(len(mean), n_cells):
                return self._on_gpu(encoder)
        features = encoder.apart(self.P) if self.keep and not self.alone else encoder.folded(self.P)

        def sums(images: Tensor, cell: Tensor) -> Tensor:
            z: Tensor = features(self._patches(images).flatten(0, 1)).view(len(images), len(cell), -1)
            return (torch.arange(n_cells)[:, None] == cell).to(mean) @ z

        return sums, BUDGET // (4 * max(len(mean), self.width)), 0

    def _on_gpu(self, encoder: Encoder) -> tuple[CellSums, int, int]:
        from orbitpool.kernels import dense

        where: Any = self.patch, self.stride, self.contrast, self.mean
        t, options = self._templates(encoder, self.P), self._options(encoder)

        def sums(images: Tensor, cell: Tensor) -> Tensor:
            x = dense.normalized_patches(images, *where)
            return dense.encode_cells(x, t, encoder.bias, cell, self.grid**2, *options)

        return sums, 16 * BUDGET // (2 * len(self.mean)), 0

    def _on_cpu(self, encoder: Encoder) -> tuple[CellSums, int, int]:
        P, t, options = self.P, self._templates(encoder, None), self._options(encoder)
        poses = cells.by_pose(shortened(t, self.precision))
        if P is not None and P.numel() + sum(posed.numel() for _, posed in poses) >= t.numel():
            # whitening patches would save nothing
            poses, P = cells.by_pose(shortened(fold(t, P), self.precision)), None

        def sums(images: Tensor, cell: Tensor) -> Tensor:
            x = self._patches(images)
            x = x if P is None else multiply(P, x.flatten(0, 1).T).T.view(x.shape)
            return cells.encode_cells(x, poses, encoder.bias, cell, self.grid**2, *options)

        return sums, cells.PATCHES, sum(posed.numel() for _, posed in poses)

    def _templates(self, encoder: Encoder, P: Tensor | None) -> Tensor:
        """Of P v, (K, S, D); where poses are kept each is a filter of its own, (S K, 1, D), and so is each side."""
        t = encoder.templates(P)
        if not self.keep:
            return t
        sides = torch.cat([t, -t]) if encoder.two_sided else t
        return sides.transpose(0, 1).flatten(0, 1)[:, None]

    def _options(self, encoder: Encoder) -> tuple[str, float, bool]:
        return encoder.how, encoder.alpha, encoder.two_sided and not self.keep

    def _patches(self, images: Tensor) -> Tensor:
        """Every patch, normalised and less the mean, (N, P, D)."""
        x = dense_patches(images, self.patch, self.stride).reshape(-1, len(self.mean))
        x = x if self.contrast is None else normalize_contrast(x, self.contrast)
        return (x - self.mean).view(len(images), -1, len(self.mean))
