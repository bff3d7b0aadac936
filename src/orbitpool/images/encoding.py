"""Dense encoding: features of every patch of an image, averaged over the cells of a grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import torch
from torch import Tensor

from orbitpool.encoders import Encoder
from orbitpool.images.patches import as_floats, dense_patches, places
from orbitpool.images.whitening import normalize_contrast
from orbitpool.kernels import cells
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

    def at_once(self, images: Tensor) -> int:
        """How many of these images to encode at a time."""
        least = FEWEST if self.mean.device.type == "cuda" else 1
        return min(MOST, max(1, self._sums[1] // max(least, prod(places(images, self.patch, self.stride)))))

    def means(self, images: Tensor) -> Tensor:
        """Means over the cells of the grid, (N, grid * grid * F), some rows of patches at a time."""
        floats, (rows, columns) = as_floats(images, self.mean.device), places(images, self.patch, self.stride)
        floats = floats.to(self.mean.dtype)  # a list may hold images of other types
        finite(floats)
        (encode, budget), across, down = self._sums, self._cells(columns), self._cells(rows)
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
    def _sums(self) -> tuple[CellSums, int]:
        """What turns images and the cells of their patches into sums of features, and how many patches at a time."""
        mean, encoder, n_cells = self.mean, self.encoder, self.grid**2
        rounded = self.precision != "full" and fused(mean) and dense_room(len(mean), n_cells)
        whole = not self.keep or getattr(encoder, "how", None) == "max"
        if isinstance(encoder, Encoder) and whole and (rounded or mean.device.type == "cpu"):
            return self._by_kernels(encoder, rounded)
        features = encoder.apart(self.P) if self.keep and not self.alone else encoder.folded(self.P)

        def sums(images: Tensor, cell: Tensor) -> Tensor:
            z: Tensor = features(self._patches(images).flatten(0, 1)).view(len(images), len(cell), -1)
            return (torch.arange(n_cells)[:, None] == cell).to(mean) @ z

        return sums, BUDGET // (4 * max(len(mean), self.width))

    def _by_kernels(self, encoder: Encoder, rounded: bool) -> tuple[CellSums, int]:
        encode: Any = cells.encode_cells
        look, budget, n_cells = self._patches, cells.PATCHES, self.grid**2
        if rounded:
            from orbitpool.kernels import dense

            where: Any = self.patch, self.stride, self.contrast, self.mean
            encode, look = dense.encode_cells, lambda images: dense.normalized_patches(images, *where)
            budget = 16 * BUDGET // (2 * len(self.mean))
        t, how = encoder.templates(self.P), (encoder.how, encoder.alpha, encoder.two_sided)
        t = t if rounded else shortened(t, self.precision)
        if self.keep:
            t, how = _each_pose(t, encoder.two_sided), (encoder.how, encoder.alpha, False)
        return lambda images, cell: encode(look(images), t, encoder.bias, cell, n_cells, *how), budget

    def _patches(self, images: Tensor) -> Tensor:
        """Every patch, normalised and less the mean, (N, P, D)."""
        x = dense_patches(images, self.patch, self.stride).reshape(-1, len(self.mean))
        x = x if self.contrast is None else normalize_contrast(x, self.contrast)
        return (x - self.mean).view(len(images), -1, len(self.mean))


def _each_pose(templates: Tensor, two_sided: bool) -> Tensor:
    """Filters in poses, (K, S, D), as filters of one pose, (S K, 1, D), or (2 S K, 1, D) with both sides of a pose."""
    sides = torch.cat([templates, -templates]) if two_sided else templates
    return sides.transpose(0, 1).flatten(0, 1)[:, None]
