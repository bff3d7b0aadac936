"""Pictures of filters and inputs as arrays of bytes, and a number that says how varied they are."""

from __future__ import annotations

import os
from io import BytesIO
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.wholefile import write_whole

Bytes = NDArray[np.uint8]


def mosaic(tiles: Any, columns: int | None = None, zoom: int = 2, each: bool = True) -> Bytes:
    """Tiles (K, h, w) or (K, h, w, 3) side by side, (rows, columns, 3), black to white; `each` on its own scale."""
    x = np.asarray(tiles, dtype=np.float64)
    x = x[..., None].repeat(3, -1) if x.ndim == 3 else x
    shaded = _shades(x, (1, 2, 3) if each else None).repeat(zoom, 1).repeat(zoom, 2)
    count, height, width, _ = shaded.shape
    columns = columns or ceil(sqrt(count))
    rows = -(-count // columns)
    sheet = np.full((rows * (height + 2) + 2, columns * (width + 2) + 2, 3), 96, np.uint8)
    for k, tile in enumerate(shaded):
        top, left = (k // columns) * (height + 2) + 2, (k % columns) * (width + 2) + 2
        sheet[top : top + height, left : left + width] = tile
    return sheet


def sheet(tiles: Any) -> Bytes:
    """Tiles (rows, columns, h, w) edge to edge, (rows h, columns w), in 16 greys, every row on its own scale."""
    x = np.asarray(tiles, dtype=np.float64)
    rows, columns, height, width = x.shape
    return _shades(x, (1, 2, 3), 16).swapaxes(1, 2).reshape(rows * height, columns * width)


def _shades(x: NDArray[Any], axes: tuple[int, ...] | None, count: int = 256) -> Bytes:
    """Numbers as so many shades from black to white: the smallest over the axes is black, the largest white."""
    low, high = x.min(axes, keepdims=True), x.max(axes, keepdims=True)
    steps = ((x - low) / np.maximum(high - low, 1e-12) * (count - 1)).round()
    return np.asarray(steps * (255 // (count - 1)), dtype=np.uint8)


def save_png(picture: Bytes, path: str | os.PathLike[str]) -> Path:
    """Write a picture, whole or not at all; its path."""
    check_png(path)
    write_whole(path, png(picture))
    return Path(path)


def check_png(path: str | os.PathLike[str]) -> None:
    """Raise ValueError for a name that is not one of a PNG file."""
    if Path(path).suffix.lower() != ".png":
        raise ValueError(f"the picture is to be {str(path)!r}, but it is a PNG file; give a name that ends in .png")


def png(picture: Bytes) -> bytes:
    """A picture as the content of a PNG file."""
    from PIL import Image

    content = BytesIO()
    Image.fromarray(picture).save(content, format="PNG", optimize=True)
    return content.getvalue()


def orientation_entropy(filters: Any, bins: int = 8) -> float:
    """How evenly the orientations of filters (K, h, w) are spread, in bits: 0 for one orientation, log2(bins) for all.

    The orientation of a filter is that of its structure tensor, the direction in which it changes most. A filter counts
    by how clear its orientation is, and for the two nearest bins by how near they are: so one orientation has a little
    more than 0 bits unless it is a bin's own, and blobs and noise hardly count beside edges.
    """
    dy, dx = np.gradient(np.asarray(filters, dtype=np.float64), axis=(1, 2))
    across, along, mixed = (dx**2).sum((1, 2)), (dy**2).sum((1, 2)), (dx * dy).sum((1, 2))
    clear = np.hypot(across - along, 2 * mixed) / np.maximum(across + along, 1e-300)
    place = np.arctan2(2 * mixed, across - along) / (2 * np.pi) * bins  # bins are centred on multiples of pi / bins
    low = np.floor(place).astype(int)
    near = place - low
    counts = np.bincount(low % bins, clear**2 * (1 - near), bins) + np.bincount((low + 1) % bins, clear**2 * near, bins)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
