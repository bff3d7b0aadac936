"""Every row of the paper's Tables 1-5, and of what goes beyond it, as data: what was done, and what the paper reports.

Where the paper is silent the settings are the authors' published code's (CIFAR-10) or were chosen on validation data.
"""

from __future__ import annotations

from math import pi
from typing import Any

from orbitpool.experiments.beyond import auto_rows, operator_rows, pose_rows, stack_rows
from orbitpool.experiments.recipe import QUICK, Recipe, Spec

__all__ = ["FIGURES", "GAUSSIAN", "MANY", "QUICK", "TABLES", "Recipe", "Spec", "select"]

TURNS: Spec = ("rotations", {"window": 28, "count": 16, "step": pi / 8})
MORE_TURNS: Spec = ("rotations", {"window": 28, "count": 32, "step": pi / 16})  # not the paper's
SCALES: Spec = ("scalings", {"field": 28, "window": 20, "step": 2})
SHIFTS: Spec = ("translations", {"field": 28, "window": 24, "stride": 2})

SOME_TURNS: Spec = ("rotations", {"window": 6, "count": 3, "step": pi / 12})
PATCH_TURNS: Spec = ("rotations", {"window": 6, "count": 5, "step": pi / 12})  # step: authors' code; the paper has none
PATCH_SCALES: Spec = ("scalings", {"field": 8, "window": 6, "step": 2})
PATCH_SHIFTS: Spec = ("translations", {"field": 8, "window": 6, "stride": 2})
COMBINED: Spec = (
    "union",
    {"sets": (PATCH_SHIFTS, PATCH_SCALES, ("rotations", {"window": 6, "count": 5, "step": pi / 12, "field": 8}))},
)
TURNS_OF_SCALES: Spec = ("compose", {"sets": (SOME_TURNS, PATCH_SCALES)})

_DIGITS = {"n_components": 1000, "n_iter": 100}  # the rest is as the learner has it by default
_SOFTMAX = {"class": "SoftmaxRegression", "C": (0.001, 0.01, 0.1, 1.0, 10.0)}  # chosen on the validation set


def _table1() -> list[Recipe]:
    rows = (  # set, machine, transformations, sparsity target (chosen by cross-validation, docs/lab.md), paper's error
        ("rot", "RBM", None, 0.03, 15.6),
        ("rot", "TIRBM", TURNS, 0.04, 4.2),
        ("rot", "TIRBM 32 turns", MORE_TURNS, 0.03, None),
        ("rot-bgimg", "RBM", None, 0.1, 54.0),
        ("rot-bgimg", "TIRBM", TURNS, 0.1, 35.5),
        ("scale", "RBM", None, 0.03, 6.1),
        ("scale", "TIRBM", SCALES, 0.1, 5.5),
        ("scale-bgrand", "RBM", None, 0.02, 32.1),
        ("scale-bgrand", "TIRBM", SCALES, 0.02, 23.7),
        ("trans", "RBM", None, 0.05, 15.3),
        ("trans", "TIRBM", SHIFTS, 0.02, 9.1),
        ("trans-bgrand", "RBM", None, 0.03, 57.3),
        ("trans-bgrand", "TIRBM", SHIFTS, 0.03, 43.7),
    )
    return [
        Recipe(
            "table1",
            f"{name} {machine}",
            f"sparse {machine}",
            "error",
            paper,
            dataset=name,
            learner="TIRBM",
            parameters={**_DIGITS, "sparsity_target": target},
            transforms=transforms,
            classifier=_SOFTMAX,
        )
        for name, machine, transforms, target, paper in rows
    ]


GAUSSIAN: dict[str, Any] = {  # for whitened patches; authors' published code
    "visible": "gaussian",
    "sigma": "learned",
    "two_sided": True,
    "learning_rate": 0.005,
    "learning_rate_decay": 0.01,
    "momentum": {0: 0.5, 5: 0.9},
}
_RBM = {**GAUSSIAN, "weight_decay": 1e-4, "sparsity_cost": 3.0, "batch_size": 200, "n_iter": 75}
_OMP = {"alpha": 0.25, "n_iter": 15, "batch_size": 2000}
_LEARNERS: dict[str, dict[str, Any]] = {"TIRBM": _RBM, "TIOMP": _OMP, "KMeans": {}, "SparseCoding": {}}
_PATCHES = {"TIRBM": 100_000}  # to learn from; 400,000 for the others


def _machines(*settings: tuple[float, float, float, float | None]) -> list[Any]:
    """The five rows that Tables 2 and 3 share, by sigma, sparsity target (docs/lab.md) and the paper's figure."""
    rows = (
        ("RBM", "sparse RBM", None),
        ("TIRBM scaling", "sparse TIRBM (scaling only)", PATCH_SCALES),
        ("TIRBM rotation", "sparse TIRBM (rotation only)", PATCH_TURNS),
        ("TIRBM translation", "sparse TIRBM (translation only)", PATCH_SHIFTS),
        ("TIRBM combined", "sparse TIRBM (combined)", COMBINED),
    )
    return [
        (row, method, "TIRBM", {"n_components": 1600, "sigma": sigma, "sparsity_target": target}, poses, *paper)
        for (row, method, poses), (sigma, target, *paper) in zip(rows, settings, strict=True)
    ]


