"""What is tried: rows of the tables, and what is different from BASE."""

from math import pi
from typing import Any

from orbitpool.experiments.recipes import PATCH_SCALES, PATCH_SHIFTS

Try = tuple[str, dict[str, Any]]

_GAUSSIAN: dict[str, Any] = {
    "visible": "gaussian",
    "sigma": "learned",
    "two_sided": True,
    "learning_rate": 0.005,
    "learning_rate_decay": 0.01,
    "momentum": {0: 0.5, 5: 0.9},
    "weight_decay": 1e-4,
    "sparsity_target": 0.1,
    "sparsity_cost": 3.0,
}
BASE: dict[tuple[str, str | None], dict[str, Any]] = {  # where tries started; recipes have moved on
    ("table1", "TIRBM"): {"n_iter": 100},  # else as the learner has it by default
    ("table2", "TIRBM"): {**_GAUSSIAN, "batch_size": 200, "n_iter": 40},
    ("table2", "TIOMP"): {"alpha": 0.25, "n_iter": 15, "batch_size": 2000},
}
BASE |= {("table3", learner): BASE["table2", learner] for learner in ("TIRBM", "TIOMP")}


def turns(window: int, count: int = 3, step: float = pi / 12, **field: int) -> Any:
    return ("rotations", {"window": window, "count": count, "step": step, **field})


def union(*sets: Any) -> Any:
    return ("union", {"sets": sets})


def compose(outer: Any, inner: Any) -> Any:
    return ("compose", {"sets": (outer, inner)})


SOME_TURNS = turns(6, field=8)
UNION = union(PATCH_SHIFTS, PATCH_SCALES, turns(6, 5, field=8))
TURNS_AND_SCALES, TURNS_OF_SCALES = union(SOME_TURNS, PATCH_SCALES), compose(turns(6), PATCH_SCALES)
TURNS_AND_SHIFTS, TURNS_OF_SHIFTS = union(turns(6, 5, field=8), PATCH_SHIFTS), compose(turns(6), PATCH_SHIFTS)
TURNS_OF_BOTH = compose(turns(6), union(PATCH_SHIFTS, PATCH_SCALES))
TURNS_32, TURNS_64 = (("rotations", {"window": 28, "count": n, "step": 2 * pi / n}) for n in (32, 64))


BESIDE = ("transforms", "reading", "encoding", "gradient", "conv", "classifier")


def digits(row: str, **different: Any) -> Try:
    """What is in BESIDE, and parameters of the learner."""
    beside = {name: different.pop(name, None) for name in BESIDE} | {"parameters": different}
    return row, {name: value for name, value in beside.items() if value}


def patches(row: str, epochs: int, **different: Any) -> Try:
    """So many epochs of 500 updates."""
    return digits(row, n_iter=epochs, **{**different, "conv": {"n_patches": 100_000, **different.get("conv", {})}})


def filters(row: str = "TIOMP combined", **different: Any) -> Try:
    """Filters by (TI)OMP."""
    return digits(row, **different)


def _short(**parameters: Any) -> dict[str, Any]:
    return {"conv": {"n_patches": 200_000}, "parameters": {"n_iter": 20, **parameters}}


FINE_SHIFTS = ("translations", {"field": 8, "window": 6, "stride": 1})
BEST: dict[str, Any] = {"sigma": 0.1, "sparsity_target": 0.05, "transforms": UNION}
ENCODINGS = (["times", 2], ["plus", -1], "softplus", ["threshold", 0.25])

PLAIN = [{"standardize": False, "C": C} for C in ([0.1, 1, 10, 100, 1000], [0.001, 0.003, 0.01, 0.03, 0.1])]

