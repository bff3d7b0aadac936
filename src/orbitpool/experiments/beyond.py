"""What goes beyond the paper, as rows of a table of its own."""

from __future__ import annotations

from math import pi
from typing import Any

from orbitpool.experiments.recipe import Recipe, Spec

EIGHTHS = (0, 45, 90, 135, 180, 225, 270, 315)  # degrees, which are not told
UNEQUAL = (-150, -108, -70, -33, 10, 55, 95, 140)


def operator_rows() -> list[Recipe]:
    """Turned digits with eight turns, given or learned from 20,000 pairs of training images that differ by one."""

    def learned(degrees: tuple[int, ...]) -> Spec:
        return "learned_from_pairs", {"degrees": degrees, "pairs": 20_000}

    return [
        _digits("rot 8 turns", "sparse TIRBM, 8 turns", "rot", _turns(8, pi / 4), 0.04),
        _digits("rot learned operators", "sparse TIRBM, 8 operators learned from pairs", "rot", learned(EIGHTHS), 0.04),
        _digits("rot unequal operators", "the same, of unequal angles", "rot", learned(UNEQUAL), 0.04),
    ]


def pose_rows() -> list[Recipe]:
    """Poses that are learned beside those that they start from, which are right for turned digits, wrong for tilted."""
    all_round, few, right = _turns(16, pi / 8), _turns(5, pi / 8), _turns(5, pi / 18)
    return [
        _digits("rot learned poses", "sparse TIRBM, 16 turns that are learned", "rot", _learned(all_round), 0.04),
        _digits("tilt RBM", "sparse RBM, digits turned by up to 20°", "tilt", None, 0.03),
        _digits("tilt 5 turns", "sparse TIRBM, 5 turns by 22.5°", "tilt", few, 0.04),
        _digits("tilt learned poses", "the same, turns are learned", "tilt", _learned(few), 0.04),
        _digits("tilt right turns", "sparse TIRBM, 5 turns by 10°", "tilt", right, 0.04),
    ]


def _turns(count: int, step: float) -> Spec:
    return "rotations", {"window": 28, "count": count, "step": step}


def _learned(start: Spec, **how: Any) -> Spec:
    return "learned", {"start": start, "how": how}


def _digits(row: str, method: str, dataset: str, transforms: Spec | None, target: float) -> Recipe:
    return Recipe(
        "beyond",
        row,
        method,
        "error",
        None,
        dataset=dataset,
        learner="TIRBM",
        parameters={"n_components": 1000, "n_iter": 100, "sparsity_target": target},
        transforms=transforms,
        classifier={"class": "SoftmaxRegression", "C": (0.001, 0.01, 0.1, 1.0, 10.0)},
    )
