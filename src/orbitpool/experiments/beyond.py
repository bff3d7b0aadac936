"""What goes beyond the paper, as rows of a table of its own.

Settings of stacks were chosen on held-out training images, and how far poses go that start all round in
cross-validation (docs/lab.md); those of operators and other poses are the defaults, and Table 1's else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import pi, radians, tau
from typing import Any

from orbitpool.experiments.recipe import Recipe, Spec

EIGHTHS = (0, 45, 90, 135, 180, 225, 270, 315)  # degrees, which are not told


def operator_rows() -> list[Recipe]:
    """Turned digits with eight turns, given or learned from 20,000 pairs of training images that differ by one."""
    turns, pairs = _turns(8, pi / 4), {"degrees": EIGHTHS, "count": 20_000}
    return [
        _digits("rot TIRBM 8 turns", "sparse TIRBM, 8 turns by 45°", "rot", turns),
        _digits("rot TIRBM operators", "sparse TIRBM, 8 operators learned from pairs", "rot", turns, pairs=pairs),
    ]


def pose_rows() -> list[Recipe]:
    """Poses that are learned beside those that they start from: all round, and for digits that lean."""
    all_round, far = _turns(16, pi / 8), {"learning_rate": 0.9, "every": 2}
    rows = [_digits("rot TIRBM poses", "sparse TIRBM, 16 turns that are learned", "rot", _learned(all_round))]
    for row, count, angle, how in (
        ("tilt TIRBM", 5, 22.5, {}),
        ("tilt TIRBM by 10", 5, 10.0, {}),
        ("tilt TIRBM by 5", 5, 5.0, {}),
        ("tilt TIRBM all round", 16, 22.5, far),
    ):
        given = _turns(count, radians(angle))
        method = f"sparse TIRBM, digits that lean by up to 20°, {count} turns by {angle:g}°"
        rows += [_digits(row, method, "tilt", given)]
        rows += [_digits(f"{row} poses", "the same turns, learned", "tilt", _learned(given, **how))]
    return rows


def _turns(count: int, step: float) -> Spec:
    return "rotations", {"window": 28, "count": count, "step": step}


def _learned(start: Spec, **how: float) -> Spec:
    return "learned", {"start": start, "how": how}


def _digits(row: str, method: str, dataset: str, transforms: Spec, **more: Any) -> Recipe:
    return Recipe(
        "beyond",
        row,
        method,
        "error",
        None,
        dataset=dataset,
        learner="TIRBM",
        parameters={"n_components": 1000, "n_iter": 100, "sparsity_target": 0.04},
        transforms=transforms,
        classifier={"class": "SoftmaxRegression", "C": (0.001, 0.01, 0.1, 1.0, 10.0)},
        **more,
    )


POSES = 16  # turns of a full circle


def turns(patch: int, poses: int = POSES) -> Spec:
    """Turns of patches that make up a full circle."""
    return ("rotations", {"window": patch, "count": poses, "step": tau / poses})


def around(window: int, shift: float) -> Spec:
    """Turns of maps by half a step, about the centre and about points above, below, left and right of it."""
    shifts = ((0, 0), (shift, 0), (-shift, 0), (0, shift), (0, -shift))
    return ("turned_maps", {"window": window, "poses": POSES, "count": 2 * POSES, "shifts": shifts})


_DIGITS: dict[str, Any] = {
    "dataset": "rot",
    "learner": "TIOMP",
    "parameters": {"n_components": 4, "two_sided": False, "alpha": 0.25, "n_iter": 10},
    "transforms": turns(5),
    "conv": {
        "n_patches": 200_000,
        "grid": 6,
        "poses": "keep",
        "output": "map",
        "contrast": 0.1,  # of pixels of 0-1, so that faint edges stay faint
        "precision": "full",
    },
    "above": {
        "parameters": {"n_components": 4000, "two_sided": False, "alpha": 1.35, "n_iter": 5},
        "transforms": around(6, shift=0.3),
        "conv": {"n_patches": 20_000, "grid": 1, "contrast": 1e-3, "whiten": 2.0, "precision": "full"},
    },
    "classifier": {"class": "LinearSVM", "standardize": True, "C": (0.0003, 0.001, 0.003)},
}
_OMP: dict[str, Any] = {"alpha": 0.25, "n_iter": 10, "batch_size": 2000}
_OBJECTS: dict[str, Any] = {
    "dataset": "cifar10",
    "learner": "TIOMP",
    "parameters": {**_OMP, "n_components": 128},
    "conv": {"n_patches": 400_000, "patch_size": 5, "grid": 14, "output": "map"},
    "above": {
        "parameters": {**_OMP, "n_components": 4000},
        "conv": {"n_patches": 400_000, "patch_size": 3, "grid": 2, "contrast": 1e-3, "whiten": 10.0},
        "stack": {"mirror": True},
    },
    "classifier": {"class": "LinearSVM", "C": (0.0001, 0.0003, 0.001), "cv": 3, "standardize": True},
}


def stack_rows(wide: Recipe) -> list[Recipe]:
    """Two layers: of turned digits, whose maps turn in space and in pose, and of objects, a wide layer beside them."""
    beside = {"parameters": wide.parameters, "transforms": wide.transforms, "conv": wide.conv}
    objects = {**_OBJECTS, "beside": beside}
    return [
        Recipe("beyond", "rot stack", "two layers of TIOMP", "error", None, **_DIGITS),
        Recipe("beyond", "cifar10 stack", f"two layers of OMP beside {wide.row}", "accuracy", None, **objects),
    ]


AUTO: Spec = ("auto", {})  # the learner finds its transformations in the data


def auto_rows(digits: Sequence[Recipe], objects: Sequence[Recipe]) -> list[Recipe]:
    """Rows of Tables 1 and 2 with transformations found in the data instead of chosen by hand, and upright digits.

    All else is as in the rows that they stand beside. Upright digits, where little is to be found, have an RBM beside.
    """
    known = {recipe.row: recipe for recipe in (*digits, *objects)}

    def row(name: str, like: str, method: str, **different: Any) -> Recipe:
        return replace(known[like], table="beyond", row=name, method=method, paper=None, **different)

    found = "sparse TIRBM, transformations found without labels"
    kinds = ("rot", "trans", "scale")
    return [
        *(row(f"{k} auto", f"{k} TIRBM", f"{found} (by hand: Table 1, {k} TIRBM)", transforms=AUTO) for k in kinds),
        row("mnist auto", "rot RBM", found, dataset="mnist", transforms=AUTO),
        row("mnist RBM", "rot RBM", "sparse RBM, on upright digits", dataset="mnist"),
        row(
            "cifar10 auto",
            "TIOMP combined",
            "TIOMP-1/T, transformations found without labels (by hand: Table 2, TIOMP combined)",
            transforms=AUTO,
        ),
    ]
