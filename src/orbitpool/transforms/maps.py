"""Turns of a map of filters' responses, where a place has a number for every pose of every filter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import floor, inf, nan, tau
from typing import Any, Literal

import numpy as np
import scipy.sparse

from orbitpool.excerpt import excerpt
from orbitpool.transforms.families import as_shape, check_border, check_whole, in_degrees, steps, turn
from orbitpool.transforms.set import TransformSet, stack


def turned_maps(
    window: int | Sequence[int],
    poses: int,
    count: int | None = None,
    field: int | Sequence[int] | None = None,
    zooms: Sequence[float] = (1.0,),
    shifts: Sequence[Sequence[float]] = ((0.0, 0.0),),
    border: Literal["edge", "zero"] = "zero",
) -> TransformSet:
    """Turns of a map with a plane for each of the poses that make up a full circle.

    When an image is turned by a step of the poses, each place of its map turns about the centre, and each pose takes
    what the next one had. Turns by other angles mix the two poses that are nearest. The field is (rows, columns,
    poses), the filters of the layer below are the channels: what `ConvFeatures(poses="keep")` makes of an image, if its
    learner has `rotations(…, count=poses, step=2 * pi / poses)`.

    Quarter turns are exact, others as good as interpolation is, if all that makes the map turns with the image: its
    learner was given its transformations (not "auto"), images are square, its grid divides the places of patches along
    a side, and its stride the pixels that these are spread over. A `TIRBM` learns a bias for every pose; its maps turn
    as far as poses are as frequent as each other.

    Parameters
    ----------
    window : int or (int, int)
        Places of the map that a filter covers.
    poses : int
        Planes of the map.
    count : int, optional
        How many turns make up a full circle here; as many as there are poses if not given.
    field : int or (int, int), optional
        A larger part of the map, about whose centre the window turns.
    zooms : sequence of float
        Places of the map between neighbours in a window: each turn is there at each of these scales.
    shifts : sequence of (float, float)
        Rows and columns between the centre of the field and the point about which the window turns; for each of them
        there are all turns at all scales.
    border : {"edge", "zero"}
        What lies outside the field.
    """
    check_whole("poses", poses, 1)
    n = poses if count is None else count
    check_whole("count", n, 1)
    to = as_shape("window", window)
    around = as_shape("field", to if field is None else field)
    check_border(to, around, border)
    _check_numbers("zooms", zooms, (), above=0.0)
    _check_numbers("shifts", shifts, (2,))
    each = list(product(steps(n), zooms, shifts))
    matrices = [
        scipy.sparse.kron(
            turn(to, around, tau * k / n, border, zoom, at), _moved_on(poses, k * poses / n), format="csr"
        )
        for k, zoom, at in each
    ]
    labels = [_name(tau * k / n, zoom, *at) for k, zoom, at in each]
    return stack(matrices, (*around, int(poses)), (*to, int(poses)), labels)


def _check_numbers(name: str, values: Any, shape: tuple[int, ...], above: float = -inf) -> None:
    """Raise ValueError for what is not one number or more, or tuples of them, finite and large enough."""
    try:
        found = np.array(values, dtype=float)
    except (TypeError, ValueError):
        found = np.array(nan)
    if found.ndim != 1 + len(shape) or found.shape[1:] != shape or not found.size:
        found = np.array(nan)
    if not np.isfinite(found).all() or (found <= above).any():
        what = "pairs of numbers" if shape else "scales, each greater than 0"
        raise ValueError(f"{name} are {excerpt(values)}; give one or more {what}")


def _name(angle: float, zoom: float, down: float, right: float) -> str:
    """What an operator does, in words."""
    size, place = f", zoom {zoom:g}" if zoom != 1 else "", f", shift ({down:g}, {right:g})" if down or right else ""
    return in_degrees(angle) + size + place


def _moved_on(poses: int, by: float) -> Any:
    """The operator that gives each pose what the one so many steps further has, (poses, poses)."""
    first, share = floor(by), by - floor(by)
    near, far = (np.roll(np.eye(poses), first + further, axis=1) for further in (0, 1))
    return scipy.sparse.csr_array((1 - share) * near + share * far)