def _objects(
    table: str, dataset: str, rows: Any, repeats: int, folds: bool, C: tuple[float, ...], **conv: Any
) -> list[Recipe]:
    return [
        Recipe(
            table,
            row,
            method,
            "accuracy",
            paper,
            dataset=dataset,
            learner=learner,
            parameters={**_LEARNERS[learner], **parameters},
            transforms=transforms,
            conv={
                "n_patches": _PATCHES.get(learner, 400_000),
                "grid": 2,
                **({} if transforms else {"patch_size": 6}),
                **conv,
            },
            classifier={"class": "LinearSVM", "C": C, "cv": 5, "standardize": True},
            repeats=repeats,
            folds=folds,
            paper_std=std,
        )
        for row, method, learner, parameters, transforms, paper, std in rows
    ]


def _filters(count: int, **parameters: float) -> dict[str, float]:
    return {"n_components": count, **parameters}


PATCH_DELAYS: Spec = ("time_shifts", {"frames": 11, "window": 9})  # three temporal translations of one frame
_SPOKEN = {  # TIRBM's own settings but for the learning rate and momentum, which are the authors' published code's
    "visible": "gaussian",
    "two_sided": True,
    "learning_rate": 0.005,
    "momentum": {0: 0.5, 5: 0.9},
}
_EPOCHS = ({"n_iter": 15}, {"n_iter": 30})  # for a linear classifier on folds of the training speakers to choose from
_SPARSER = tuple({**epochs, "sparsity_cost": cost} for epochs in _EPOCHS for cost in (3.0, 10.0))
_LINEAR = {"class": "LinearSVM", "standardize": True, "tol": 1e-3}
_FEW = {**_LINEAR, "C": (0.003, 0.01, 0.03, 0.1)}  # for hundreds of features
MANY = {**_LINEAR, "C": (0.0001, 0.0003, 0.001, 0.003)}  # for thousands, which larger values overfit at great length
_RBF = {"class": "SVC", "C": (1.0, 3.0, 10.0)}  # with LIBSVM's default width, on standardised features


def _phones(table: str, rows: Any, with_mfcc: bool, choices: Any, repeats: int) -> list[Recipe]:
    return [
        Recipe(
            table,
            row,
            method,
            "accuracy",
            paper,
            dataset="timit",
            learner="TIRBM" if K else None,
            parameters={**_SPOKEN, "n_components": K} if K else {},
            transforms=transforms,
            speech={"normalize": "speaker", "with_mfcc": with_mfcc},
            choices=choices if K else None,
            classifier=classifier,
            repeats=repeats,
        )
        for row, method, K, transforms, classifier, paper in rows
    ]


def _others(table: str, rows: Any) -> list[Recipe]:
    return [Recipe(table, row, row, "accuracy", paper, paper_std=std) for row, paper, std in rows]


def _mirrored() -> list[Recipe]:
    """Rows of Tables 2 and 3 with features that are averaged with those of the mirror image."""
    cifar10 = (
        ("cifar10 OMP mirror", "OMP-1/T (K=1,600), mirrored", "TIOMP", _filters(1600), None, None, None),
        ("cifar10 TIOMP mirror", "TIOMP-1/T (K=1,600), mirrored", "TIOMP", _filters(1600), TURNS_OF_SCALES, None, None),
        ("cifar10 OMP 4000 mirror", "OMP-1/T (K=4,000), mirrored", "TIOMP", _filters(4000), None, None, None),
        (BEST, "TIOMP-1/T (K=4,000), mirrored", "TIOMP", _filters(4000), TURNS_OF_SCALES, None, None),
    )
    stl10 = [
        (f"stl10 {row} mirror", f"{method}, mirrored", *how, None, None)
        for row, method, *how, _, _ in _machines(*TABLE3)
    ]
    return [
        *_objects("beyond", "cifar10", cifar10, 3, False, (0.001, 0.003, 0.01, 0.03), mirror=True),
        *_objects("beyond", "stl10", stl10, 1, True, STL10, mirror=True),
    ]


