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


def path_of(recipe: Recipe, folder: Path, quick: bool) -> Path:
    """Where the result of a row is kept."""
    return folder / f"{recipe.key}{'-quick' if quick else ''}.json"


def load(path: Path) -> dict[str, Any] | None:
    """A result, or None if there is no file; a file that is no result raises ValueError."""
    if not path.exists():
        return None
    try:
        result: dict[str, Any] = json.loads(path.read_text())
        for name in ("figure", "pictures", "quick") if "figure" in result else ("table", "row", "quick", "runs"):
            result[name]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a result of orbitpool: {error!r}; move it away") from error
    return result


def load_all(folder: Path) -> list[dict[str, Any]]:
    """Every result of a folder, of tables and figures, in the order of their files."""
    return [result for path in sorted(folder.glob("*.json")) if (result := load(path))]


def runs(recipe: Recipe, folder: Path, quick: bool) -> list[dict[str, Any]]:
    """The runs of a row that a folder holds, made with the same settings."""
    before = load(path_of(recipe, folder, quick))
    return before["runs"] if before and before["settings"] == settings(recipe, quick) else []


def save(recipe: Recipe, runs: list[dict[str, Any]], folder: Path, quick: bool) -> dict[str, Any]:
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
        "settings": settings(recipe, quick),
    }
    return write(result, path_of(recipe, folder, quick))


def write(result: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write a result and what computed it, whole or not at all; the result."""
    result = {**result, "versions": versions()}
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


def summary(result: dict[str, Any]) -> str:
    """A result in a few words: mean, spread, how many values, and what the data is."""
    spread = "" if result["std"] is None else f" ± {result['std']:.2f}"
    return f"{result['mean']:.2f}{spread} % ({len(result['values'])} values, {result['data']} data)"
