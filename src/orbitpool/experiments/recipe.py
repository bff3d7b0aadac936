"""What a row of a table is: everything that makes it, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Spec = tuple[str, Mapping[str, Any]]  # a function of orbitpool.transforms and its arguments, or ("union", {"sets": …})


@dataclass(frozen=True)
class Recipe:
    """One row of a table."""

    table: str
    row: str
    method: str
    metric: Literal["error", "accuracy"]
    paper: float | None  # percent
    dataset: str = ""  # none: a result of others that this library does not run
    learner: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    transforms: Spec | None = None
    pairs: Mapping[str, Any] | None = None  # of training images, from which operators are learned in place of those
    conv: Mapping[str, Any] | None = None  # arguments of ConvFeatures; None for whole images
    above: Mapping[str, Any] | None = None  # a second layer: its learner, …, conv, and arguments of Stack as `stack`
    beside: Mapping[str, Any] | None = None  # further features, put beside the others: their learner, …, conv
    speech: Mapping[str, Any] | None = None  # arguments of SpeechFeatures; None for images
    choices: tuple[Mapping[str, Any], ...] | None = None  # further parameters, to be chosen on the training data
    classifier: Mapping[str, Any] = field(default_factory=dict)
    repeats: int = 5  # seeds
    folds: bool = False  # whether the data has published folds, over which a single seed is repeated
    paper_std: float | None = None

    @property
    def key(self) -> str:
        """A name for files."""
        return f"{self.table}-{self.row}".replace(" ", "-").replace("/", "-").lower()

    @property
    def effort(self) -> float:
        """Roughly how long a run takes against other rows of the table: a part grows with the poses."""
        more = [layer for layer in (self.above, self.beside) if layer is not None]
        layers = [(self.parameters, self.transforms), *((m["parameters"], m.get("transforms")) for m in more)]
        work = sum(how.get("n_components", 200) * (4 if poses is None else 6) for how, poses in layers)
        return float(work * len(self.choices or (None,)))

    def quick(self) -> Recipe:
        """The same in small: fewer filters, epochs, patches."""
        small = QUICK[self.table]
        parameters = _at_most(self.parameters, small["parameters"]) if self.learner else {}
        conv = None if self.conv is None else _at_most(self.conv, small["conv"])
        more = {name: getattr(self, name) for name in ("above", "beside") if getattr(self, name) is not None}
        for name, layer in more.items():
            more[name] = {**layer, **{part: _at_most(layer[part], small[part]) for part in ("parameters", "conv")}}
        return replace(self, parameters=parameters, conv=conv, choices=None, repeats=1, **more)


def _at_most(given: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """The same with no number above its limit."""
    return {**given, **{name: min(given.get(name, limit), limit) for name, limit in limits.items()}}


# Small enough for two cores: all six sets of Table 1 in some minutes.
QUICK: dict[str, dict[str, Any]] = {
    "table1": {
        "parameters": {"n_components": 200, "n_iter": 15},
        "images": {"train": 10_000, "valid": 2000, "test": 10_000},
    },
    "table2": {
        "parameters": {"n_components": 100, "n_iter": 2},
        "conv": {"n_patches": 20_000},
        "images": {"train": 2000, "test": 2000},
    },
    "table3": {
        "parameters": {"n_components": 100, "n_iter": 2},
        "conv": {"n_patches": 20_000},
        "images": {"train": 5000, "test": 2000},
    },
    "table4": {"parameters": {"n_components": 64, "n_iter": 5}},
    "table5": {"parameters": {"n_components": 64, "n_iter": 5}},
    "beyond": {
        "parameters": {"n_components": 100, "n_iter": 15},
        "conv": {"n_patches": 10_000},
        "images": {"train": 2000, "valid": 1000, "test": 2000},
    },
}
