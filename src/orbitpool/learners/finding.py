"""Transformations of a learner that nobody gave: found in what it learns from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from orbitpool.discovery import Discovery, discover
from orbitpool.discovery.auto import MOST, SHOWN, real_images
from orbitpool.learners.sources import Batches, Source
from orbitpool.progress import say
from orbitpool.transforms import TransformSet

AHEAD = 2_000  # rows of a stream that are kept until it is known which transformations they have


def check(transforms: Any) -> None:
    """Raise ValueError for what are no transformations."""
    if not isinstance(transforms, (TransformSet, type(None))) and not is_auto(transforms):
        raise ValueError(f"transforms is {transforms!r}; give a set made by orbitpool.transforms, None, or 'auto'")


def is_auto(transforms: Any) -> bool:
    """Whether transformations are to be found."""
    return isinstance(transforms, str) and transforms == "auto"


def find(X: Any, source: Source, seed: int, tell: bool) -> Discovery:
    """Which transformations inputs have, from some of their rows."""
    rows = source.ahead(AHEAD) if isinstance(source, Batches) else source.look(MOST, seed)
    return told(discover(_shaped(rows, X, source), random_state=seed), tell)


def shown(found: Discovery, images: Tensor) -> Discovery:
    """A discovery with some of the images (n, C, H, W) for its picture."""
    return replace(found, examples=images[:SHOWN].float().cpu())


def images(X: Any, source: Source, seed: int) -> Tensor:
    """Some of the inputs as images, (n, C, H, W)."""
    some: Tensor = real_images(_shaped(source.look(SHOWN, seed), X, source))
    return some.movedim(3, 1)


def _shaped(rows: Tensor, X: Any, source: Source) -> Tensor:
    """Rows as images, if they were images."""
    shape = tuple(getattr(source, "row_shape", getattr(X, "row_shape", getattr(X, "shape", ())[1:])))
    return rows.view(len(rows), *shape) if len(shape) > 1 else rows


def told(found: Discovery, tell: bool) -> Discovery:
    """A discovery; if somebody wants to know, it is said in words."""
    if tell:
        say(f"found {found.words()}")
    return found
