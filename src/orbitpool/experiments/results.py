"""Results as files: one JSON a row, added to run by run, so that an interrupted reproduction goes on."""

from __future__ import annotations

import json
import platform
import statistics
from dataclasses import asdict
from pathlib import Path
from typing import Any

from orbitpool.experiments.recipes import Recipe
from orbitpool.wholefile import whole


def settings(recipe: Recipe, quick: bool) -> dict[str, Any]:
    """What a result depends on, as JSON has it."""
    plain: dict[str, Any] = json.loads(json.dumps({**asdict(recipe), "quick": quick}))
    del plain["repeats"]
    return plain


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether settings are alike; what is None was not set, so that results outlive fields that recipes gain."""
    return {k: v for k, v in one.items() if v is not None} == {k: v for k, v in other.items() if v is not None}


def path_of(recipe: Recipe, folder: Path, quick: bool) -> Path:
    """Where the result of a row is kept."""
    return folder / f"{recipe.key}{'-quick' if quick else ''}.json"


def load(path: Path) -> dict[str, Any] | None:
    """A result, or None if there is no file; a file that is no result raises ValueError."""
    if not path.exists():
        return None
    try:
        result: dict[str, Any] = json.loads(path.read_text())
        result["runs"], result["settings"], result["table"], result["row"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a result of orbitpool: {error!r}; move it away") from error
    return result


def save(recipe: Recipe, runs: list[dict[str, Any]], path: Path, quick: bool) -> dict[str, Any]:
    """Write the runs of a row, whole or not at all; the result."""
    values = [value for run in runs for value in run["values"]]
    result = {
        "table": recipe.table,
        "row": recipe.row,
        "method": recipe.method,
        "metric": recipe.metric,
        "values": values,
        "mean": statistics.fmean(values),
        "std": statistics.stdev(values) if len(values) > 1 else None,
        "paper": recipe.paper,
        "paper_std": recipe.paper_std,
        "data": runs[0]["data"],
        "quick": quick,
        "runs": runs,
        "versions": versions(),
        "settings": settings(recipe, quick),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as file:
        file.write((json.dumps(result, indent=1) + "\n").encode())
    return result


def versions() -> dict[str, str]:
    """What computed a result."""
    import sklearn
    import torch

    import orbitpool

    return {
        "orbitpool": orbitpool.__version__,
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def lead(result: dict[str, Any], other: dict[str, Any]) -> tuple[float, float]:
    """How far a result is ahead of another on the same seeds or folds: mean and standard error of the differences."""
    ahead = [a - b for a, b in zip(result["values"], other["values"], strict=True)]
    return statistics.fmean(ahead), statistics.stdev(ahead) / len(ahead) ** 0.5


def summary(result: dict[str, Any]) -> str:
    """A result in a few words: mean, spread, how many values, and what the data is."""
    spread = "" if result["std"] is None else f" ± {result['std']:.2f}"
    return f"{result['mean']:.2f}{spread} % ({len(result['values'])} values, {result['data']} data)"
