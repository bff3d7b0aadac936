"""Rows that the paper does not have: what goes beyond it.

Settings were chosen on validation images: results/lab/beyond.csv has what was tried.
"""

from __future__ import annotations

from math import tau
from typing import Any

from orbitpool.experiments.recipe import Recipe, Spec

POSES = 16  # turns of a full circle


def turns(patch: int, poses: int = POSES) -> Spec:
    """Turns of patches that make up a full circle."""
    return ("rotations", {"window": patch, "count": poses, "step": tau / poses})


def around(window: int, shift: float) -> Spec:
    """Turns of maps about the centre, and about points above, below, left and right of it."""
    shifts = ((0, 0), (shift, 0), (-shift, 0), (0, shift), (0, -shift))
    return ("turned_maps", {"window": window, "poses": POSES, "shifts": shifts})


_DIGITS: dict[str, Any] = {
    "dataset": "rot",
    "learner": "TIOMP",
    "parameters": {"n_components": 4, "two_sided": False, "alpha": 0.25, "n_iter": 10},
    "transforms": turns(5),
    "conv": {
        "n_patches": 200_000,
        "grid": 8,
        "poses": "keep",
        "output": "map",
        "contrast": 0.1,  # of pixels of 0-1, so that faint edges stay faint
        "precision": "full",
    },
    "above": {
        "parameters": {"n_components": 4000, "two_sided": False, "alpha": 1.35, "n_iter": 5},
        "transforms": around(8, shift=0.4),
        "conv": {"n_patches": 20_000, "grid": 1, "contrast": 1e-3, "whiten": 2.0, "precision": "full"},
    },
    "classifier": {"class": "LinearSVM", "standardize": True, "C": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)},
}
_OMP: dict[str, Any] = {"alpha": 0.25, "n_iter": 10, "batch_size": 2000}
_OBJECTS: dict[str, Any] = {
    "dataset": "cifar10",
    "learner": "TIOMP",
    "parameters": {**_OMP, "n_components": 128},
    "conv": {"n_patches": 400_000, "patch_size": 5, "grid": 14, "output": "map"},
    "above": {
        "parameters": {**_OMP, "n_components": 4000},
        "conv": {"n_patches": 400_000, "patch_size": 3, "grid": 2, "contrast": 1e-3, "whiten": 3.0},
    },
    "beside": {  # a first layer that is too wide to learn a second one on
        "parameters": {**_OMP, "n_components": 4000},
        "conv": {"n_patches": 400_000, "patch_size": 6, "grid": 2},
    },
    "classifier": {"class": "LinearSVM", "C": (0.00003, 0.0001, 0.0003), "cv": 3, "standardize": True},
    "repeats": 3,
}


def stack_rows() -> list[Recipe]:
    """Two layers: of turned digits, whose maps turn in space and in pose, and of objects."""
    return [
        Recipe("beyond", "rot stack", "two layers of TIOMP", "error", None, **_DIGITS),
        Recipe(
            "beyond", "cifar10 stack", "two layers of OMP, and a wide one beside them", "accuracy", None, **_OBJECTS
        ),
    ]
