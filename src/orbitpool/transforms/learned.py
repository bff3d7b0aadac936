"""Sets whose poses are learned: where they start, and what of them may change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import prod
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from orbitpool.excerpt import excerpt
from orbitpool.transforms.motions import FAMILIES, in_words, reach, read, weigh
from orbitpool.transforms.set import TransformSet
from orbitpool.transforms.sparse import Sparse

NEAR = 0.05  # the most that an operator may differ from a motion, in squares, relative
NOTHING = 1e-7  # weights that are less are none
SAME = 1e-6  # motions that differ by less have this number in common


class LearnedSet(TransformSet):
    """A transformation set that a `TIRBM` learns from: its poses are the first, and move as filters are learned.

    Made by `learned`. Other learners refuse it, and so do `union` and `compose`; it can be applied and indexed as the
    set that it starts from.

    Attributes
    ----------
    families : tuple of str
        What may change.
    learning_rate : float
        Pixels that a step moves a pose by, about.
    every : int
        Updates of the filters to a step of the poses.
    """

    def __init__(self, start: TransformSet, families: Iterable[str], learning_rate: float, every: int) -> None:
        _check(start, learning_rate, every)
        super().__init__(start._operators, start.field_shape, start.window_shape, start.labels)
        self.learning_rate, self.every = float(learning_rate), int(every)
        names = (families,) if isinstance(families, str) else tuple(families)
        if not names or any(name not in tuple(FAMILIES) for name in names):
            raise ValueError(f"families is {families!r}; give some of {', '.join(map(repr, FAMILIES))}")
        self.families = tuple(dict.fromkeys(names))

    @cached_property
    def start(self) -> Tensor:
        """The motions that the set starts from, (S, 6)."""
        return self._read[0]

    @cached_property
    def _read(self) -> tuple[Tensor, Tensor, bool]:
        """Motions (S, 6), which of them mirror (S,), and whether edge pixels are repeated outside the field."""
        dense, shapes = self.to_dense().double().cpu(), (self.field_shape, self.window_shape)
        tried = []
        for clamp in (True, False):
            found = [read(T, *shapes, clamp) for T in dense]
            tried.append((max(misfit for *_, misfit in found), found, clamp))
            if tried[-1][0] < SAME:
                break
        worst, found, clamp = min(tried, key=lambda each: each[0])
        if worst > NEAR:
            label = self.labels[max(range(len(self)), key=lambda s: found[s][2])]
            raise ValueError(
                f"{label!r} is off by {worst:.3g} of its squares from every turn, scaling, shift and shear, where "
                f"{NEAR} is allowed; poses are learned from sets of rotations, scalings, translations and mirrors"
            )
        return torch.stack([motion for motion, *_ in found]), torch.tensor([m for _, m, _ in found]), clamp

    @cached_property
    def free(self) -> Tensor:
        """Which numbers of a motion may change, (6,), and by how much in a step of one pixel."""
        allowed = torch.zeros(6, dtype=torch.float64)
        allowed[[column for name in self.families for column in FAMILIES[name]]] = 1
        return allowed / reach(self.window_shape)

    def near(self, motions: Tensor) -> tuple[TransformSet, dict[int, TransformSet]]:
        """The set of motions (S, 6), and how it changes with each of their numbers that may, by its column."""
        columns = self.free.nonzero().flatten().tolist()
        now, *changes = self._sets(motions, self.labels, columns)
        return now, dict(zip(columns, changes, strict=True))

    def at(self, motions: Tensor) -> TransformSet:
        """The set of motions (S, 6), whose labels say what they are."""
        motions = motions.detach().double().cpu()
        labels = [in_words(m, bool(mirrored)) for m, mirrored in zip(motions, self._read[1], strict=True)]
        return self._sets(motions, labels)[0]

    def _sets(self, motions: Tensor, labels: Iterable[str], free: Sequence[int] = ()) -> list[TransformSet]:
        """The operators of motions, and how they change with each number of these that is `free`."""
        _, mirrored, clamp = self._read
        shapes, size = (self.field_shape, self.window_shape), prod(self.field_shape)
        pixels, weights, slopes = weigh(motions, mirrored.to(motions.device), *shapes, clamp, free)
        return [TransformSet(_sparse(pixels, x, size), *shapes, labels) for x in (weights, *slopes)]

    @property
    def settings(self) -> dict[str, Any]:
        """What `learned` was given beside the start."""
        return {"families": self.families, "learning_rate": self.learning_rate, "every": self.every}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LearnedSet) and self.settings == other.settings and super().__eq__(other) is True

    __hash__ = TransformSet.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        plain = TransformSet(self._operators, self.field_shape, self.window_shape, self.labels)
        return LearnedSet, (plain, self.families, self.learning_rate, self.every)

    def __repr__(self) -> str:
        how = f"learns {', '.join(self.families)} by {self.learning_rate:g} pixels every {self.every} updates"
        return f"{super().__repr__().replace('TransformSet', 'LearnedSet', 1)[:-1]}; {how})"


def _sparse(pixels: Tensor, weights: Tensor, size: int) -> Sparse:
    """Operators (S, D2, size) of the pixels (S, D2, n) that have weights, in the order of `TransformSet`."""
    pixels, weights = (x.transpose(0, 1).flatten(0, 1) for x in (pixels, weights))
    kept = weights.abs() > NOTHING
    starts = pad(kept.sum(1).cumsum(0), (1, 0))
    return Sparse(starts.int(), pixels[kept].int(), weights[kept], (len(weights), size))


def learned(
    start: TransformSet, families: Iterable[str] | None = None, learning_rate: float = 0.3, every: int = 50
) -> LearnedSet:
    """A set whose poses a `TIRBM` learns along with its filters, by the gradient of the same objective.

    A step goes down the gradient on a thousand inputs, so that steps can be few and large. The fitted model has what
    the poses became in `transforms_`, under labels that say how far each one turns, scales, leans and shifts. Poses
    stay near where they start if there are filters enough to do without them.

    Parameters
    ----------
    start : TransformSet
        Rotations, scalings, translations, mirrors, their unions and products; or learned operators that are near such.
    families : sequence of {"turn", "scale", "stretch", "shear", "shift"}, optional
        What may change; if not given, what the poses of the start differ in.
    learning_rate : float
        Pixels that a step moves a pose by, about; 0 keeps the start.
    every : int
        Updates of the filters to a step of the poses, the first of which follows as many; some 200 steps in all are
        plenty, far more where poses have far to go. Those that go faster than 0.01 pixels an update may meet, and stay
        together.
    """
    made = LearnedSet(start, FAMILIES if families is None else families, learning_rate, every)
    varied = (made.start - made.start[:1]).abs().amax(0) > SAME  # reads the motions, and complains if there are none
    differ = [name for name, columns in FAMILIES.items() if varied[list(columns)].any()]
    return made if families is not None else LearnedSet(start, differ or FAMILIES, learning_rate, every)


def _check(start: Any, learning_rate: Any, every: Any) -> None:
    if not isinstance(start, TransformSet) or len(start.field_shape) != 2:
        raise ValueError(
            f"start is {excerpt(start)}; give a set of transformations of images, such as rotations(28, 16, 0.4)"
        )
    if isinstance(learning_rate, bool) or not isinstance(learning_rate, Real) or not 0 <= float(learning_rate) < 1:
        raise ValueError(f"learning_rate is {learning_rate!r}; give a number of pixels from 0 up, below 1")
    if isinstance(every, bool) or not isinstance(every, Integral) or every < 1:
        raise ValueError(f"every is {every!r}; it must be a whole number of updates, 1 or more")
