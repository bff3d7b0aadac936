"""What an operator looks like, in words: turn by 45 degrees, shift by 2 right, scale by 0.8; or operator."""

from __future__ import annotations

from itertools import combinations
from math import log, pi

import torch
from torch import Tensor

from orbitpool.transforms.motions import FAMILIES, affine, centres, grid, in_words, linear_parts, matrices, read
from orbitpool.transforms.set import Shape

OFF = 0.2  # pixels, in the mean square, by which an operator may move pixels otherwise than what it is called
ALIKE = 0.6  # the least cosine between an operator and what it is called
PARTS = 2  # things that it may do at once to have a name
FACTOR = 3.0  # times larger or smaller, taller or narrower, beyond which an operator on images has no name
UNKNOWN = "operator"  # what is close to none
LOUD = 1.25  # times brighter or fainter, from which on it is said


def name(T: Tensor, field: Shape, window: Shape) -> tuple[str, tuple[float, ...]]:
    """The simplest known motion that an operator (D2, D1) is close to, in words, and a key that puts likes together.

    Rows of zeros, pixels that take from outside of the field, do not count. What an operator does to the brightness is
    taken out first, and said after the motion: "turn by 45 degrees, times 0.5".
    """
    gain = _gain(T, grid(field))
    words, key = (_name_shift if len(field) == 1 else _name_motion)(T / gain, field, window)
    loud = abs(log(gain)) > log(LOUD) and words != UNKNOWN
    return (f"{words}, times {gain:.2g}" if loud else words), key


def _gain(T: Tensor, places: Tensor) -> float:
    """How many times brighter an operator makes an image: the sum of a row's positive weights, in the median."""
    _, mass = centres(T, places)
    return float(mass[mass > 0].median()) if (mass > 0).any() else 1.0


def _name_motion(T: Tensor, field: Shape, window: Shape) -> tuple[str, tuple[float, ...]]:
    """The name of an operator on images."""
    motion, mirrored, _ = min((read(T, field, window, clamp) for clamp in (True, False)), key=lambda found: found[2])
    flip = torch.tensor([mirrored])
    for count in range(PARTS + 1):
        options = [_only(motion, families) for families in combinations(FAMILIES, count)]
        best = min(options, key=lambda option: _distance(option, motion, flip, window))
        if _distance(best, motion, flip, window) < OFF:
            ideal = matrices(best[None], flip, field, window, clamp=False)[0]
            if _cosine(T, ideal) < ALIKE or best[1:3].abs().max() > log(FACTOR):
                break
            turn, scale, *rest = best.tolist()
            turn += 2 * pi if turn < 0.01 - pi else 0.0  # half a turn is a turn to the left, as `rotations` has it
            return in_words(best, mirrored), (0, mirrored, count, *rest, scale, turn)
    return UNKNOWN, (1,)


def _only(motion: Tensor, families: tuple[str, ...]) -> Tensor:
    """The motion with nothing but what belongs to some families."""
    kept = [column for family in families for column in FAMILIES[family]]
    return torch.zeros_like(motion).index_copy(0, torch.tensor(kept, dtype=torch.long), motion[kept])


def _distance(motion: Tensor, other: Tensor, mirrored: Tensor, window: Shape) -> float:
    """Pixels between what two motions do to the places of a window, in the mean square."""
    first, second = (linear_parts(m[None], mirrored)[0] for m in (motion, other))
    centred = grid(window) - (torch.tensor(window) - 1) / 2
    gap = centred @ (first - second).T - (motion - other)[4:]
    return float(gap.square().sum(1).mean().sqrt())


def _name_shift(T: Tensor, field: Shape, window: Shape) -> tuple[str, tuple[float, ...]]:
    """The name of an operator on frames."""
    points, mass = centres(T, grid(field))
    line = affine(grid(window), points, mass.clamp(0, 1))
    middle = (window[0] - 1) / 2
    later = float((field[0] - 1) / 2 - (line[0, 0] * middle + line[1, 0]))
    flow = grid(window) + (field[0] - window[0]) / 2 - later
    ideal = (1 - (grid(field).T - flow).abs()).clamp_min(0)
    if abs(line[0, 0] - 1) * middle > 2 * OFF or _cosine(T, ideal) < ALIKE:
        return UNKNOWN, (1,)
    frames = round(later, 1)
    way = "later" if frames > 0 else "earlier"
    return (f"shift by {abs(frames):g} {way}" if frames else "identity"), (0, later)


def _cosine(T: Tensor, ideal: Tensor) -> float:
    """Between two operators, on the rows that the first one has."""
    ideal = ideal * (T != 0).any(1, keepdim=True)
    return float((T * ideal).sum() / (T.norm() * ideal.norm()).clamp_min(1e-12))
