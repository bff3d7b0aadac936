"""What goes beyond the paper, as rows of a table of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orbitpool.experiments.recipe import Recipe, Spec

AUTO: Spec = ("auto", {})  # the learner finds its transformations in the data


def auto_rows(digits: Sequence[Recipe], objects: Sequence[Recipe]) -> list[Recipe]:
    """Rows of Tables 1 and 2 with transformations found in the data instead of chosen by hand, and upright digits.

    All else is as in the rows that they stand beside. Upright digits, where little is to be found, have an RBM beside.
    """
    known = {recipe.row: recipe for recipe in (*digits, *objects)}

    def row(name: str, like: str, method: str, **different: Any) -> Recipe:
        return replace(known[like], table="beyond", row=name, method=method, paper=None, **different)

    found = "sparse TIRBM, transformations found without labels"
    return [
        *(row(f"{kind} auto", f"{kind} TIRBM", found, transforms=AUTO) for kind in ("rot", "trans", "scale")),
        row("mnist auto", "rot RBM", found, dataset="mnist", transforms=AUTO),
        row("mnist RBM", "rot RBM", "sparse RBM, on upright digits", dataset="mnist"),
        row("cifar10 auto", "TIOMP combined", "TIOMP-1/T, transformations found without labels", transforms=AUTO),
    ]
