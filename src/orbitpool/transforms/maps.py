"""Turns of a map of filters' responses, where a place has a number for every pose of every filter."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, tau
from typing import Any, Literal

import numpy as np
import scipy.sparse

from orbitpool.transforms.families import check_whole, rotations
from orbitpool.transforms.set import TransformSet, stack


def turned_maps(
    window: int | Sequence[int],
    poses: int,
    count: int | None = None,
    field: int | Sequence[int] | None = None,
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
    border : {"edge", "zero"}
        What lies outside the field.
    """
    check_whole("poses", poses, 1)
    check_whole("count", poses if count is None else count, 1)
    n = int(poses if count is None else count)
    turns = rotations(window, n, tau / n, field, border)
    steps = range(1 - ceil(n / 2), n - ceil(n / 2) + 1)
    matrices = [
        scipy.sparse.csr_array(scipy.sparse.kron(turn, _moved_on(int(poses), step * poses / n)))
        for turn, step in zip(turns.matrices(), steps, strict=True)
    ]
    return stack(matrices, (*turns.field_shape, int(poses)), (*turns.window_shape, int(poses)), turns.labels)


def _moved_on(poses: int, by: float) -> Any:
    """The operator that gives each pose what the one so many steps further has, (poses, poses)."""
    first, share = floor(by), by - floor(by)
    near, far = (np.roll(np.eye(poses), first + further, axis=1) for further in (0, 1))
    return scipy.sparse.csr_array((1 - share) * near + share * far)
