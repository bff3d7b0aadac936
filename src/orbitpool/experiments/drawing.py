"""Filters as pictures: a mosaic, and beside it a sheet of every filter in every pose."""

from __future__ import annotations

from typing import Any

from orbitpool import transforms
from orbitpool.pictures import Bytes, mosaic, sheet
from orbitpool.transforms import TransformSet

Drawn = tuple[dict[str, Bytes], dict[str, Any]]  # pictures by their titles, and what else a figure says
COLUMNS = 6  # of mosaics


def file_of(key: str, title: str) -> str:
    """The name of the file that a picture is kept in."""
    return f"{key}-{title.lower().replace(' ', '-')}.png"


def draw_filters(title: str, filters: Any, poses: TransformSet | None, field: int, numbers: Any = None) -> Drawn:
    """A mosaic of filters (K, h, w), the sheet of their orbits in a square field, and what stands where on the sheet.

    Parameters
    ----------
    title : str
        What the filters are.
    filters : array (K, h, w)
        One channel each.
    poses : TransformSet or None
        What the filters are moved by; None for one pose.
    field : int
        Pixels of a side of the field.
    numbers : sequence of int, optional
        Which filters of a model these are; the first K if not given.
    """
    moves = transforms.identity(field) if poses is None else poses
    orbits = moves.orbit(filters.reshape(len(filters), -1)).reshape(len(filters), -1, field, field)
    named = [int(n) for n in (range(len(filters)) if numbers is None else numbers)]
    pictures = {title: mosaic(filters, COLUMNS, zoom=56 // filters.shape[1]), f"{title} in every pose": sheet(orbits)}
    return pictures, {"sheet": f"{title} in every pose", "poses": list(moves.labels), "filters": named}
