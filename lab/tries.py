"""What is tried: rows of the tables, and what is different from their recipes. Lists are only ever added to."""

from math import pi
from typing import Any

from orbitpool.experiments.recipes import PATCH_SCALES

SHORT = {"conv": {"n_patches": 200_000}, "parameters": {"n_iter": 20}}  # a quarter of the updates of a full run


def turns(window: int, count: int = 3) -> Any:
    return ("rotations", {"window": window, "count": count, "step": pi / 12})


def _short(**parameters: Any) -> dict[str, Any]:
    return {**SHORT, "parameters": {**SHORT["parameters"], **parameters}}


TRIES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "table2": [
        *(("OMP", {"parameters": {"alpha": alpha}}) for alpha in (0.25, 0.5)),
        *(("TIOMP combined", {"parameters": {"alpha": alpha}}) for alpha in (0.25, 0.5, 0.75, 1.0)),
        *(("TIOMP combined", {"parameters": {"alpha": a}, "transforms": turns(6)}) for a in (0.25, 0.5)),
        *(("TIOMP combined", {"parameters": {"alpha": a}, "transforms": turns(8)}) for a in (0.25, 0.5)),
        *(("TIOMP combined", {"parameters": {"alpha": a}, "transforms": PATCH_SCALES}) for a in (0.25, 0.5)),
        ("RBM", SHORT),
        ("TIRBM combined", SHORT),
        *(("TIRBM combined", _short(sparsity_target=target)) for target in (0.05, 0.02)),
        *(("TIRBM combined", _short(sparsity_cost=cost)) for cost in (1.0, 10.0)),
        ("TIRBM combined", _short(learning_rate=0.02)),
        ("TIRBM combined", _short(sigma=1.0)),
        *(("RBM", _short(sparsity_target=target)) for target in (0.05, 0.02)),
    ],
}
