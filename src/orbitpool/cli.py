"""The command line: parses and calls."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Features that stay the same when the input is moved, turned or scaled a little.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Results = Annotated[Path, typer.Option("--results", help="Folder of the results, one JSON a row.")]
DataDir = Annotated[Path | None, typer.Option(help="Folder of the data; else $ORBITPOOL_DATA, else the cache.")]


@app.command("list")
def list_rows(results: Results = Path("results")) -> None:
    """Every table and row: the paper's figure, and ours if there is one."""
    from orbitpool.experiments.recipes import TABLES
    from orbitpool.experiments.results import load, path_of, summary

    for table, recipes in TABLES.items():
        print(f"{table} ({recipes[0].metric}, %)")
        for recipe in recipes:
            ours = load(path_of(recipe, results, False)) if recipe.dataset else None
            state = summary(ours) if ours else "not run yet" if recipe.dataset else "a result of others"
            print(f"  {recipe.row:<26} paper {recipe.paper:5.1f}   {state}")


@app.command()
def reproduce(
    table: Annotated[str, typer.Argument(help="table1 to table5, figure3 or figure4.")],
    rows: Annotated[list[str] | None, typer.Option(help="Rows by name or first word; all if not given.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    data_dir: DataDir = None,
    quick: Annotated[bool, typer.Option("--quick", help="In small: fewer filters, epochs and images.")] = False,
    results: Results = Path("results"),
) -> None:
    """Run rows of a table, or draw a figure; runs that are in the results already are not run again."""
    if table in ("figure3", "figure4"):
        from orbitpool.experiments import figures

        made = getattr(figures, table)(results, data_dir, device, quick, _tell)
        print("\n".join(f"{what}: {value}" for what, value in made.items()))
        return
    from orbitpool.experiments.recipes import select
    from orbitpool.experiments.results import lead, summary
    from orbitpool.experiments.runner import reproduce as run_row

    recipes, done = select(table, rows), []
    for count, recipe in enumerate(recipes, 1):
        prefix = f"[{count}/{len(recipes)}] {recipe.row}"
        result = run_row(
            recipe,
            results,
            seeds=seeds,
            quick=quick,
            data_dir=data_dir,
            device=device,
            tell=lambda stage, prefix=prefix: _tell(f"{prefix}: {stage}"),  # type: ignore[misc]
        )
        print(f"{prefix:<40} {result['metric']} {summary(result)}, paper {result['paper']}", flush=True)
        done.append(result)
    for first, second in pairwise(done):
        if "folds" in first["runs"][0] and len(first["values"]) == len(second["values"]) > 1:
            ahead, error = lead(second, first)
            print(
                f"{second['row']} leads {first['row']} by {ahead:.2f}, standard error {error:.2f} over the same folds"
            )


Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


@app.command()
def fit(
    source: Annotated[Path, typer.Argument(help="For sound, a CSV: file,start,end and, if you like, label,speaker.")],
    out: Annotated[Path, typer.Option(help="The model's file, such as model.safetensors.")],
    kind: Annotated[str, typer.Option(help="What the source holds: sound.")] = "sound",
    transforms: Annotated[str | None, typer.Option(help="For sound: shifts (if not given) or none.")] = None,
    components: Annotated[int, typer.Option(help="How many filters.")] = 256,
    epochs: Annotated[int, typer.Option(help="How often to go through the data.")] = 30,
    seed: int = 0,
    device: Device = "auto",
) -> None:
    """Learn features from your own data."""
    from orbitpool import userdata

    model = userdata.fit(source, kind, transforms, seed, device, n_components=components, n_iter=epochs, verbose=True)
    model.save(out)
    print(f"{out}: {components} filters, {len(model.get_feature_names_out())} features")


@app.command()
def encode(
    model: Annotated[Path, typer.Argument(help="A file that fit wrote.")],
    source: Annotated[Path, typer.Argument(help="As for fit.")],
    out: Annotated[
        Path, typer.Option(help="The features' file: .npy, or with what they are features of .npz or .csv.")
    ],
    device: Device = "auto",
) -> None:
    """Turn your own data into features."""
    from orbitpool import userdata

    rows, columns = userdata.encode(model, source, out, device)
    print(f"{out}: {rows} rows of {columns} features")


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def main() -> None:
    """Run a command; what goes wrong is one sentence and a non-zero exit."""
    try:
        app()
    except (ValueError, OSError, FloatingPointError, ImportError) as error:
        print(f"orbitpool: {error}", file=sys.stderr)
        sys.exit(1)