TABLE3 = (  # for `_machines`, in its order
    (0.25, 0.05, 55.0, 0.5),
    (0.18, 0.05, 55.9, 0.7),
    (0.12, 0.1, 57.0, 0.7),
    (0.12, 0.05, 57.8, 0.5),
    (0.1, 0.05, 58.7, 0.5),
)
BEST = "cifar10 TIOMP 4000 mirror"  # single layer
STL10 = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003)  # values of C for 1,000 labels
TABLES: dict[str, list[Recipe]] = {
    "table1": _table1(),
    "table2": _objects(
        "table2",
        "cifar10",
        (
            *_machines(
                (0.25, 0.02, 72.4, None),
                (0.18, 0.05, 76.8, None),
                (0.12, 0.1, 77.7, None),
                (0.12, 0.1, 77.5, None),
                (0.12, 0.2, 78.8, None),
            ),
            (
                "TIRBM combined 4000",
                "sparse TIRBM (combined, K=4,000)",
                "TIRBM",
                _filters(4000, sigma=0.12, sparsity_target=0.2),
                COMBINED,
                80.1,
                None,
            ),
            (
                "TIOMP combined",
                "TIOMP-1/T (combined: turns of scales)",
                "TIOMP",
                _filters(1600),
                TURNS_OF_SCALES,
                80.7,
                None,
            ),
            (
                "TIOMP combined 4000",
                "TIOMP-1/T (the same, K=4,000)",
                "TIOMP",
                _filters(4000),
                TURNS_OF_SCALES,
                82.2,
                None,
            ),
            ("OMP", "OMP-1/T (K=1,600)", "TIOMP", _filters(1600), None, 79.4, None),
            (
                "OMP 4000",
                "OMP-1/T (K=4,000)",
                "TIOMP",
                _filters(4000),
                None,
                None,
                None,
            ),  # for equal numbers of filters
            ("OMP 6000", "OMP-1/T (K=6,000)", "TIOMP", _filters(6000), None, 81.5, None),
            ("VQ 4000", "k-means, triangle (K=4,000)", "KMeans", _filters(4000), None, 79.6, None),
        ),
        repeats=3,
        folds=False,
        C=(0.0001, 0.0003, 0.001, 0.003, 0.01),
    )
    + _others(
        "table2",
        (
            ("convolutional DBN", 78.9, None),
            ("deep NN (Ciresan et al.)", 80.5, None),
            ("deep NN (Coates & Ng)", 82.0, None),
        ),
    ),
    "table3": _objects(
        "table3",
        "stl10",
        (
            *_machines(*TABLE3),
            ("VQ", "OMP-1/T", "TIOMP", _filters(1600), None, 54.9, 0.4),  # gain-shape vector quantization
            ("SC", "sparse coding", "SparseCoding", _filters(1600), None, 59.0, 0.8),
        ),
        repeats=1,
        folds=True,
        C=STL10,
    )
    + _others(
        "table3",
        (("deep NN (Coates & Ng)", 60.1, 1.0),),
    ),
    "table4": _phones(
        "table4",
        (
            ("MFCC", "MFCC", 0, None, _FEW, 68.2),
            ("RBM", "sparse RBM", 256, None, MANY, 76.3),
            ("TIRBM", "sparse TIRBM", 256, PATCH_DELAYS, MANY, 77.6),
        ),
        with_mfcc=False,
        choices=_SPARSER,
        repeats=3,
    )
    + _others("table4", (("sparse coding (Ngiam)", 76.8, None), ("sparse filtering (Ngiam)", 75.7, None))),
    "table5": _phones(
        "table5",
        (
            ("MFCC", "MFCC (baseline)", 0, None, _RBF, 80.0),
            ("TIRBM 256", "MFCC + TIRBM (K=256)", 256, PATCH_DELAYS, _RBF, 81.0),
            ("TIRBM 512", "MFCC + TIRBM (K=512)", 512, PATCH_DELAYS, _RBF, 81.5),
        ),
        with_mfcc=True,
        choices=_EPOCHS,
        repeats=1,
    )
    + _others(
        "table5",
        (
            ("MFCC + SC (Ngiam et al.)", 80.1, None),
            ("MFCC + SF (Ngiam et al.)", 80.5, None),
            ("MFCC + CDBN (Lee et al.)", 80.3, None),
            ("H-LMGMM (Chang & Glass)", 81.3, None),
        ),
    ),
}

_AUTO = auto_rows(TABLES["table1"], TABLES["table2"])
_MIRRORED = _mirrored()
_STACKS = stack_rows(wide=next(recipe for recipe in _MIRRORED if recipe.row == BEST))
TABLES["beyond"] = [*_AUTO, *operator_rows(), *pose_rows(), *_STACKS, *_MIRRORED]

FIGURES = ("figure3", "figure4", "invariance", "found")  # the last two are not the paper's


def select(table: str, rows: list[str] | None = None) -> list[Recipe]:
    """The rows of a table that are called so, or whose first word is; all that can be run if no names are given."""
    if table not in TABLES:
        raise ValueError(f"there is no {table!r}; choose one of {', '.join((*TABLES, *FIGURES))}")
    runnable = [recipe for recipe in TABLES[table] if recipe.dataset]
    named = {name: _called(name, runnable) for name in rows or ()}
    for name, found in named.items():
        if not found:
            names = ", ".join(recipe.row for recipe in runnable)
            raise ValueError(f"{table} has no row {name!r} that can be run; choose from: {names}")
    return runnable if rows is None else [r for r in runnable if any(r in found for found in named.values())]


def _called(name: str, recipes: list[Recipe]) -> list[Recipe]:
    """The row of that name, or else the rows whose first word it is."""
    exact = [recipe for recipe in recipes if recipe.row.lower() == name.lower()]
    return exact or [recipe for recipe in recipes if recipe.row.lower().split(" ")[0] == name.lower()]
