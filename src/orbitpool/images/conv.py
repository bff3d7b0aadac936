"""ConvFeatures: a learner on patches, applied at every place of an image and averaged on a grid (section 5.3)."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from math import ceil, prod
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from orbitpool.discovery import Discovery, auto
from orbitpool.encoders import Encoder
from orbitpool.images.module import ConvModule
from orbitpool.images.patches import (
    Groups,
    as_floats,
    by_size,
    check_channels,
    check_grid,
    dense_patches,
    own_images,
    places,
    random_patches,
)
from orbitpool.images.whitening import CONTRAST, FLOOR, normalize_contrast, whitening
from orbitpool.kernels import cells, choose_device
from orbitpool.kernels.products import dense_room, fused
from orbitpool.learners import Learner, finding
from orbitpool.learners.around import AroundLearner
from orbitpool.learners.checks import at_least, finite, one_of, whole
from orbitpool.learners.training import seed_of
from orbitpool.modules import export_onnx

CellSums = Callable[[Tensor, Tensor], Tensor]  # images (N, H, W, C) and the cells of their P patches to (N, cells, F)
FEWEST = 64  # patches that an image is filled up to where there are kernels
MOST = 65_535  # images that a GPU takes at a time
BUDGET = 128 * 2**20  # bytes of patches, or of their features, at a time
PATCH = 8  # pixels a side, where neither transformations nor anybody else says so


class ConvFeatures(AroundLearner):
    """Features of whole images from a learner of patches.

    `fit` normalises and whitens random patches and fits a clone of the learner to them. `transform` encodes every
    patch at a stride and averages over the cells of a grid. Whitening is folded into the filters, so that dense
    encoding is one product on normalised patches.

    Parameters
    ----------
    learner : Learner
        A TIRBM, TIAutoencoder or TIOMP; its transformations say how large patches are. With `transforms="auto"` they
        are found on whole images, which show what patches do not: which way is up. Only turns and sizes are: pooling
        makes up for shifts, and a mirrored patch is another one.
    patch_size : int or (int, int), optional
        Needed only if the learner has no transformations; 8 if they are to be found.
    n_patches : int
        Random patches to learn from.
    stride : int
        Pixels between neighbouring patches.
    grid : int
        Cells along each side; 2 gives quadrants.
    mirror : bool
        Average the features of an image with those of its mirror image, so that both have the same.
    poses : {"pool", "keep"}
        Whether a filter has one feature, or one for each of its poses, filters last: what a layer above needs to be
        invariant to what turns the whole image (`transforms.turned_maps`).
    output : {"flat", "map"}
        Rows of features, or maps of them, (N, grid, grid, features of a patch), which are images to a layer above.
    contrast : float or None
        Added to a patch's variance before it is divided by its standard deviation; None leaves patches as they are.
    whiten : float or None
        Added to the eigenvalues of the covariance; None does not whiten.
    precision : {"auto", "full"}
        Of dense encoding. "auto" multiplies bfloat16 numbers on a GPU, whose features differ by some 1e-3; else full.
    device : str
        "auto" takes a tensor's own device, else a GPU if there is one.
    random_state : int, RandomState or None
        For the choice of patches, and for the learner if it has none of its own.

    Attributes
    ----------
    learner_ : Learner
        The fitted clone.
    mean_, whitening_ : array (D,), (D, D)
        Mean of the normalised patches, and what whitens them: zeros and (0, 0) where nothing does.
    """

    FITTED: ClassVar = ("mean_", "whitening_", "image_shape_")
    learner: Learner
    learner_: Learner

    def __init__(
        self,
        learner: Learner,
        *,
        patch_size: int | tuple[int, int] | None = None,
        n_patches: int = 400_000,
        stride: int = 1,
        grid: int = 2,
        mirror: bool = False,
        poses: Literal["pool", "keep"] = "pool",
        output: Literal["flat", "map"] = "flat",
        contrast: float | None = CONTRAST,
        whiten: float | None = FLOOR,
        precision: Literal["auto", "full"] = "auto",
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.patch_size = patch_size
        self.n_patches = n_patches
        self.stride = stride
        self.grid = grid
        self.mirror = mirror
        self.poses = poses
        self.output = output
        self.contrast = contrast
        self.whiten = whiten
        self.precision = precision
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn filters from random patches of images (N, H, W) or (N, H, W, C).

        Parameters
        ----------
        X : array or tensor of images, or a list of images (H, W[, C]) of any sizes; bytes count as 0-1
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        groups, device = by_size(X), choose_device(self.device, X)
        self._check_images(groups, groups[0][1].shape[3])
        seed = seed_of(self.random_state)
        patches = self._normalize(self._some_patches(groups, torch.Generator().manual_seed(seed), device))
        finite(patches)
        mean, P = self._whitening(patches)
        patches = (patches - mean) @ P if P.numel() else patches
        learner = clone(self.learner)
        if learner.random_state is None:
            learner.set_params(random_state=seed)
        learner.set_params(device=str(device))
        find = partial(self._discover, groups, seed, device)
        self.learner_ = learner._fit_found(patches, find) if self._is_auto else learner.fit(patches)
        self.mean_, self.whitening_ = mean.cpu().numpy(), P.cpu().numpy()
        self.image_shape_ = np.array(groups[0][1].shape[1:])
        self.n_features_in_ = prod(groups[0][1].shape[1:])
        return self

    def _discover(self, groups: Groups, seed: int, device: torch.device) -> Discovery:
        """Which transformations the images have, judged on thumbnails; of small ones if others are few."""
        sides = sorted((min(images.shape[1:3]) for _, images in groups for _ in range(len(images))), reverse=True)
        side = min(auto.THUMBNAIL, sides[min(len(sides), auto.FEWEST) - 1])
        large = [images for _, images in groups if min(images.shape[1:3]) >= side]
        share = min(1.0, auto.MOST / sum(map(len, large)))
        generator, small = torch.Generator().manual_seed(seed), []
        for images in large:
            some = torch.randperm(len(images), generator=generator)[: ceil(share * len(images))]
            seen = auto.looked_at(images, some, side, device)
            small.append(seen / 255 if images.dtype == torch.uint8 else seen)
        return finding.told(auto.judge(torch.cat(small), self._patch, seed), self.learner.verbose)

    def _some_patches(self, groups: Groups, generator: torch.Generator, device: torch.device) -> Tensor:
        """Random patches as floats, (n_patches, D): of each size as large a share as its images have."""
        ends = torch.tensor([len(images) for _, images in groups]).cumsum(0)
        counts = (ends * self.n_patches).div(ends[-1], rounding_mode="floor").diff(prepend=torch.tensor([0]))
        some = [
            random_patches(images, int(count), self._patch, generator)
            for (_, images), count in zip(groups, counts, strict=True)
        ]
        return torch.cat([as_floats(patches, device).flatten(1) for patches in some])

    @torch.no_grad()
    def transform(self, X: Any) -> Any:
        """Features averaged on the grid, (N, grid * grid * features of a patch), cell by cell, row by row, or a map."""
        check_is_fitted(self)
        groups, device = by_size(X), choose_device(self.device, X)
        self._check_images(groups, int(self.image_shape_[2]))
        home = X.device if isinstance(X, Tensor) else torch.device("cpu")
        dtype = torch.float64 if groups[0][1].dtype == torch.float64 else torch.float32
        encode, budget = self._encoder(device, dtype)
        features = torch.empty(sum(len(at) for at, _ in groups), self._n_features_out, dtype=dtype, device=home)
        own, order, share = own_images(groups)
        for all_at, images in own:
            least = FEWEST if device.type == "cuda" else 1
            some = min(MOST, max(1, budget // max(least, prod(self._places(images)))))
            for at, part in zip(torch.split(all_at, some), torch.split(images, some), strict=True):
                seen = [part, part.flip(2)] if self.mirror else [part]
                features[at.to(home)] = sum(self._pooled(encode, budget, p, device).to(home) for p in seen) / len(seen)
        if not share.whole:
            order = order.to(home)
            features[order] = share.gather(features[order[share.own]])
        if self.output == "map":
            features = features.view(len(features), self.grid, self.grid, -1)
        return features if isinstance(X, Tensor) else features.numpy()

    def to_module(self) -> ConvModule:
        """`transform` as a float32 layer of a network, images to (N, n_features_out), which can be trained there."""
        check_is_fitted(self)
        if not isinstance(self.learner_, Learner):
            raise ValueError(f"learner is {self.learner!r}; a module can be made of a TIRBM, TIAutoencoder or TIOMP")
        if (self.poses, self.output) != ("pool", "flat"):
            raise ValueError(f"poses is {self.poses!r} and output {self.output!r}; a module pools, and gives rows")
        mean, P = (torch.tensor(a, dtype=torch.float32) for a in (self.mean_, self.whitening_))
        P = P if P.numel() else torch.eye(len(mean))
        where: Any = {"patch": self._patch, "stride": self.stride, "grid": self.grid, "mirror": self.mirror}
        return ConvModule(self.learner_.to_module(), mean, P, contrast=self.contrast, **where)

    def export_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write `transform` as an ONNX file, `input` (N, H, W, C) to `output` (N, n_features_out), both float32.

        Height and width are those of the images that were learned from; bytes must be divided by 255 first.
        """
        export_onnx(self.to_module(), torch.zeros(1, *map(int, self.image_shape_)), path)

    def _encoder(self, device: torch.device, dtype: torch.dtype) -> tuple[CellSums, int]:
        """What turns images and the cells of their patches into sums of features, and how many patches at a time."""
        mean, matrix = (torch.from_numpy(a).to(device, dtype) for a in (self.mean_, self.whitening_))
        P = matrix if matrix.numel() else None
        encoder, n_cells = self.learner_.encoder(device, dtype), self.grid**2

        def patches(images: Tensor) -> Tensor:
            x = dense_patches(images, self._patch, self.stride).reshape(-1, len(mean))
            return (self._normalize(x) - mean).view(len(images), -1, len(mean))

        rounded = self.precision == "auto" and fused(mean) and dense_room(len(mean), n_cells)
        whole = self.poses == "pool" or getattr(encoder, "how", None) == "max"
        if isinstance(encoder, Encoder) and whole and (rounded or device.type == "cpu"):
            encode, look, budget = cells.encode_cells, patches, cells.PATCHES
            if rounded:
                from orbitpool.kernels import dense

                where: Any = self._patch, self.stride, self.contrast, mean
                encode, look = dense.encode_cells, lambda images: dense.normalized_patches(images, *where)
                budget = 16 * BUDGET // (2 * len(mean))
            t, how = encoder.templates(P), (encoder.how, encoder.alpha, encoder.two_sided)
            if self.poses == "keep":
                t, how = _each_pose(t, encoder.two_sided), (encoder.how, encoder.alpha, False)
            return lambda images, cell: encode(look(images), t, encoder.bias, cell, n_cells, *how), budget
        together = self.poses == "pool" or self.learner.transforms is None
        features = encoder.folded(P) if together else encoder.apart(P)

        def sums(images: Tensor, cell: Tensor) -> Tensor:
            z: Tensor = features(patches(images).flatten(0, 1)).view(len(images), len(cell), -1)
            return (torch.arange(n_cells)[:, None] == cell).to(device, dtype) @ z

        return sums, BUDGET // (4 * max(len(mean), self._width))

    def _pooled(self, encode: CellSums, budget: int, images: Tensor, device: torch.device) -> Tensor:
        """Means over the cells of the grid, (N, grid * grid * F), some rows of patches at a time."""
        floats, (rows, columns) = as_floats(images, device), self._places(images)
        finite(floats)
        across, down = self._cells(columns), self._cells(rows)
        total: Any = 0
        for some in torch.split(torch.arange(rows), max(1, budget // (len(images) * columns))):
            top, bottom = int(some[0]) * self.stride, int(some[-1]) * self.stride + self._patch[0]
            cell = (down[some][:, None] * self.grid + across).flatten()
            total = total + encode(floats[:, top:bottom], cell)
        sizes = torch.outer(torch.bincount(down), torch.bincount(across)).flatten()
        means: Tensor = total / sizes.to(total)[:, None]
        return means.flatten(1)

    def _cells(self, places: int) -> Tensor:
        """The cell along one side that each place belongs to, (places,); the first cells are the larger."""
        sizes = [len(part) for part in torch.arange(places).tensor_split(self.grid)]
        return torch.repeat_interleave(torch.arange(self.grid), torch.tensor(sizes))

    @property
    def _is_auto(self) -> bool:
        return finding.is_auto(self.learner.transforms)

    @property
    def _patch(self) -> tuple[int, int]:
        if self.learner.transforms is not None and not self._is_auto:
            rows, columns, *_ = self.learner.transforms.field_shape
            return rows, columns
        size = PATCH if self.patch_size is None else self.patch_size
        return (size, size) if isinstance(size, int) else size

    def _check(self) -> None:
        if not hasattr(self.learner, "encoder"):
            raise ValueError(f"learner is {self.learner!r}; give a TIRBM, TIAutoencoder or TIOMP")
        for name in ("n_patches", "stride", "grid"):
            whole(name, getattr(self, name))
        one_of("precision", self.precision, ("auto", "full"))
        one_of("poses", self.poses, ("pool", "keep"))
        one_of("output", self.output, ("flat", "map"))
        for name in ("contrast", "whiten"):
            if getattr(self, name) is not None:
                at_least(name, getattr(self, name), 0)
        transforms = self.learner.transforms
        finding.check(transforms)
        if transforms is None and self.patch_size is None:
            raise ValueError("patch_size is None and the learner has no transformations; give one of them")
        if transforms is not None and not self._is_auto and len(transforms.field_shape) not in (2, 3):
            raise ValueError(f"{transforms!r} is not for images; give transformations of (rows, columns[, poses])")

    def _check_fitted(self) -> None:
        height, width, channels = self.image_shape_.tolist()
        size = channels * prod(self._patch)
        found = self.mean_.shape, self.whitening_.shape, self.learner_.n_features_in_, self.n_features_in_
        square = (0, 0) if self.whitening_.shape == (0, 0) else (size, size)
        if found != ((size,), square, size, height * width * channels) or min(height, width, channels) < 1:
            raise ValueError(f"its sizes are {found} for patches of {self._patch} in images {self.image_shape_}")
        check_grid(torch.empty(1, height, width, channels, device="meta"), self._patch, self.stride, self.grid)

    def _check_images(self, groups: Groups, channels: int) -> None:
        for _, images in groups:
            check_channels(images, channels)
            check_grid(images, self._patch, self.stride, self.grid)

    def _normalize(self, patches: Tensor) -> Tensor:
        return patches if self.contrast is None else normalize_contrast(patches, self.contrast)

    def _whitening(self, patches: Tensor) -> tuple[Tensor, Tensor]:
        if self.whiten is None:
            return torch.zeros_like(patches[0]), patches.new_empty(0, 0)
        return whitening(patches, self.whiten)

    def _places(self, images: Tensor) -> tuple[int, int]:
        """Rows and columns of patches in an image."""
        return places(images, self._patch, self.stride)

    @property
    def _n_features_out(self) -> int:
        return self.grid**2 * self._width

    @property
    def _width(self) -> int:
        """Features of a patch."""
        one = self.poses == "pool" or self.learner.transforms is None
        poses = 1 if one else len(self.learner_.transforms_ or ())
        return poses * int(self.learner_._n_features_out)


def _each_pose(templates: Tensor, two_sided: bool) -> Tensor:
    """Filters in poses, (K, S, D), as filters of one pose, (S K, 1, D), or (2 S K, 1, D) with both sides of a pose."""
    sides = torch.cat([templates, -templates]) if two_sided else templates
    return sides.transpose(0, 1).flatten(0, 1)[:, None]
