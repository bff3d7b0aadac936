"""Where tries of stacks start, and what is tried."""

from dataclasses import replace
from math import pi
from typing import Any

from orbitpool.experiments.beyond import turns
from orbitpool.experiments.recipe import Recipe

Try = tuple[str, dict[str, Any]]

_SVM = {"class": "LinearSVM", "standardize": True, "tol": 1e-3}
START: dict[str, Recipe] = {
    "rot stack": Recipe(
        "beyond", "rot stack", "two layers", "error", None,
        dataset="rot",
        learner="TIOMP",
        parameters={"n_components": 4, "two_sided": False, "alpha": 0.25, "n_iter": 10},
        transforms=turns(5),
        conv={"n_patches": 100_000, "grid": 8, "poses": "keep", "output": "map", "contrast": 0.1, "precision": "full"},
        above={
            "parameters": {"n_components": 2000, "two_sided": False, "alpha": 1.0, "n_iter": 5},
            "transforms": ("turned_maps", {"window": 8, "poses": 16}),
            "conv": {"n_patches": 20_000, "grid": 1, "contrast": 1e-3, "whiten": 2.0, "precision": "full"},
        },
        classifier={**_SVM, "C": (0.0001, 0.001, 0.01, 0.1)},
    ),
    "cifar10 stack": Recipe(
        "beyond", "cifar10 stack", "two layers", "accuracy", None,
        dataset="cifar10",
        learner="TIOMP",
        parameters={"n_components": 128, "alpha": 0.25, "n_iter": 10, "batch_size": 2000},
        conv={"n_patches": 200_000, "patch_size": 5, "grid": 14, "output": "map"},
        above={
            "parameters": {"n_components": 2000, "alpha": 0.25, "n_iter": 10, "batch_size": 2000},
            "conv": {"n_patches": 200_000, "patch_size": 3, "grid": 2, "contrast": 1e-3, "whiten": 3.0},
        },
        classifier={**_SVM, "C": (0.00001, 0.00003, 0.0001, 0.0003, 0.001)},
    ),
}  # fmt: skip
_OBJECTS = START["cifar10 stack"]
START["cifar10 one layer"] = replace(
    _OBJECTS,
    parameters={**_OBJECTS.parameters, "n_components": 2000},
    conv={"n_patches": 200_000, "patch_size": 6, "grid": 2},
    above=None,
    classifier={**_SVM, "C": (0.0001, 0.0003, 0.001)},
)


def digits(above: dict[str, Any] | None = None, turned: dict[str, Any] | None = None, **different: Any) -> Try:
    """Turned digits: what is different in both layers, and in the turns of the second."""
    if turned is not None:
        above = {**(above or {}), "transforms": ("turned_maps", {"window": 8, "poses": 16, **turned})}
    return "rot stack", different | ({} if above is None else {"above": above})


WIDE = {"parameters": {"n_components": 2000, "alpha": 0.25, "n_iter": 10, "batch_size": 2000}}
WIDE |= {"conv": {"n_patches": 200_000, "patch_size": 6, "grid": 2}}


def objects(above: dict[str, Any] | None = None, **different: Any) -> Try:
    """Objects: what is different in both layers."""
    return "cifar10 stack", different | ({} if above is None else {"above": above})


def filters(K: int, **more: Any) -> dict[str, Any]:
    """Parameters of a learner."""
    return {"parameters": {"n_components": K, **more}}


def whitened(eps: float | None, **more: Any) -> dict[str, Any]:
    """Arguments of ConvFeatures."""
    return {"conv": {"whiten": eps, **more}}


ZOOMS = (0.87, 1.0, 1.15)
TRIES: list[Try] = [
    digits(turned={"zooms": ZOOMS}),
    digits(),
    objects(beside=WIDE),
    digits(whitened(1.0), {"window": 6, "zooms": ZOOMS}, conv={"grid": 6}),
    digits(filters(4000), {"zooms": ZOOMS}),
    ("cifar10 one layer", filters(4000)),
    digits(filters(2000, alpha=0.5), {"zooms": ZOOMS}),
    digits(turned={"zooms": (0.8, 0.9, 1.0, 1.1, 1.2)}),
    objects(whitened(10.0)),
    digits(whitened(0.7), {"zooms": ZOOMS}),
    digits(filters(8000), {"zooms": ZOOMS}),
    objects(whitened(10.0, patch_size=2), **filters(256)),
    digits(whitened(6.0), {"zooms": ZOOMS}),
    digits(turned={"zooms": ZOOMS}, conv={"contrast": 1.0}),
    objects({"stack": {"both": True}}, **filters(256)),
    objects(filters(4000)),
    digits(whitened(2.0), {"window": 6, "zooms": ZOOMS}, conv={"grid": 6}, **filters(8)),
    digits(turned={"zooms": ZOOMS, "count": 32}),
    objects(filters(2000, alpha=0.1)),
    objects({"transforms": ("translations", {"field": 4, "window": 3})}),
    objects(transforms=("rotations", {"window": 5, "count": 3, "step": pi / 12})),
]
