"""What was found, as a picture: an image moved further and further, and how well that can be told."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbitpool.discovery.candidates import STILL, Move, moved, window_of
from orbitpool.discovery.ranges import needed
from orbitpool.discovery.words import NAMES

if TYPE_CHECKING:
    from orbitpool.discovery.auto import Discovery, Finding

TILE, GAP, CHART = 64, 12, 220  # pixels
PAPER, INK, FAINT, KEPT, BEYOND, REFUSED = "#ffffff", "#222222", "#bbbbbb", "#1b7837", "#c2700a", "#b2182b"
SHOWN = 2  # images that are moved
LETTERS = 13  # pixels
WITH_IMAGES = "Each row moves two of the images further and further. The number below"
WITHOUT = "Images were moved further and further; files keep none to show. The number at the end of each label"
EXPLAINED = (
    "{beginning} is the overlap: how much the moved images, all together, look like the images as they are. "
    "1: nobody can tell whether an image was moved. 0: everybody can. "
    "Poses (green) go as far as it stays at {threshold:g} or above, in whole steps, and in patches as far as there is "
    "room (orange is beyond that); mirror images take {mirrored:g}. Where that ends, images may be moved so far and "
    "still pass for others: about half as far as they were moved before."
)


def draw(found: Discovery, what: str = "") -> NDArray[np.uint8]:
    """Draw a discovery; what it is of, if that is said."""
    from PIL import Image, ImageDraw, ImageFont

    families: dict[str, list[Finding]] = {}
    for finding in found.findings:
        families.setdefault(finding.family, []).append(finding)
    columns = 1 + max(map(len, families.values()))
    images = SHOWN if found.examples is not None else 0
    wide = columns * (TILE + GAP) + CHART + 6 * GAP
    tall = images * (TILE + 4) + (90 if not images else 56)
    said = f"Found{' in ' if what else ''}{what}: {found.words()}.".replace("×", "x")  # the font lacks it
    text = [
        *wrap(said, wide // 7),
        "",
        *wrap(explained(found), wide // 7),
    ]
    top = (len(text) + 2) * (LETTERS + 5)
    sheet = Image.new("RGB", (wide, top + tall * len(families) + GAP), PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(LETTERS)
    for number, line in enumerate(text):
        pen.text((GAP, GAP + number * (LETTERS + 5)), line, INK, font)
    for number, row in enumerate(families.values()):
        at = top + number * tall
        pen.text((GAP, at), f"{NAMES[row[0].family].capitalize()}:", INK, font)
        _tiles(sheet, pen, font, found, row, at + 22)
        if len(row) > 1:
            _curve(pen, row, found.threshold, (wide - CHART - 2 * GAP, at + 10), (CHART, tall - 40))
    return np.asarray(sheet)


def explained(found: Discovery) -> str:
    """What the picture of a discovery shows, in words."""
    beginning = WITHOUT if found.examples is None else WITH_IMAGES
    return EXPLAINED.format(beginning=beginning, threshold=found.threshold, mirrored=needed("mirror", found.threshold))


def _tiles(sheet: Any, pen: Any, font: Any, found: Discovery, row: Sequence[Finding], top: int) -> None:
    """The images as they are and moved by each amount, with the overlap below."""
    from PIL import Image

    moves = [STILL, *(Move(f.family, f.amount) for f in row)]
    only = f"{row[0].overlap:.2f}" if len(row) == 1 else ""
    labels = ["as it is", *(only or f"{f.amount:.3g}: {f.overlap:.2f}" for f in row)]
    colours = [FAINT, *(_colour(f, found.threshold) for f in row)]
    count = 0
    if found.examples is not None:
        count = min(SHOWN, len(found.examples))
        shown = _shades(found.examples[:count])
        for i in range(count):
            each = torch.arange(len(moves))
            tiles = moved(shown[i].expand(len(moves), -1, -1, -1), each, moves, window_of(found.judged), None)
            for k, tile in enumerate(_bytes(tiles)):
                left, above = GAP + k * (TILE + GAP), top + i * (TILE + 4)
                picture = Image.fromarray(tile).resize((TILE, TILE), Image.Resampling.NEAREST)
                sheet.paste(picture, (left, above))
                pen.rectangle((left - 2, above - 2, left + TILE + 1, above + TILE + 1), outline=colours[k], width=2)
    for k, label in enumerate(labels):
        pen.text((GAP + k * (TILE + GAP), top + count * (TILE + 4)), label, colours[k] if k else INK, font)


def _colour(finding: Finding, threshold: float) -> str:
    """Whether poses go that far, do not although images that are moved so pass for others, or need not."""
    return KEPT if finding.kept else BEYOND if finding.overlap >= needed(finding.family, threshold) else REFUSED


def _curve(pen: Any, row: Sequence[Finding], threshold: float, at: tuple[int, int], size: tuple[int, int]) -> None:
    """Overlap by amount, with the threshold."""
    start = 1.0 if row[0].family == "scale" else 0.0
    last = row[-1].amount

    def place(amount: float, overlap: float) -> tuple[float, float]:
        across = (amount - start) / max(last - start, 1e-9) if last > start else 1.0
        return at[0] + across * size[0], at[1] + (1 - overlap) * size[1]

    left, right = at[0], at[0] + size[0]
    for level, colour in ((0.0, INK), (1.0, FAINT), (threshold, KEPT)):
        height = at[1] + (1 - level) * size[1]
        pen.line((left, height, right, height), fill=colour)
        pen.text((left - 26, height - 6), f"{level:.3g}", fill=colour)
    points = [place(start, 1.0), *(place(f.amount, f.overlap) for f in row)]
    pen.line(points, fill=INK, width=2)
    for (x, y), colour in zip(points, (KEPT, *(_colour(f, threshold) for f in row)), strict=True):
        pen.ellipse((x - 3, y - 3, x + 3, y + 3), fill=colour)


def _shades(images: Tensor) -> Tensor:
    """Images with values from 0 to 1."""
    low, high = images.min(), images.max()
    return (images - low) / (high - low).clamp_min(1e-6)


def _bytes(images: Tensor) -> NDArray[np.uint8]:
    """Images (N, C, h, w) as (N, h, w, 3)."""
    rgb = images if images.shape[1] == 3 else images.mean(1, keepdim=True).expand(-1, 3, -1, -1)
    return np.asarray((255 * rgb).round().permute(0, 2, 3, 1).contiguous().to(torch.uint8))
