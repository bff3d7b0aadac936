"""Patches of images, at random places and at every place."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbitpool import together
from orbitpool.excerpt import excerpt
from orbitpool.learners.checks import whole
from orbitpool.learners.sources import shared

Groups = list[tuple[Tensor, Tensor]]  # places in the list that was given, (n,), and the images that stand there


def by_size(X: Any) -> Groups:
    """Images as tensors (n, H, W, C), one for each size, with their places in X: an array has one size, a list any."""
    if not isinstance(X, (list, tuple)):
        images = as_images(X)
        return [(torch.arange(len(images)), images)]
    arrays = [np.asarray(x) for x in X]
    places: dict[Any, list[int]] = {}
    for i, array in enumerate(arrays):
        places.setdefault((array.shape, array.dtype), []).append(i)
    check_some(arrays)
    return [(torch.tensor(at), as_images(np.stack([arrays[i] for i in at]))) for at in places.values()]


def own_images(groups: Groups) -> tuple[Groups, Tensor, together.Part]:
    """The images that are this process's to work on, as many of each size; all places process by process; its share."""
    places = torch.cat([at for at, _ in groups])
    share = together.part(len(places))
    if share.whole:
        return groups, places, share
    if len(groups) == 1:
        return [(at[share.own], images[share.own]) for at, images in groups], places, share
    places = torch.cat([places[first :: together.processes()] for first in range(together.processes())])
    mine = [(torch.isin(at, places[share.own]), at, images) for at, images in groups]
    return [(at[own], images[own.to(images.device)]) for own, at, images in mine if own.any()], places, share


def as_images(X: Any) -> Tensor:
    """Images as a tensor (N, H, W, C), without a copy where that can be."""
    images = X if isinstance(X, Tensor) else shared(np.ascontiguousarray(X))
    if images.ndim not in (3, 4) or 0 in images.shape:
        raise ValueError(f"X has shape {tuple(images.shape)}; give images (N, H, W) or (N, H, W, C), none of them 0")
    return images[..., None] if images.ndim == 3 else images


def as_floats(images: Tensor, device: torch.device) -> Tensor:
    """Images as float32 (or float64, if they are): bytes become 0-1, other numbers stay as they are."""
    if images.dtype == torch.uint8:
        return images.to(device).to(torch.float32).div_(255)
    return images.to(device, torch.float64 if images.dtype == torch.float64 else torch.float32)


def check_some(images: Sized) -> None:
    """Raise ValueError if there are no images."""
    if not len(images):
        raise ValueError("X holds 0 images; give at least one")


def check_tensor(images: Tensor) -> None:
    """Raise ValueError for what is not (N, H, W, C)."""
    if not isinstance(images, Tensor) or images.ndim != 4:
        raise ValueError(f"images are {excerpt(images)}; give a tensor (N, H, W, C)")


def random_patches(images: Tensor, count: int, size: tuple[int, int], generator: torch.Generator) -> Tensor:
    """Patches at uniformly random places of random images, (count, rows, columns, C), of the images' own type."""
    check_tensor(images)
    whole("count", count, least=0)
    n, height, width, _ = images.shape
    check_fits(size, (height, width))
    which, top, left = (
        torch.randint(limit, (count,), generator=generator).to(images.device)
        for limit in (n, height - size[0] + 1, width - size[1] + 1)
    )
    rows = top[:, None, None] + torch.arange(size[0], device=images.device)[:, None]
    columns = left[:, None, None] + torch.arange(size[1], device=images.device)
    return images[which[:, None, None], rows, columns]


def dense_patches(images: Tensor, size: tuple[int, int], stride: int = 1) -> Tensor:
    """Every patch at a stride, (N, rows of patches, columns of patches, rows, columns, C): a view."""
    check_tensor(images)
    whole("stride", stride)
    check_fits(size, (images.shape[1], images.shape[2]))
    return images.unfold(1, size[0], stride).unfold(2, size[1], stride).permute(0, 1, 2, 4, 5, 3)


def check_fits(patch: tuple[int, int], image: tuple[int, int]) -> None:
    """Raise ValueError if patches are larger than images, or nothing."""
    for side in patch:
        whole("a side of a patch", side)
    if patch[0] > image[0] or patch[1] > image[1]:
        raise ValueError(
            f"patches of {patch[0]}×{patch[1]} do not fit into images of {image[0]}×{image[1]}; "
            "use smaller receptive fields or larger images"
        )


def check_channels(images: Tensor, channels: int) -> None:
    """Raise ValueError if images have others than those that were learned from."""
    if images.shape[3] != channels:
        raise ValueError(
            f"images have {images.shape[3]} channels, but filters were learned from {channels}; "
            "give images of the same kind"
        )


def places(images: Tensor, patch: tuple[int, int], stride: int) -> tuple[int, int]:
    """Rows and columns of patches in an image."""
    return (images.shape[1] - patch[0]) // stride + 1, (images.shape[2] - patch[1]) // stride + 1


def check_grid(images: Tensor, patch: tuple[int, int], stride: int, grid: int) -> None:
    """Raise ValueError if there are fewer patches than cells along a side."""
    _, height, width, _ = images.shape
    check_fits(patch, (height, width))
    rows, columns = places(images, patch, stride)
    if min(rows, columns) < grid:
        raise ValueError(
            f"grid is {grid}, but images of {height}×{width} have only {rows}×{columns} patches; "
            "use a smaller grid or stride, or larger images"
        )


def check_mirror(mirror: bool, poses: str) -> None:
    """Raise ValueError for features that keep their poses and are to be averaged with those of mirror images."""
    if mirror and poses == "keep":
        raise ValueError("mirror is True and poses 'keep', but a mirror image has other poses; choose one of the two")
