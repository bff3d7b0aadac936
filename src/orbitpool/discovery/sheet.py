"""Operators as a picture: where each one takes its pixels from, and what it makes of an image."""

from __future__ import annotations

import os
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from orbitpool.excerpt import excerpt
from orbitpool.pictures import Bytes, save_png
from orbitpool.transforms import TransformSet
from orbitpool.transforms.motions import centres, grid
from orbitpool.transforms.set import by

TILE, GAP, LETTERS = 112, 10, 12  # pixels
PAPER, INK, LINES = "#ffffff", "#222222", "#d95f02"
MESH = 10  # lines of the grid along a side, about
EXPLAINED = "left: where the window lies in the input (thick: its top); right: what is seen in it"


def draw_operators(transforms: TransformSet, image: ArrayLike, path: str | os.PathLike[str]) -> Path:
    """Draw a set of operators on images to a PNG file; its path.

    Each operator has its name, the image under a grid that shows where the window's pixels are taken from, and what it
    makes of the image.

    Parameters
    ----------
    transforms : TransformSet
        Of images.
    image : array of the field's shape, or flat
    path : path
    """
    return save_png(operator_sheet(transforms, image), path)


def operator_sheet(transforms: TransformSet, image: ArrayLike) -> Bytes:
    """The picture that `draw_operators` writes, (rows, columns, 3)."""
    from PIL import Image, ImageDraw, ImageFont

    if not isinstance(transforms, TransformSet):
        raise TypeError(f"{excerpt(transforms)} is a {type(transforms).__name__}; give a set of operators")
    field = transforms.field_shape
    shown = np.asarray(image, dtype=np.float64)
    if len(field) != 2 or shown.size != field[0] * field[1]:
        raise ValueError(f"the image has shape {shown.shape}; these operators act on grey images of {by(field)} pixels")
    columns = max(1, min(4, ceil(sqrt(len(transforms) / 2))))
    wide, tall = 2 * TILE + 3 * GAP, TILE + 2 * GAP + LETTERS + 6
    rows = -(-len(transforms) // columns)
    sheet = Image.new("RGB", (columns * wide + GAP, rows * tall + 3 * GAP + LETTERS), PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(LETTERS)
    pen.text((GAP, GAP), EXPLAINED, INK, font)
    moved = transforms.apply(shown.ravel())
    for s, (label, T) in enumerate(zip(transforms.labels, transforms.to_dense().cpu(), strict=True)):
        left, top = s % columns * wide + GAP, s // columns * tall + 3 * GAP + LETTERS
        pen.text((left, top), label, INK, font)
        under = top + LETTERS + 6
        sheet.paste(_tile(shown.reshape(field), shown), (left, under))
        sheet.paste(_tile(moved[s].reshape(transforms.window_shape), shown), (left + TILE + GAP, under))
        for line, thick in _mesh(T.double(), transforms):
            pen.line([(left + x * TILE, under + y * TILE) for y, x in line], LINES, 3 if thick else 1)
    return np.asarray(sheet)


def _mesh(T: torch.Tensor, transforms: TransformSet) -> list[tuple[NDArray[Any], bool]]:
    """The lines of a grid over the window as they lie in the field, pieces of (points, 2), and if it is the top."""
    field, window = transforms.field_shape, transforms.window_shape
    points, mass = centres(T, grid(field))
    at = ((points + 0.5) / torch.tensor(field)).view(*window, 2).numpy()
    there = (mass > 0.3).view(window).numpy()  # what takes from outside of the field is nowhere
    lines = []
    for axis in (0, 1):
        step = max(1, round(window[axis] / MESH))
        for i in range(0, window[axis], step):
            line, good = at.take(i, axis), there.take(i, axis)
            pieces = np.split(np.arange(len(line)), np.flatnonzero(np.diff(good)) + 1)
            lines += [(line[piece], axis == i == 0) for piece in pieces if good[piece[0]] and len(piece) > 1]
    return lines


def _tile(image: NDArray[Any], scale: NDArray[Any]) -> Any:
    from PIL import Image

    low, high = float(scale.min()), float(scale.max())
    shades = ((image - low) / max(high - low, 1e-12) * 255).clip(0, 255).astype(np.uint8)
    return Image.fromarray(shades).resize((TILE, TILE), Image.Resampling.NEAREST).convert("RGB")