SOME = ("rot", "trans", "rot-bgimg")
TRIES: dict[str, list[Try]] = {
    "table1": [
        *(digits("rot TIRBM", sparsity_target=p) for p in (0.1, 0.05, 0.2, 0.03, 0.02)),
        *(digits("rot TIRBM", sparsity_cost=cost) for cost in (1.0, 10.0)),
        *(digits("rot TIRBM", learning_rate=rate) for rate in (0.02, 0.1)),
        *(digits("rot TIRBM", weight_decay=decay) for decay in (1e-3, 1e-5)),
        digits("rot TIRBM", n_iter=200),
        digits("rot TIRBM", persistent=True),
        digits("rot TIRBM", cd_steps=3),
        digits("rot TIRBM", batch_size=50),
        digits("rot TIRBM", transforms=("rotations", {"window": 28, "count": 16, "step": pi / 8, "border": "zero"})),
        *(digits("rot TIRBM", transforms=TURNS_32, sparsity_target=p) for p in (0.1, 0.05, 0.03, 0.02)),
        *(digits("rot TIRBM", transforms=TURNS_32, sparsity_target=0.05, learning_rate=r) for r in (0.02, 0.1)),
        digits("rot TIRBM", transforms=TURNS_32, sparsity_target=0.05, sparsity_cost=1.0),
        digits("rot TIRBM", transforms=TURNS_64, sparsity_target=0.05),
        *(digits(f"{name} RBM", sparsity_target=p) for name in SOME for p in (0.1, 0.05, 0.03)),
        *(digits(f"{name} RBM", learning_rate=r) for name in SOME for r in (0.02, 0.1)),
        *(digits("trans TIRBM", sparsity_target=p) for p in (0.1, 0.05, 0.2, 0.03, 0.02, 0.01)),
        *(digits("trans TIRBM", learning_rate=r) for r in (0.02, 0.1)),
        digits("trans TIRBM", sparsity_cost=10.0),
        digits("trans TIRBM", sparsity_target=0.05, learning_rate=0.1),
        digits("trans TIRBM", sparsity_target=0.02, learning_rate=0.1),
        digits(
            "trans TIRBM",
            sparsity_target=0.05,
            transforms=("translations", {"field": 28, "window": 24, "stride": 1}),
        ),
        *(digits("rot-bgimg TIRBM", sparsity_target=p) for p in (0.1, 0.05, 0.2)),
        *(digits("rot-bgimg TIRBM", learning_rate=r) for r in (0.02, 0.1)),
        digits("rot-bgimg TIRBM", sparsity_cost=10.0),
        *(digits("scale TIRBM", sparsity_target=p, reading="frame") for p in (0.1, 0.05, 0.2)),
        digits("scale RBM", sparsity_target=0.1, reading="frame"),
        *(digits(f"scale-bgrand {m}", sparsity_target=0.1, reading="frame, brighter") for m in ("RBM", "TIRBM")),
        *(digits(f"trans-bgrand {m}", sparsity_target=0.1, reading="brighter") for m in ("RBM", "TIRBM")),
        *(digits(f"scale-bgrand {m}", sparsity_target=0.1, reading="brighter") for m in ("RBM", "TIRBM")),
        *(digits(f"scale-bgrand {m}", sparsity_target=0.1, reading="frame") for m in ("RBM", "TIRBM")),
        *(
            digits(f"{name} {machine}", sparsity_target=p)
            for name in ("scale", "scale-bgrand", "trans-bgrand")
            for machine in ("RBM", "TIRBM")
            for p in (0.1, 0.05, 0.03)
        ),
        *(digits(f"scale {m}", learning_rate=0.1) for m in ("RBM", "TIRBM")),
        *(digits(f"scale-bgrand {m}", sparsity_target=0.02) for m in ("RBM", "TIRBM")),
        *(digits("rot TIRBM", sparsity_target=0.03, sparsity_cost=cost) for cost in (1.0, 10.0)),
        digits("rot TIRBM", sparsity_target=0.04),
        digits("rot TIRBM", sparsity_target=0.04, learning_rate=0.02, n_iter=200),
        digits("rot TIRBM", sparsity_target=0.03, learning_rate=0.1),
        digits("rot TIRBM", transforms=TURNS_64, sparsity_target=0.03),
        *(digits(f"{name} RBM", sparsity_target=p) for name in ("rot", "scale", "trans-bgrand") for p in (0.02, 0.01)),
        *(digits(f"scale-bgrand {machine}", sparsity_target=0.01) for machine in ("RBM", "TIRBM")),
        digits("rot TIRBM", sparsity_target=0.04, gradient="approximate"),
        digits("trans TIRBM", sparsity_target=0.02, gradient="approximate"),
        digits(
            "trans TIRBM",
            sparsity_target=0.02,
            transforms=compose(
                ("translations", {"field": 32, "window": 28, "stride": 2}), ("pad", {"field": 28, "window": 32})
            ),
        ),
    ],
    "table2": [
        *(filters("OMP", alpha=alpha) for alpha in (0.25, 0.5)),
        *(filters(transforms=UNION, alpha=alpha) for alpha in (0.25, 0.5, 0.75, 1.0)),
        *(filters(transforms=turns(w), alpha=alpha) for w in (6, 8) for alpha in (0.25, 0.5)),
        *(filters(transforms=PATCH_SCALES, alpha=alpha) for alpha in (0.25, 0.5)),
        ("RBM", _short()),
        *(("TIRBM combined", _short(**d) | {"transforms": UNION}) for d in ({}, {"sparsity_target": 0.05})),
        ("TIRBM combined", _short(sparsity_target=0.02) | {"transforms": UNION}),
        ("TIRBM combined", _short(sparsity_cost=1.0) | {"transforms": UNION}),
        *(patches("RBM", 150, encoding=e) for e in (None, *ENCODINGS)),
        *(patches("TIRBM combined", 150, transforms=UNION, encoding=e) for e in (None, *ENCODINGS)),
        *(patches("TIRBM translation", 150, encoding=e) for e in (None, ["threshold", 0.25])),
        *(patches("TIRBM rotation", 150, encoding=e) for e in (None, ["threshold", 0.25])),
        filters(transforms=PATCH_SHIFTS),
        filters(transforms=TURNS_AND_SCALES),
        *(filters(transforms=turns(8, n, step)) for n, step in ((5, pi / 24), (3, pi / 16))),
        filters(transforms=("translations", {"field": 8, "window": 7, "stride": 1})),
        filters(transforms=("scalings", {"field": 8, "window": 7, "step": 1})),
        *(filters(transforms=TURNS_AND_SCALES, alpha=alpha) for alpha in (0.15, 0.2, 0.3)),
        filters(transforms=TURNS_OF_SCALES),
        filters(transforms=compose(turns(8), ("scalings", {"field": 10, "window": 8, "step": 2}))),
        filters(transforms=compose(turns(7), ("scalings", {"field": 8, "window": 7, "step": 1}))),
        filters(transforms=TURNS_AND_SCALES, n_components=4000),
        filters("OMP", n_components=4000),
        ("OMP", {"conv": {"patch_size": 8}}),
        *(
            patches("TIRBM rotation", 75, encoding=e)
            for e in (
                None,
                ["plus", 1],
                ["times", 0.5],
                ["times", 0.7],
                *(["threshold", a] for a in (0.1, 0.25, 0.5, 1)),
            )
        ),
        *(patches("TIRBM rotation", 75, learning_rate=r) for r in (0.02, 0.01)),
        *(patches("TIRBM rotation", 75, weight_decay=d) for d in (1e-3, 0.0)),
        *(patches("TIRBM rotation", 75, sparsity_cost=c) for c in (1.0, 10.0)),
        *(patches("TIRBM rotation", 75, sparsity_target=p) for p in (0.05, 0.2, 0.02)),
        *(patches("TIRBM rotation", 75, sigma=s) for s in (1.0, 0.6, 0.25, 0.18, 0.12, 0.08)),
        *(patches("TIRBM rotation", 75, sigma=0.18, sparsity_target=p) for p in (0.05, 0.02)),
        patches("TIRBM rotation", 75, sigma=0.18, learning_rate=0.002),
        patches("TIRBM rotation", 150, sigma=0.18),
        *(patches("RBM", 75, sigma=s) for s in (0.25, 0.18, 0.12)),
        *(patches(f"TIRBM {one}", 75, sigma=0.18) for one in ("scaling", "translation")),
        *(patches("TIRBM combined", 75, sigma=0.18, transforms=t) for t in (UNION, TURNS_AND_SCALES, TURNS_OF_SCALES)),
        patches("TIRBM combined", 75, sigma=0.12, transforms=TURNS_OF_SCALES),
        patches("TIRBM combined", 75, sigma=0.18, transforms=turns(8)),
        *(patches("TIRBM combined", 75, sigma=s, transforms=UNION) for s in (0.12, 0.15)),
        *(patches("TIRBM combined", 75, sigma=0.15, transforms=t) for t in (TURNS_AND_SHIFTS, TURNS_OF_SHIFTS)),
        patches("TIRBM combined", 150, sigma=0.15, transforms=UNION, learning_rate=0.002),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, learning_rate=0.002),
        patches("TIRBM combined", 75, sigma=0.12, transforms=TURNS_OF_SHIFTS, learning_rate=0.002),
        patches("TIRBM rotation", 75, sigma=0.12, learning_rate=0.002),
        patches("TIRBM rotation", 75, sigma=0.12, learning_rate=0.002, transforms=turns(6, 3)),
        patches("RBM", 75, sigma=0.35),
        *(patches(f"TIRBM {one}", 75, sigma=0.12) for one in ("scaling", "translation")),
        patches("TIRBM rotation", 75, sigma=0.12, gradient="approximate"),
        patches("TIRBM rotation", 75, sigma=0.12, two_sided=False),
        patches(
            "TIRBM translation",
            75,
            sigma=0.12,
            transforms=compose(
                ("translations", {"field": 10, "window": 8, "stride": 2}), ("pad", {"field": 8, "window": 10})
            ),
        ),
        filters(transforms=TURNS_OF_SCALES, two_sided=False),
        filters(transforms=TURNS_OF_SCALES, unit_norm=False),
        filters(transforms=TURNS_OF_SCALES, n_components=4000),
        patches("TIRBM combined", 75, sigma=0.1, transforms=UNION, learning_rate=0.003),
        patches("TIRBM combined", 75, sigma=0.08, transforms=UNION, learning_rate=0.002),
        patches("TIRBM combined", 150, sigma=0.12, transforms=UNION),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, n_components=4000),
        patches("TIRBM combined", 75, sigma=0.12, transforms=TURNS_OF_BOTH),
        *(patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, sparsity_target=p) for p in (0.05, 0.2)),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, learning_rate=0.01),
        patches("TIRBM rotation", 150, sigma=0.12),
        patches("TIRBM combined", 150, sigma=0.1, transforms=UNION),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, momentum=0.5),
        *(patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, sparsity_target=p) for p in (0.3, 0.4)),
        *(patches(f"TIRBM {one}", 75, sigma=0.12, sparsity_target=0.2) for one in ("rotation", "translation")),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, n_components=4000, sparsity_target=0.2),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, encoding=["threshold", 0.25]),
        patches("TIRBM scaling", 75, sigma=0.18, sparsity_target=0.2),
        patches("RBM", 75, sigma=0.25, sparsity_target=0.2),
        filters(transforms=TURNS_OF_SCALES, conv={"mirror": True}),
        filters(transforms=TURNS_OF_SCALES, n_iter=50),
        *(filters(transforms=TURNS_OF_SCALES, conv={"whiten": w}) for w in (0.05, 0.2)),
        *(
            filters(transforms=compose(turns(6), ("scalings", {"field": 8, "window": 6, "step": 1})), alpha=a)
            for a in (0.25, 0.35)
        ),
        *(filters(transforms=compose(turns(6, 3, step), PATCH_SCALES)) for step in (pi / 8, pi / 16)),
        filters(transforms=compose(turns(6, 5), PATCH_SCALES)),
        filters(transforms=compose(turns(8, 3), ("scalings", {"field": 10, "window": 8, "step": 1}))),
        *(patches("RBM", 75, sigma=0.25, sparsity_target=p) for p in (0.05, 0.02)),
        patches("TIRBM scaling", 75, sigma=0.18, sparsity_target=0.05),
        filters(transforms=TURNS_OF_SCALES, conv={"contrast": 0.0015}),
    ],
    "table3": [
        *(patches("TIRBM combined", 75, transforms=UNION, sigma=s) for s in (0.18, 0.12, 0.08)),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, sparsity_target=0.2),
        patches("TIRBM combined", 75, sigma=0.18, transforms=UNION, encoding=["threshold", 0.25]),
        patches("TIRBM combined", 20, sigma=0.12, transforms=UNION),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, learning_rate=0.002),
        patches("TIRBM combined", 75, sigma=0.12, transforms=TURNS_OF_SHIFTS),
        patches("RBM", 75, sigma=0.25),
        *(patches(f"TIRBM {one}", 75, sigma=0.12) for one in ("scaling", "rotation", "translation")),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, sparsity_target=0.05),
        patches("TIRBM combined", 75, sigma=0.08, transforms=UNION, learning_rate=0.002),
        patches("TIRBM combined", 75, sigma=0.06, transforms=UNION, learning_rate=0.001),
        *(patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, classifier=c) for c in PLAIN),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, encoding=["threshold", 0.25]),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, encoding=["times", 2]),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, conv={"grid": 3}),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, conv={"n_patches": 400_000}),
        patches("TIRBM combined", 75, sigma=0.12, transforms=TURNS_OF_BOTH),
        *(patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, sparsity_target=p) for p in (0.03, 0.02)),
        *(patches("TIRBM combined", 75, sigma=s, transforms=UNION, sparsity_target=0.05) for s in (0.15, 0.1)),
        patches("TIRBM combined", 75, sigma=0.08, transforms=UNION, sparsity_target=0.05, learning_rate=0.003),
        patches("TIRBM combined", 75, sigma=0.09, transforms=UNION, sparsity_target=0.05),
        *(patches("TIRBM combined", 75, sigma=0.1, transforms=UNION, sparsity_target=p) for p in (0.1, 0.03)),
        patches("TIRBM combined", 75, sigma=0.1, transforms=UNION, sparsity_target=0.05, conv={"mirror": True}),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, sparsity_target=0.05, conv={"whiten": 0.05}),
        patches("TIRBM combined", 75, sigma=0.12, transforms=UNION, sparsity_target=0.05, sparsity_cost=10.0),
        *(patches(f"TIRBM {one}", 75, sigma=0.12, sparsity_target=0.05) for one in ("rotation", "translation")),
        patches("TIRBM scaling", 75, sigma=0.18, sparsity_target=0.05),
        patches("RBM", 75, sigma=0.25, sparsity_target=0.05),
        *(filters("VQ", transforms=TURNS_OF_SCALES, n_components=K, conv={"patch_size": 8}) for K in (1600, 4000)),
        patches("RBM", 75, sigma=0.25, sparsity_target=0.02),
        *(patches("TIRBM combined", 75, **BEST, encoding=e) for e in (["plus", 1], ["plus", -1], ["times", 0.7])),
        patches("TIRBM combined", 150, **BEST),
        patches("TIRBM combined", 75, **{**BEST, "transforms": union(PATCH_SHIFTS, PATCH_SCALES, SOME_TURNS)}),
        patches("TIRBM combined", 75, **{**BEST, "transforms": union(FINE_SHIFTS, PATCH_SCALES, SOME_TURNS)}),
        patches("TIRBM combined", 75, **BEST, conv={"contrast": 0.0015}),
        *(patches(f"TIRBM {one}", 75, sigma=0.1, sparsity_target=0.05) for one in ("rotation", "translation")),
    ],
}
