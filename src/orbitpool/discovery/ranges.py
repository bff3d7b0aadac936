"""From how far images may be moved to a set of transformations: how far apart poses are, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count, pairwise
from math import ceil, degrees, floor, prod, radians, sqrt

import numpy as np

from orbitpool import transforms as T

BUDGET = 32  # poses at most
MIRRORED = 0.9  # overlap from which on mirror images count, to which no smaller move leads
APART = 14  # neighbouring poses move the rim of a filter by this part of the field's side, or by a pixel


@dataclass(frozen=True)
class Ranges:
    """How far poses go on a field."""

    field: tuple[int, int]
    turn: float = 0.0  # degrees to either side
    shift: tuple[int, int] = (0, 0)  # pixels up and down, and to either side
    scale: float = 1.0  # the largest size by the smallest
    mirror: bool = False
    rim: int = 0  # pixels that the window leaves free for its corners when it turns

    def reaches(self, family: str, amount: float) -> bool:
        """Whether poses go as far as images that are moved by an amount; sizes differ to either side."""
        down, right = self.shift
        far = {
            "turn": self.turn,
            "shift down": down,
            "shift right": right,
            "scale": sqrt(self.scale),
            "mirror": self.mirror,
        }
        return amount <= far[family] + 1e-9

    def transforms(self) -> T.TransformSet:
        """Every turn of every size at every shift where that keeps to the budget, else all of them side by side."""
        if prod(self._counts()) <= BUDGET:
            return self._product()
        return next(joined for joined in map(self._union, count(1)) if len(joined) <= BUDGET)

    def _counts(self) -> tuple[int, int, int, int]:
        """Turns, shifts, sizes and mirror images at the usual distance."""
        down, right = ((2 * (m // s) + 1 if m else 1) for m, s in zip(self.shift, self._strides(1), strict=True))
        return self._turns(1)[0], down * right, len(self._sizes(self.field, 1)), 1 + self.mirror

    @property
    def _step(self) -> int:
        """Pixels between neighbouring shifts and sizes."""
        return max(1, round(min(self.field) / APART))

    def _turns(self, coarse: int) -> tuple[int, float]:
        """How many turns, and the angle between them in degrees: one that moves the rim of a filter by a step."""
        step = coarse * spacing(self.field)
        if self.turn >= 180:
            number = 4 * max(1, round(90 / step))  # quarter turns of each other are cheaper
            return number, 360 / number
        number = ceil(self.turn / step)
        return 2 * number + 1, self.turn / max(1, number)

    def _strides(self, coarse: int) -> tuple[int, int]:
        down, right = (max(1, min(m, coarse * self._step)) for m in self.shift)
        return down, right

    def _sizes(self, field: Sequence[int], coarse: int) -> list[int]:
        """Pixels that the field is larger than each part of it that is brought to the window's size."""
        if self.scale <= 1:
            return [0]
        most = max(1, floor(min(field) * (1 - 1 / self.scale) / self._step + 1e-9)) * self._step
        return list(range(0, most + 1, min(most, coarse * self._step)))

    def _product(self) -> T.TransformSet:
        inner = tuple(r - 2 * m for r, m in zip(self.field, self.shift, strict=True))
        steps = []
        if self.mirror:
            steps.append(T.mirrors(self.field))
        if any(self.shift):
            steps.append(self._shifts(self.field, inner, 1))
        if len(sizes := self._sizes(inner, 1)) > 1:
            steps.append(T.scalings(inner, tuple(r - sizes[-1] for r in inner), self._step))
        if self.turn:
            around = steps[-1].window_shape if steps else self.field
            number, step = self._turns(1)
            rim = 0 if len(sizes) > 1 else 2 * self.rim
            steps.append(T.rotations(tuple(r - rim for r in around), number, radians(step), field=around))
        return reduce(lambda inner, outer: T.compose(outer, inner), steps) if steps else T.identity(self.field)

    def _union(self, coarse: int) -> T.TransformSet:
        sizes = self._sizes(self.field, coarse)
        margin = max(sizes[-1], 2 * max(self.shift), 2 * self.rim)
        window = tuple(r - margin for r in self.field)
        number, step = self._turns(coarse)
        sets = [self._shifts(self.field, window, coarse), T.rotations(window, number, radians(step), field=self.field)]
        if len(sizes) > 1:
            scaled = T.scalings(self.field, window, self._step)
            sets.append(scaled[[len(scaled) - 1 - size // self._step for size in reversed(sizes)]])
        joined = T.union(*sets)
        return T.compose(joined, T.mirrors(self.field)) if self.mirror else joined

    def _shifts(self, field: Sequence[int], window: Sequence[int], coarse: int) -> T.TransformSet:
        """The crops whose distance from the middle is within the shifts."""
        near = [
            {(r - w) // 2 + k for k in range(-(m // s) * s, m + 1, s)}
            for r, w, m, s in zip(field, window, self.shift, self._strides(coarse), strict=True)
        ]
        shape = tuple(r - w + 1 for r, w in zip(field, window, strict=True))
        chosen = [i for i, at in enumerate(np.ndindex(shape)) if all(a in n for a, n in zip(at, near, strict=True))]
        return T.translations(field, window)[chosen]


LEAST = degrees(sqrt(8) / APART)  # the turn that moves the rim of a filter by that part


def spacing(field: tuple[int, int]) -> float:
    """The angle in degrees by which neighbouring turns differ, at most."""
    return max(LEAST, degrees(sqrt(8) / min(field)))


def needed(family: str, threshold: float) -> float:
    """The overlap from which on moved images count: mirror images, to which no smaller move leads, need more."""
    return max(threshold, MIRRORED) if family == "mirror" else threshold


def reach(amounts: Sequence[float], overlaps: Sequence[float], threshold: float, start: float = 0.0) -> float:
    """The amount up to which moved images overlap enough, all smaller ones included; between two by a line.

    It is less than what happened to the images. If all amounts up to A happened, to either side and equally often, then
    images that are moved by d overlap by 1 - d / 2A, and a threshold of 0.75 is met up to A / 2. Where the smallest
    amount is too much already, nothing is known of even smaller ones, and it is the start.
    """
    points = list(zip((start, *amounts), (1.0, *overlaps), strict=True))
    if overlaps[0] < threshold:
        return start
    for (a, before), (b, after) in pairwise(points):
        if after < threshold:
            return a + (b - a) * (before - threshold) / (before - after)
    return points[-1][0]


def ranges(found: dict[str, float], field: tuple[int, int], rim: int = 0, smallest: int = 1) -> Ranges:
    """Poses on a field that keep to what was found, shifts in pixels of the field; less than a step is nothing."""
    turn = found.get("turn", 0.0)
    turn = float(floor(turn)) if turn >= LEAST else 0.0
    side, step = min(field), max(1, round(min(field) / APART))
    down, right = (floor(found.get(f"shift {way}", 0.0) / step) * step for way in ("down", "right"))
    scale = min(found.get("scale", 1.0) ** 2, side / max(1, smallest))
    smaller = floor(side * (1 - 1 / scale) / step + 1e-9) * step
    return Ranges(field, turn, (down, right), side / (side - smaller), "mirror" in found, rim)
