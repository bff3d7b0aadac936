"""Results as files: one JSON a row or figure, added to run by run, so that an interrupted reproduction goes on."""

from __future__ import annotations

import json
import platform
import statistics
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from orbitpool.experiments.recipes import Recipe
from orbitpool.wholefile import write_whole

WEAKEST_LAST = ("official", "rebuilt", "stand-in")
Fields = dict[str, Any]  # name: type
ROW: Fields = {"table": str, "row": str, "quick": bool, "runs": list, "values": list, "mean": float, "settings": dict}
ROW |= {"metric": str, "data": str, "std": (float, int, type(None)), "paper": (float, int, type(None))}
RUN: Fields = {"values": list, "seconds": dict, "data": str, "device": str}
FIGURE: Fields = {"figure": str, "quick": bool, "pictures": dict}
INVARIANCE: Fields = {"similarity": dict, "history": dict, "orbits": dict, "explorer": dict, "samples": list}


def path_of(recipe: Recipe, folder: Path, quick: bool) -> Path:
    """Where the result of a row is kept."""
    return folder / f"{recipe.key}{'-quick' if quick else ''}.json"


def load(path: Path) -> dict[str, Any] | None:
    """A result, or None if there is no file; a file that is no result raises ValueError."""
    if not path.exists():
        return None
    try:
        result: dict[str, Any] = json.loads(path.read_text())
        _check(result, FIGURE if "figure" in result else ROW)
        _check(result, INVARIANCE if result.get("figure") == "invariance" else {})
        for run in result.get("runs", []):
            _check(run, RUN)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not a result of orbitpool: {error!r}; move it away") from error
    return result


def _check(part: dict[str, Any], fields: Fields) -> None:
    for name, kind in fields.items():
        if not isinstance(part[name], kind):
            raise TypeError(f"{name} is {part[name]!r}")


def load_all(folder: Path) -> list[dict[str, Any]]:
    """Every result of a folder, of tables and figures, in the order of their files."""
    return [result for path in sorted(folder.glob("*.json")) if (result := load(path))]


def described(recipe: Recipe) -> dict[str, Any]:
    """A recipe as JSON has it, without what does not change a result."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(recipe)))
    return {name: value for name, value in plain.items() if name not in ("method", "paper", "paper_std", "repeats")}


def is_current(result: dict[str, Any], recipe: Recipe) -> bool:
    """Whether a result was made by the recipe as it is now."""
    now = described(recipe.quick() if result["quick"] else recipe)
    return _set(result.get("recipe", {})) == _set(now)


def _set(recipe: dict[str, Any]) -> dict[str, Any]:
    """What is not None, so that results outlive fields that recipes gain."""
    return {name: value for name, value in recipe.items() if value is not None}


def save(
    recipe: Recipe, settings: dict[str, Any], runs: list[dict[str, Any]], folder: Path, quick: bool
) -> dict[str, Any]:
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
        "data": max((run["data"] for run in runs), key=WEAKEST_LAST.index),
        "quick": quick,
        "runs": runs,
        "settings": settings,
        "recipe": described(recipe),
    }
    return write(result, path_of(recipe, folder, quick))


def write(result: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write a result, whole or not at all; the result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, f"{json.dumps(result, indent=1)}\n".encode())
    return result


def versions() -> dict[str, str]:
    """What computes a result."""
    import numpy
    import sklearn
    import torch

    import orbitpool

    return {
        "orbitpool": orbitpool.__version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def leads(found: list[dict[str, Any]]) -> list[str]:
    """By how much each result is ahead of the one before it, in words, where both have values on the same folds."""
    said = []
    for first, second in pairwise(found):
        if _folds(first) and _folds(first) == _folds(second):
            ahead, error = lead(second, first)
            names = f"{second['row']} {'leads' if ahead >= 0 else 'is behind'} {first['row']}"
            said.append(f"{names} by {abs(ahead):.2f} points, with a standard error of {error:.2f} over the folds.")
    return said


def _folds(result: dict[str, Any]) -> list[Any]:
    """Who each fold was judged on; nothing where there are not at least two."""
    folds = [fold["judged on"] for fold in result["runs"][0].get("folds", [])]
    return folds if len(folds) > 1 else []


def lead(result: dict[str, Any], other: dict[str, Any]) -> tuple[float, float]:
    """How far a result is ahead of another on the same folds, whose seeds are averaged: mean and standard error."""
    ahead = [a - b for a, b in zip(_by_fold(result), _by_fold(other), strict=True)]
    return statistics.fmean(ahead), statistics.stdev(ahead) / len(ahead) ** 0.5


def _by_fold(result: dict[str, Any]) -> list[float]:
    return [statistics.fmean(seeds) for seeds in zip(*(run["values"] for run in result["runs"]), strict=True)]


def summary(result: dict[str, Any]) -> str:
    """A result in a few words: mean, spread, how many values, and what the data is."""
    spread, count = "" if result["std"] is None else f" ± {result['std']:.2f}", len(result["values"])
    return f"{result['mean']:.2f}{spread} % ({count} value{'s' * (count > 1)}, {result['data']} data)"


def beside(paper: float | None) -> str:
    """What the paper has for a row, in words."""
    return "not in the paper" if paper is None else f"paper {paper:g}"
