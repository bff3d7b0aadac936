"""A folder of results as a page: the paper beside us."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orbitpool.experiments import results
from orbitpool.experiments.recipes import QUICK, TABLES, Recipe
from orbitpool.report import figures
from orbitpool.report.page import Page, Section, Table

TITLES = {
    "table1": "Table 1: digits that are turned, scaled or shifted, test error",
    "table2": "Table 2: CIFAR-10, test accuracy",
    "table3": "Table 3: STL-10, test accuracy",
    "table4": "Table 4: phones of TIMIT, linear classifier, test accuracy",
    "table5": "Table 5: phones of TIMIT, RBF-kernel classifier, test accuracy",
    "beyond": "Beyond the paper: test error on digits, test accuracy on objects",
    "figure3": "Figure 3: the data sets, and filters on turned digits",
    "figure4": "Figure 4: filters on natural images",
}
SMALL = " (quick: in small)"
EXPLAINED = {
    "beyond": "Digits are turned by any angle (rot), moved to anywhere (trans), made smaller (scale), lean by up to "
    "20° (tilt) or stand upright (mnist); objects are those of CIFAR-10 and STL-10. No label is used in learning "
    "features. Mirrored features are averages over an image and its mirror image.",
}
HEAD = ("", "paper", "ours", "values", "data", "seconds in all", "on")
WORDS = (
    "Sohn & Lee, Learning Invariant Representations with Local Transformations (ICML 2012): its figures beside those "
    "that orbitpool measured, in percent: the mean over as many values as are named, seeds or published folds, and "
    "their standard deviation where there are several. Data is official, rebuilt as the paper describes it, or a "
    "stand-in for data that is not free. A result of an older recipe was measured with settings that changed since."
)


def report(folder: Path) -> Page:
    """All results of a folder as a page; those made with --quick are marked so."""
    found = results.load_all(folder)
    if not found:
        raise ValueError(f"{folder} holds no results; make some with: orbitpool reproduce table1 --results {folder}")
    rows = {(r["table"], r["row"], r["quick"]): r for r in found if "table" in r}
    sections = [
        _section(recipes, quick, {r.row: rows.get((table, r.row, quick)) for r in recipes})
        for table, recipes in TABLES.items()
        for quick in (False, True)
        if not quick or any((table, r.row, quick) in rows for r in recipes)
    ]
    pictured = sorted((r for r in found if "figure" in r), key=lambda r: (r["figure"], r["quick"]))
    seen = [section for f in pictured if f["figure"] == "invariance" for section in _invariance(f, folder)]
    told = [section for f in pictured if f["figure"] == "found" for section in _told(f, folder)]
    drawn = [_figure(f, folder) for f in pictured if f["figure"] not in ("invariance", "found")]
    return Page("The paper beside us", WORDS, seen + sections + told + drawn)


def title(name: str, quick: bool) -> str:
    """What a table or figure is called."""
    return TITLES.get(name, name) + SMALL * quick


def _section(recipes: list[Recipe], quick: bool, found: dict[str, dict[str, Any] | None]) -> Section:
    name = recipes[0].table
    table = Table(HEAD, [_row(recipe, found[recipe.row]) for recipe in recipes])
    words = [EXPLAINED[name]] if name in EXPLAINED else []
    words += [_small(name)] if quick else []
    return Section(title(name, quick), " ".join(words + results.leads([r for r in found.values() if r])), table)


def _small(table: str) -> str:
    """What --quick makes smaller."""
    parameters, images = QUICK[table]["parameters"], QUICK[table].get("images", {})
    sizes = " and ".join(f"{count:,} {part} images" for part, count in images.items()) or "two of the splits"
    return f"Learners have {parameters['n_components']} filters and {parameters['n_iter']} epochs, on {sizes}."


def _row(recipe: Recipe, result: dict[str, Any] | None) -> tuple[str, ...]:
    paper = _spread(recipe.paper, recipe.paper_std) or "—"
    name = recipe.row if recipe.row == recipe.method else f"{recipe.row}: {recipe.method}"
    if result is None:
        return name, paper, "not run" if recipe.dataset else "a result of others", "", "", "", ""
    seconds = sum(sum(run["seconds"].values()) for run in result["runs"])
    devices = ", ".join(sorted({run["device"] for run in result["runs"]}))
    ours, count = _spread(result["mean"], result["std"]), str(len(result["values"]))
    ours += "" if results.is_current(result, recipe) else " (older recipe)"
    return name, paper, ours, count, result["data"], f"{seconds:,.0f}", devices


def _spread(mean: float | None, std: float | None) -> str:
    return "" if mean is None else f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"


def _invariance(result: dict[str, Any], folder: Path) -> list[Section]:
    name = "invariance" + "-quick" * result["quick"]
    return figures.invariance(result, _contents(result, folder), name, SMALL * result["quick"])


def _told(result: dict[str, Any], folder: Path) -> list[Section]:
    return figures.told(result, _contents(result, folder), SMALL * result["quick"])


def _contents(figure: dict[str, Any], folder: Path) -> figures.Contents:
    """The pictures of a figure that are there."""
    files = figure["pictures"].items()
    return {title: (file, (folder / file).read_bytes()) for title, file in files if (folder / file).exists()}


def _figure(figure: dict[str, Any], folder: Path) -> Section:
    words = figures.source(figure)
    return figures.drawn(title(figure["figure"], figure["quick"]), words, figure, _contents(figure, folder))
