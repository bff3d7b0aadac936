"""The families of transformations: translations, rotations, scalings, mirrors, and what they are combined with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import ceil, cos, degrees, isfinite, prod, sin
from numbers import Real
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from orbitpool.transforms.set import Shape, TransformSet, by, stack

Floats = NDArray[np.floating]


def identity(field: int | Sequence[int]) -> TransformSet:
    """The set of one that changes nothing: a filter that covers the whole field in one pose."""
    shape = as_shape("field", field, (1, 2))
    return stack([scipy.sparse.eye_array(prod(shape))], shape, shape, ["identity"])


def translations(field: int | Sequence[int], window: int | Sequence[int], stride: int = 1) -> TransformSet:
    """Every crop of a window out of the field at a stride, row by row.

    Parameters
    ----------
    field, window : int or (int, int)
        Sizes r and w in pixels; window <= field.
    stride : int
        Pixels between neighbouring crops, gs in the paper.
    """
    around, to = as_shape("field", field), as_shape("window", window)
    _check_fits(to, around, "translations need window <= field")
    return _crops(around, to, stride, "shift ({}, {})")


def time_shifts(frames: int, window: int, stride: int = 1) -> TransformSet:
    """Every run of `window` frames out of `frames` at a stride; the features of a frame are the channels."""
    around, to = as_shape("frames", frames, (1,)), as_shape("window", window, (1,))
    _check_fits(to, around, "time shifts need window <= frames")
    return _crops(around, to, stride, "shift {}")


def rotations(
    window: int | Sequence[int],
    count: int,
    step: float,
    field: int | Sequence[int] | None = None,
    border: Literal["edge", "zero"] = "edge",
) -> TransformSet:
    """Turns about the centre by multiples of a step, anticlockwise as seen on a screen, bilinear.

    Parameters
    ----------
    window : int or (int, int)
        Pixels of the filter.
    count : int
        How many turns n, from 1 - ceil(n/2) to n - ceil(n/2) steps, in that order.
    step : float
        Radians.
    field : int or (int, int), optional
        A larger receptive field about whose centre the window turns, so that corners have real pixels to take from.
    border : {"edge", "zero"}
        What lies outside the field: its edge pixels repeated, or nothing.
    """
    to = as_shape("window", window)
    around = as_shape("field", to if field is None else field)
    check_border(to, around, border)
    check_whole("count", count, 1)
    if not isinstance(step, Real) or not isfinite(step):
        raise ValueError(f"step is {step!r}; it must be a finite number of radians")
    angles = [step * k for k in steps(count)]
    matrices = [turn(to, around, angle, border) for angle in angles]
    return stack(matrices, around, to, [in_degrees(angle) for angle in angles])


def steps(count: int) -> range:
    """So many steps around none, the larger ones forwards."""
    return range(1 - ceil(count / 2), count - ceil(count / 2) + 1)


def check_border(window: Shape, field: Shape, border: str) -> None:
    """Raise ValueError for a window that cannot turn in a field with such a border."""
    _check_fits(window, field, "rotations need window <= field")
    if border not in ("edge", "zero"):
        raise ValueError(f"border is {border!r}; choose 'edge' (repeat the outermost pixels) or 'zero'")


def in_degrees(angle: float) -> str:
    """What a turn is called."""
    return f"rotate {degrees(angle):+.4g}°" if angle else "rotate 0°"


def turn(
    window: Shape, field: Shape, angle: float, border: str, zoom: float = 1.0, shift: Sequence[float] = (0.0, 0.0)
) -> Any:
    """The operator that reads a window out of a field, turned and zoomed about a point near the centre, (D2, D1)."""
    grid = np.meshgrid(*(zoom * (np.arange(w) - (w - 1) / 2) for w in window), indexing="ij")
    y, x = (points.ravel() for points in grid)
    return _interpolation(
        y * cos(angle) + x * sin(angle) + (field[0] - 1) / 2 + shift[0],
        x * cos(angle) - y * sin(angle) + (field[1] - 1) / 2 + shift[1],
        field,
        clamp=border == "edge",
    )


def scalings(field: int | Sequence[int], window: int | Sequence[int], step: int) -> TransformSet:
    """The centred r - l step pixels, l = 0, 1, …, as long as they are no fewer than the window, shrunk to the window.

    Shrinking is antialiased: the bilinear kernel is widened by the scale, and the weights of a pixel sum to one. The
    kernel takes the pixels around the centred part where the field has them, as Pillow's `resize(box=…)` does.

    Parameters
    ----------
    field, window : int or (int, int)
        Sizes r and w in pixels; window <= field.
    step : int
        Pixels between neighbouring sizes, gs in the paper.
    """
    around, to = as_shape("field", field), as_shape("window", window)
    _check_fits(to, around, "scalings need window <= field")
    check_whole("step", step, 1)
    levels = min(r - w for r, w in zip(around, to, strict=True)) // step + 1
    sizes = [tuple(r - level * step for r in around) for level in range(levels)]
    matrices = [scipy.sparse.kron(*map(_shrink, around, size, to)) for size in sizes]
    return stack(matrices, around, to, [f"scale {_side(size)}→{_side(to)}" for size in sizes])


def mirrors(window: int | Sequence[int]) -> TransformSet:
    """The image as it is, and flipped left to right."""
    shape = as_shape("window", window)
    flip = _choose(np.arange(prod(shape)).reshape(shape)[:, ::-1], prod(shape))
    return stack([scipy.sparse.eye_array(prod(shape)), flip], shape, shape, ["identity", "mirror"])


def pad(field: int | Sequence[int], window: int | Sequence[int]) -> TransformSet:
    """The field in the middle of a larger window of zeros: a set of one.

    With it the zero-padded square operators that the paper compares against (its footnote 5) are
    `compose(translations(28, 24, 2), pad(24, 28))`.
    """
    inner = as_shape("field", field, (1, 2))
    outer = as_shape("window", window, (len(inner),))
    if any(w < r for r, w in zip(inner, outer, strict=True)):
        raise ValueError(f"window {by(outer)} is smaller than field {by(inner)}; padding needs window >= field")
    middle = tuple(slice((w - r) // 2, (w - r) // 2 + r) for r, w in zip(inner, outer, strict=True))
    places = np.arange(prod(outer)).reshape(outer)[middle]
    return stack([_choose(places, prod(outer)).T], inner, outer, ["pad"])


def as_shape(name: str, size: int | Sequence[int], ndims: tuple[int, ...] = (2,)) -> Shape:
    """A size as a tuple of positive integers; one integer is the side of a square, or a number of frames."""
    shape: tuple[Any, ...] = (
        tuple(size) if isinstance(size, (Sequence, np.ndarray)) and np.ndim(size) else (size,) * ndims[-1]
    )
    if len(shape) not in ndims:
        forms = {1: "(frames,)", 2: "(rows, columns)"}
        raise ValueError(f"{name} is {size!r}; give one number or {' or '.join(forms[n] for n in ndims)}")
    for n in shape:
        check_whole(name, n, 1)
    return tuple(map(int, shape))


def _crops(field: Shape, window: Shape, stride: int, label: str) -> TransformSet:
    check_whole("stride", stride, 1)
    pixels = np.arange(prod(field)).reshape(field)
    corners = list(product(*(range(0, r - w + 1, stride) for r, w in zip(field, window, strict=True))))
    crops = (pixels[tuple(slice(o, o + w) for o, w in zip(corner, window, strict=True))] for corner in corners)
    return stack([_choose(crop, prod(field)) for crop in crops], field, window, [label.format(*c) for c in corners])


def _choose(pixels: NDArray[np.integer], of: int) -> Any:
    """The operator that copies the given pixels, (pixels.size, of)."""
    return scipy.sparse.csr_array((np.ones(pixels.size), (np.arange(pixels.size), pixels.ravel())), (pixels.size, of))


def _taps(x: Floats, size: int, width: float = 1.0) -> tuple[NDArray[np.int64], Floats]:
    """Pixels of a row of `size` that a triangle of half-width `width` around each x covers, and their weights."""
    x = x.round(9)  # a rounding error away from a pixel is that pixel: quarter turns become exact permutations
    first = np.floor(x - width).astype(np.int64) + 1
    index = first[:, None] + np.arange(ceil(2 * width))
    weight = np.maximum(0, 1 - np.abs(index - x[:, None]) / width) * ((index >= 0) & (index < size))
    return index.clip(0, size - 1), weight


def _interpolation(y: Floats, x: Floats, field: Shape, clamp: bool) -> Any:
    """The operator that reads a field at the points (y, x) by bilinear interpolation, (points, D1)."""
    height, width = field
    if clamp:
        y, x = y.clip(0, height - 1), x.clip(0, width - 1)
    (i, wy), (j, wx) = _taps(y, height), _taps(x, width)
    columns = i[:, :, None] * width + j[:, None, :]
    weights = wy[:, :, None] * wx[:, None, :]
    return _weighted(columns.reshape(len(y), -1), weights.reshape(len(y), -1), height * width)


def _shrink(field: int, size: int, window: int) -> Any:
    """The operator along one axis that shrinks the middle `size` pixels of a field to a window, (window, field)."""
    scale = size / window
    centres = (field - size) / 2 + (np.arange(window) + 0.5) * scale - 0.5
    columns, weights = _taps(centres, field, scale)
    return _weighted(columns, weights / weights.sum(1, keepdims=True), field)


def _weighted(columns: NDArray[np.integer], weights: Floats, of: int) -> Any:
    """The operator whose row i holds weights[i] at columns[i], (rows, of)."""
    rows = np.broadcast_to(np.arange(len(columns))[:, None], columns.shape)
    used = weights > 1e-12
    return scipy.sparse.csr_array((weights[used], (rows[used], columns[used])), (len(columns), of))


def _check_fits(window: Shape, field: Shape, rule: str) -> None:
    if any(w > r for w, r in zip(window, field, strict=True)):
        raise ValueError(f"window {by(window)} does not fit into {by(field)}; {rule}")


def check_whole(name: str, value: Any, least: int) -> None:
    """Raise ValueError for what is not a whole number, large enough."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, {least} or more")


def _side(shape: Iterable[int]) -> str:
    sides = tuple(shape)
    return by(sides[:1] if len(set(sides)) == 1 else sides)
