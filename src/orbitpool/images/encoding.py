"""Dense encoding: features of every patch of an image, averaged over the cells of a grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod
from typing import Any

import torch
from torch import Tensor

from orbitpool.encoders import Encoder, fold
from orbitpool.images.patches import as_floats, dense_patches, places
from orbitpool.images.whitening import normalize_contrast
from orbitpool.kernels import cells
from orbitpool.kernels.matrices import multiply
from orbitpool.kernels.products import dense_room, fused, shortened
from orbitpool.learners.checks import finite

CellSums = Callable[[Tensor, Tensor], Tensor]  # images (N, H, W, C) and the cells of their P patches to (N, cells, F)
FEWEST = 64  # patches that an image is filled up to where there are kernels
MOST = 65_535  # images that a GPU takes at a time
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

    def parts(self, images: Tensor) -> tuple[int, int]:
        """In how many parts to encode these images, and how many parts side by side."""
        least, (_, patches, threads) = FEWEST if self.mean.device.type == "cuda" else 1, self._sums
        threads = threads if len(images) >= threads else 1  # which then has all cores
        some = min(MOST, max(1, patches // max(least, prod(places(images, self.patch, self.stride)))))
        return min(len(images), threads * ceil(len(images) / (some * threads))), threads

    def means(self, images: Tensor) -> Tensor:
        """Means over the cells of the grid, (N, grid * grid * F), some rows of patches at a time."""
        floats, (rows, columns) = as_floats(images, self.mean.device), places(images, self.patch, self.stride)
        floats = floats.to(self.mean.dtype)  # a list may hold images of other types
        finite(floats)
        (encode, budget, _), across, down = self._sums, self._cells(columns), self._cells(rows)
        total: Any = 0
        for some in torch.split(torch.arange(rows), max(1, budget // (len(images) * columns))):
            top, bottom = int(some[0]) * self.stride, int(some[-1]) * self.stride + self.patch[0]
            cell = (down[some][:, None] * self.grid + across).flatten()
            total = total + encode(floats[:, top:bottom], cell)
        sizes = torch.outer(torch.bincount(down), torch.bincount(across)).flatten()
        means: Tensor = total / sizes.to(total)[:, None]
        return means.flatten(1)

    def _cells(self, places: int) -> Tensor:
        """The cell along one side that each place belongs to, (places,); the first cells are the larger."""
        sizes = [len(part) for part in torch.arange(places).tensor_split(self.grid)]
        return torch.repeat_interleave(torch.arange(self.grid), torch.tensor(sizes))

    @cached_property
    def _sums(self) -> tuple[CellSums, int, int]:
        """What turns images and the cells of their patches into sums of features; patches at a time; threads."""
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

        return sums, BUDGET // (4 * max(len(mean), self.width)), 1

    def _on_gpu(self, encoder: Encoder) -> tuple[CellSums, int, int]:
        from orbitpool.kernels import dense

        where: Any = self.patch, self.stride, self.contrast, self.mean
        t, options = self._templates(encoder, self.P), self._options(encoder)

        def sums(images: Tensor, cell: Tensor) -> Tensor:
            x = dense.normalized_patches(images, *where)
            return dense.encode_cells(x, t, encoder.bias, cell, self.grid**2, *options)

        return sums, 16 * BUDGET // (2 * len(self.mean)), 1

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

        return sums, cells.PATCHES, torch.get_num_threads()

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
