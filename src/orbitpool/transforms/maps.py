"""Turns of a map of filters' responses, where a place has a number for every pose of every filter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import floor, isfinite, tau
from numbers import Real
from typing import Any, Literal

import numpy as np
import scipy.sparse

from orbitpool.transforms.families import as_shape, check_border, check_whole, in_degrees, steps, turn
from orbitpool.transforms.set import TransformSet, stack


def turned_maps(
    window: int | Sequence[int],
    poses: int,
    count: int | None = None,
    field: int | Sequence[int] | None = None,
    zooms: Sequence[float] = (1.0,),
    border: Literal["edge", "zero"] = "zero",
) -> TransformSet:
    """Turns of a map with a plane for each of the poses that make up a full circle.

    When an image is turned by a step of the poses, each place of its map turns about the centre, and each pose takes
    what the next one had. Turns by other angles mix the two poses that are nearest. The field is (rows, columns,
    poses), the filters of the layer below are the channels: what `ConvFeatures(poses="keep")` makes of an image, if its
    learner has `rotations(…, count=poses, step=2 * pi / poses)`.

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
        Places between neighbours of a window: each turn is there at each of these scales, bilinear.
    border : {"edge", "zero"}
        What lies outside the field.
    """
    check_whole("poses", poses, 1)
    n = poses if count is None else count
    check_whole("count", n, 1)
    to = as_shape("window", window)
    around = as_shape("field", to if field is None else field)
    check_border(to, around, border)
    if (
        not np.iterable(zooms)
        or not all(isinstance(z, Real) and isfinite(z) and z > 0 for z in zooms)
        or not len(zooms)
    ):
        raise ValueError(f"zooms are {zooms!r}; give one scale or more, each greater than 0")
    each = list(product(steps(n), zooms))
    matrices = [
        scipy.sparse.kron(turn(to, around, tau * k / n, border, zoom), _moved_on(poses, k * poses / n), format="csr")
        for k, zoom in each
    ]
    labels = [in_degrees(tau * k / n) + ("" if zoom == 1 else f", zoom {zoom:g}") for k, zoom in each]
    return stack(matrices, (*around, int(poses)), (*to, int(poses)), labels)


def _moved_on(poses: int, by: float) -> Any:
    """The operator that gives each pose what the one so many steps further has, (poses, poses)."""
    first, share = floor(by), by - floor(by)
    near, far = (np.roll(np.eye(poses), first + further, axis=1) for further in (0, 1))
    return scipy.sparse.csr_array((1 - share) * near + share * far)
