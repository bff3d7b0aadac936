"""Where tries of stacks start, and what is tried."""

from dataclasses import replace
from typing import Any

from orbitpool.experiments.beyond import turns
from orbitpool.experiments.recipe import Recipe
from orbitpool.experiments.recipes import TURNS_OF_SCALES

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
            "parameters": {"n_components": 2000, "two_sided": False, "alpha": 1.35, "n_iter": 5},
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


def maps(window: int = 8, poses: int = 16, **more: Any) -> Any:
    """Turns of maps."""
    return ("turned_maps", {"window": window, "poses": poses, **more})


def moved(window: int = 8, shift: float = 0.4, zoom: float | None = None, **more: Any) -> Any:
    """Turns of maps, a little up, down, left or right, and smaller or larger."""
    shifts = [(0, 0), *((sign * shift, 0) for sign in (1, -1)), *((0, sign * shift) for sign in (1, -1))]
    around = maps(window, shifts=shifts, **more)
    return around if zoom is None else ("union", {"sets": (around, maps(window, zooms=(1 / zoom, zoom), **more))})


def digits(above: dict[str, Any] | None = None, turned: Any = None, **different: Any) -> Try:
    """Turned digits: what is different in both layers, and in the transformations of the second."""
    above = (above or {}) | ({} if turned is None else {"transforms": turned})
    return "rot stack", different | ({"above": above} if above else {})


WIDE: dict[str, Any] = {
    "parameters": {"n_components": 2000, "alpha": 0.25, "n_iter": 10, "batch_size": 2000},
    "transforms": TURNS_OF_SCALES,
    "conv": {"n_patches": 200_000, "grid": 2, "mirror": True},
}
ONE = "cifar10 one layer"
LARGER = {"C": (0.0001, 0.0003, 0.001, 0.003)}  # mirror images want less regularisation
MIRROR = {"stack": {"mirror": True}}


def objects(above: dict[str, Any] | None = None, **different: Any) -> Try:
    """Objects: what is different in both layers."""
    return "cifar10 stack", different | ({} if above is None else {"above": above})


def filters(K: int, **more: Any) -> dict[str, Any]:
    """Parameters of a learner."""
    return {"parameters": {"n_components": K, **more}}


def whitened(eps: float | None, **more: Any) -> dict[str, Any]:
    """Arguments of ConvFeatures."""
    return {"conv": {"whiten": eps, **more}}


SMALLER = {"grid": 6}  # maps of 6x6 places
TRIES: list[Try] = [
    digits(filters(4000), moved(6, 0.3), conv=SMALLER),
    digits(filters(4000), moved(6, 0.3, count=32), conv=SMALLER),
    digits(filters(4000), moved(6, 0.3), conv=SMALLER, **filters(8)),
    objects(MIRROR | whitened(10.0), classifier=LARGER),
    objects(MIRROR | whitened(10.0, patch_size=2), classifier=LARGER, **filters(256)),
    objects(MIRROR | whitened(10.0) | filters(4000), classifier=LARGER),
    objects({"stack": {"mirror": True, "both": True}} | whitened(10.0), classifier=LARGER, **filters(256)),
    objects(MIRROR | {"transforms": ("translations", {"field": 4, "window": 3})}, classifier=LARGER),
    (ONE, {**WIDE, **filters(4000), "classifier": LARGER}),
]
