"""ConvFeatures: a learner on patches, applied at every place of an image and averaged on a grid (section 5.3)."""

from __future__ import annotations

import os
from functools import partial
from math import ceil, prod
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from orbitpool import together
from orbitpool.discovery import Discovery, auto
from orbitpool.images.encoding import Dense
from orbitpool.images.module import ConvModule
from orbitpool.images.patches import (
    Groups,
    as_floats,
    by_size,
    check_channels,
    check_grid,
    check_mirror,
    own_images,
    random_patches,
)
from orbitpool.images.whitening import CONTRAST, FLOOR, normalize_contrast, whitening
from orbitpool.kernels import choose_device, undisturbed
from orbitpool.kernels.crew import in_order
from orbitpool.learners import Learner, finding
from orbitpool.learners.around import AroundLearner
from orbitpool.learners.checks import above, at_least, finite, one_of, whole
from orbitpool.learners.training import seed_of
from orbitpool.modules import export_onnx
from orbitpool.transforms import TransformSet

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
        Average the features of an image with those of its mirror image, so that both have the same; not with kept
        poses.
    poses : {"pool", "keep"}
        Whether a filter has one feature, or one for each of its poses, filters last: what a layer above needs to be
        invariant to what turns the whole image (`transforms.turned_maps`).
    output : {"flat", "map"}
        Rows of features, or maps of them, (N, grid, grid, features of a patch), which are images to a layer above.
    contrast : float or None
        Added to a patch's variance before it is divided by its standard deviation; None leaves patches as they are.
    whiten : float or None
        Added to the eigenvalues of the covariance; None does not whiten. Where the learner's transformations put pixels
        into another order, as quarter turns do, the covariance is that of patches in all of these orders, so that
        whitening turns with them.
    precision : {"auto", "full", "bfloat16"}
        Of dense encoding. "auto" multiplies bfloat16 numbers on a GPU, whose features differ by some 1e-3; else full.
        "bfloat16" does so on CPUs that have such products as well. float64 images, and probabilities of poses that
        are kept, are always computed in full.
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
        precision: Literal["auto", "full", "bfloat16"] = "auto",
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

    @undisturbed()
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
        if self.contrast is not None:
            above("contrast", self.contrast, 0)  # with 0 flat patches would be 0 / 0
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
        if self._is_auto:
            self.learner_._show(lambda: self._thumbnails(groups, seed, device))
        self.mean_, self.whitening_ = mean.cpu().numpy(), P.cpu().numpy()
        self.image_shape_ = np.array(groups[0][1].shape[1:])
        self.n_features_in_ = prod(groups[0][1].shape[1:])
        return self

    def _discover(self, groups: Groups, seed: int, device: torch.device) -> Discovery:
        """Which transformations the images have, judged on thumbnails."""
        seen = self._thumbnails(groups, seed, device)
        return finding.told(auto.judge(seen, self._patch, seed), self.learner.verbose)

    def _thumbnails(self, groups: Groups, seed: int, device: torch.device) -> Tensor:
        """Some of the images, small, (n, C, H, W); of small ones if others are few."""
        sides = sorted((min(images.shape[1:3]) for _, images in groups for _ in range(len(images))), reverse=True)
        side = min(auto.THUMBNAIL, sides[min(len(sides), auto.FEWEST) - 1])
        large = [images for _, images in groups if min(images.shape[1:3]) >= side]
        share = min(1.0, auto.MOST / sum(map(len, large)))
        generator, small = torch.Generator().manual_seed(seed), []
        for images in large:
            some = torch.randperm(len(images), generator=generator)[: ceil(share * len(images))]
            seen = auto.looked_at(images, some, side, device)
            small.append(seen / 255 if images.dtype == torch.uint8 else seen)
        return torch.cat(small)

    def _some_patches(self, groups: Groups, generator: torch.Generator, device: torch.device) -> Tensor:
        """Random patches as floats, (n_patches, D): of each size as large a share as its images have."""
        ends = torch.tensor([len(images) for _, images in groups]).cumsum(0)
        counts = (ends * self.n_patches).div(ends[-1], rounding_mode="floor").diff(prepend=torch.tensor([0]))
        some = [
            random_patches(images, int(count), self._patch, generator)
            for (_, images), count in zip(groups, counts, strict=True)
        ]
        return torch.cat([as_floats(patches, device).flatten(1) for patches in some])

    @undisturbed()
    @torch.no_grad()
    def transform(self, X: Any) -> Any:
        """Features averaged on the grid, (N, grid * grid * features of a patch), cell by cell, row by row, or a map."""
        check_is_fitted(self)
        self._check()
        self._check_fitted()
        groups, device = by_size(X), choose_device(self.device, X)
        self._check_images(groups, int(self.image_shape_[2]))
        home = X.device if isinstance(X, Tensor) else torch.device("cpu")
        dtype = torch.float64 if any(images.dtype == torch.float64 for _, images in groups) else torch.float32
        dense = self._dense(device, dtype)
        features = torch.empty(sum(len(at) for at, _ in groups), self._n_features_out, dtype=dtype, device=home)
        own, order, share = own_images(groups)

        def encode(unit: tuple[Tensor, Tensor, Tensor]) -> Tensor:
            _, images, rows = unit
            seen = [images, images.flip(2)] if self.mirror else [images]
            return torch.stack([dense.means(some, rows) for some in seen]).mean(0)

        units = [(at[some], images[some], rows) for at, images in own for some, rows in dense.units(images)]
        for (at, _, rows), z in zip(units, in_order(encode, units, dense.threads(own)), strict=True):
            _put(features, at, z.to(home), more=bool(rows[0] > 0))
        if not share.whole:
            order = order.to(home)
            features[order] = share.gather(features[order[share.own]])
        if self.output == "map":
            features = features.view(len(features), self.grid, self.grid, -1)
        return features if isinstance(X, Tensor) else features.numpy()

    @undisturbed()
    def to_module(self) -> ConvModule:
        """`transform` as a float32 layer of a network, images to (N, n_features_out), which can be trained there."""
        check_is_fitted(self)
        self._check()
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
        export_onnx(self.to_module(), torch.zeros(1, *map(int, self.image_shape_), dtype=torch.float32), path)

    def _dense(self, device: torch.device, dtype: torch.dtype) -> Dense:
        """What encodes images on a device."""
        mean, P = (torch.from_numpy(a).to(device, dtype) for a in (self.mean_, self.whitening_))
        return Dense(
            self.learner_.encoder(device, dtype),
            mean,
            P if P.numel() else None,
            self._patch,
            self.stride,
            self.grid,
            self.contrast,
            keep=self.poses == "keep",
            alone=self.learner.transforms is None,
            precision=self.precision,
            width=self._width,
        )

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
        one_of("precision", self.precision, ("auto", "full", "bfloat16"))
        one_of("poses", self.poses, ("pool", "keep"))
        one_of("output", self.output, ("flat", "map"))
        one_of("mirror", self.mirror, (False, True))
        check_mirror(self.mirror, self.poses)
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
        together.check_rows("X", *(images for _, images in groups), sizes=len(groups))

    def _normalize(self, patches: Tensor) -> Tensor:
        return patches if self.contrast is None else normalize_contrast(patches, self.contrast)

    def _whitening(self, patches: Tensor) -> tuple[Tensor, Tensor]:
        if self.whiten is None:
            return torch.zeros_like(patches[0]), patches.new_empty(0, 0)
        transforms, columns = self.learner.transforms, torch.arange(patches.shape[1], device=patches.device)
        orders = transforms.orders if isinstance(transforms, TransformSet) else []
        each = [columns.view(len(pixels), -1)[torch.from_numpy(pixels)].flatten() for pixels in orders]
        return whitening(patches, self.whiten, each)

    @property
    def _n_features_out(self) -> int:
        return self.grid**2 * self._width

    @property
    def _width(self) -> int:
        """Features of a patch."""
        one = self.poses == "pool" or self.learner.transforms is None
        poses = 1 if one else len(self.learner_.transforms_ or ())
        return poses * int(self.learner_._n_features_out)


def _put(features: Tensor, at: Tensor, z: Tensor, more: bool) -> None:
    """Set some rows to z, or add it to them; on a CPU by numpy: torch's threads would wait for more in a busy loop."""
    here = features.device.type == "cpu"
    given: Any = (features.numpy(), at.numpy(), z.numpy()) if here else (features, at.to(features.device), z)
    rows, place, new = given
    rows[place] = rows[place] + new if more else new
