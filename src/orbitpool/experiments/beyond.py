"""Rows that the paper does not have: what goes beyond it.

Settings were chosen on validation images or by cross-validation on training images (results/lab/beyond.csv).
"""

from __future__ import annotations

from math import tau
from typing import Any

from orbitpool.experiments.recipe import Recipe, Spec

POSES = 16  # turns of a full circle


def turns(patch: int, poses: int = POSES) -> Spec:
    """Turns of patches that make up a full circle."""
    return ("rotations", {"window": patch, "count": poses, "step": tau / poses})


def stack_rows() -> list[Recipe]:
    """Two layers: turned digits, whose maps turn in space and in pose, and objects."""
    digits: dict[str, Any] = {
        "parameters": {"n_components": 8, "two_sided": False, "alpha": 0.25, "n_iter": 10},
        "transforms": turns(5),
        "conv": {"n_patches": 200_000, "grid": 8, "poses": "keep", "output": "map"},
        "above": {
            "parameters": {"n_components": 4000, "two_sided": False, "alpha": 25.0, "n_iter": 5},
            "transforms": ("turned_maps", {"window": 8, "poses": POSES}),
            "conv": {"n_patches": 20_000, "grid": 1, "contrast": 1e-3, "whiten": None},
        },
    }
    objects: dict[str, Any] = {
        "parameters": {"n_components": 128, "alpha": 0.25, "n_iter": 10, "batch_size": 2000},
        "conv": {"n_patches": 400_000, "patch_size": 5, "grid": 14, "output": "map"},
        "above": {
            "parameters": {"n_components": 4000, "alpha": 0.25, "n_iter": 10, "batch_size": 2000},
            "conv": {"n_patches": 400_000, "patch_size": 3, "grid": 2, "contrast": 1e-3, "whiten": 0.1},
        },
    }
    softmax = {"class": "SoftmaxRegression", "C": (0.001, 0.01, 0.1, 1.0, 10.0)}
    svm = {"class": "LinearSVM", "C": (0.0001, 0.0003, 0.001, 0.003, 0.01), "cv": 5, "standardize": True}
    return [
        _stack("rot stack", "two layers, TIOMP on TIOMP", "error", dataset="rot", classifier=softmax, **digits),
        _stack("cifar10 stack", "two layers, OMP on OMP", "accuracy", dataset="cifar10", classifier=svm, **objects),
    ]


def _stack(row: str, method: str, metric: Any, **more: Any) -> Recipe:
    return Recipe("beyond", row, method, metric, None, learner="TIOMP", **more)
