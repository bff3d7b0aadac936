"""The command line: parses and calls."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbitpool import __version__
from orbitpool.progress import choose, result, say, showing

# Threads that wait in a busy loop make everything several times slower when another program needs a core, threads that
# sleep at once make small products slow: they wait some microseconds. This is read when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "5000")

if TYPE_CHECKING:
    from orbitpool.report import Table

app = typer.Typer(
    help="Features that stay the same when the input is moved, turned or scaled a little.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

PATIENCE = 3.0  # seconds that the other processes give the first to say what is wrong
INTERRUPTED = 130  # the exit status of what Ctrl-C has ended
KEPT = {
    "reproduce": "rows that are finished are kept, and it goes on from there; a figure is drawn anew",
    "encode": "a folder of parts goes on from its last part, a single file is not written",
    "fit": "what was learned, if anything, is kept beside --out, and the same command goes on from there",
}
LESS = {"fit": "give fewer --components", "reproduce": "use --quick"}

Results = Annotated[Path, typer.Option("--results", help="Folder of the results, one JSON a row.")]
DataDir = Annotated[Path | None, typer.Option(help="Folder of the data; else $ORBITPOOL_DATA, else the cache.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Source = Annotated[
    Path,
    typer.Argument(
        help="A folder of images (subfolders are classes), a .npy or .npz of images, a CSV of images: file and, if you "
        "like, label; shards: a folder or a quoted pattern of .npy, .tar or .parquet files; or a CSV of sound: "
        "file,start,end and, if you like, label,speaker."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show the results, and what goes wrong, but no progress.")]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object a line on standard output: progress (unless --quiet), results.")
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="For all that is random.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at an image that cannot be read; else it is left out.")]


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"orbitpool {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """What comes before a command."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its pictures.")] = Path("demo"),
    device: Device = "auto",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """RBM against TIRBM on turned digits and photographs: a table, pictures, a page. A minute, nothing to download."""
    from orbitpool.demo import demo as run

    with showing(choose(quiet, json)):
        errors, similarities, page = run(out, device)
        words = f"Turned digits, test error of a linear classifier on\n{_aligned(errors)}\n"
        words += f"Features of held-out digits against those of the same digits, moved\n{_aligned(similarities)}\n"
        facts = {"errors": vars(errors), "similarities": vars(similarities), "page": str(page)}
        result(f"{words}Filters, samples and the rest: {page}", **facts)


@app.command("list")
def list_rows(results: Results = Path("results")) -> None:
    """Every table, row and figure: what the paper has, and ours if there is one."""
    from orbitpool.experiments.recipes import FIGURES, TABLES
    from orbitpool.experiments.results import beside, is_current, load, path_of, summary

    for table, recipes in TABLES.items():
        print(f"{table} ({' or '.join(sorted({recipe.metric for recipe in recipes}, reverse=True))}, %)")
        wide = max(len(recipe.row) for recipe in recipes)
        for recipe in recipes:
            ours = load(path_of(recipe, results, False)) if recipe.dataset else None
            state = summary(ours) if ours else "not run yet" if recipe.dataset else "a result of others"
            older = "" if ours is None or is_current(ours, recipe) else ", by an older recipe"
            print(f"  {recipe.row:<{wide}}  {beside(recipe.paper):<16}  {state}{older}")
            if recipe.dataset and (quick := load(path_of(recipe, results, True))):
                print(f"  {'':<{wide}}  {'quick':<16}  {summary(quick)}")
    for figure in FIGURES:
        print(f"{figure:<10}  {'drawn' if load(results / f'{figure}.json') else 'not drawn yet'}")


@app.command()
def reproduce(
    table: Annotated[str, typer.Argument(help="table1 to table5, beyond, figure3, figure4, invariance or found.")],
    rows: Annotated[str | None, typer.Option(help="Rows by name or first word, with commas; else all.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds.")] = None,
    device: Device = "auto",
    data_dir: DataDir = None,
    quick: Annotated[bool, typer.Option("--quick", help="In small: fewer filters, epochs and images.")] = False,
    results: Results = Path("results"),
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run rows of a table, or draw a figure; runs that are in the results already are not run again."""
    from orbitpool.experiments import figures, runner
    from orbitpool.experiments.recipes import select
    from orbitpool.experiments.results import beside, leads, summary
    from orbitpool.report.figures import similarities

    if data_dir is not None and not data_dir.is_dir():
        raise ValueError(
            f"the data folder {data_dir} is not there; create it, or leave out --data-dir to use the cache"
        )
    options: dict[str, Any] = {"quick": quick, "data_dir": data_dir, "device": device}
    with showing(choose(quiet, json)):
        if table in figures.FIGURES:
            if rows or seeds:
                raise ValueError(f"{table} has neither rows nor seeds; leave out --rows and --seeds")
            made = figures.draw(table, results, **options)
            for name, file in made["pictures"].items():
                number = made.get("orientation entropy in bits", {}).get(name)
                words = "" if number is None else f"  orientation entropy {number:.2f} bits"
                result(f"{results / file}{words}", picture=str(results / file), orientation_entropy=number)
            if "similarity" in made:
                numbers = similarities(made)
                result(_aligned(numbers), **vars(numbers))
            return
        done = []
        for row in runner.reproduce(select(table, _names(rows)), results, seeds=seeds, **options):
            result(f"{row['row']:<26} {row['metric']} {summary(row)}, {beside(row['paper'])}", **row)
            done.append(row)
        for sentence in leads(done):
            result(sentence, words=sentence)


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="Folder of the results.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder for index.html, index.md and the pictures.")] = Path("report"),
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """The paper beside us: all results of a folder as one page, in HTML and in Markdown."""
    from orbitpool.report import report as read
    from orbitpool.report import write

    with showing(choose(quiet, json)):
        say(f"reading the results in {results}")
        page = write(read(results), out)
        result(str(page), page=str(page))


@app.command()
def fit(
    source: Source,
    out: Annotated[Path, typer.Option(help="The model's file, such as model.safetensors.")],
    kind: Annotated[str | None, typer.Option(help="image or sound; as the source looks if not given.")] = None,
    transforms: Annotated[
        str | None,
        typer.Option(
            help="For images: auto (if not given: found in them), combined, rotation, translation, scaling, none, or a "
            ".npy file of matrices (S, D2, D1). For sound: shifts (if not given) or none."
        ),
    ] = None,
    components: Annotated[int, typer.Option(min=1, help="How many filters.")] = 256,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="How often to go through the data: 20 for images, 30 for sound.")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    strict: Strict = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn features from your own data; settings are chosen from it, and told."""
    from orbitpool import userdata

    given = {"n_components": components, "verbose": True} | ({} if epochs is None else {"n_iter": epochs})
    with showing(choose(quiet, json)):
        model = userdata.fit(source, out, kind, transforms=transforms, seed=seed, device=device, strict=strict, **given)
        features = len(model.get_feature_names_out())
        found = userdata.found_in(model, out, source)
        words = f"; found {found['found']}" if found else ""
        facts = {"out": str(out), "filters": components, "features": features, **found}
        result(f"{out}: {components} filters, {features} features{words}", **facts)


@app.command()
def encode(
    model: Annotated[Path, typer.Argument(help="A file that fit wrote.")],
    source: Source,
    out: Annotated[
        Path,
        typer.Option(
            help="The features' file: .npy, or with what they are features of .npz, .csv or .parquet. Without an "
            "ending, a folder of parts, which goes on where it was stopped and grows with the source."
        ),
    ],
    device: Device = "auto",
    strict: Strict = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Turn your own data into features."""
    from orbitpool import userdata

    with showing(choose(quiet, json)):
        rows, columns = userdata.encode(model, source, out, device, strict)
        result(f"{out}: {rows} rows of {columns} features", out=str(out), rows=rows, features=columns)


@app.command()
def classify(
    features: Annotated[Path, typer.Argument(help="What encode wrote (.npz, .csv, .parquet or a folder), or a model.")],
    source: Annotated[Path | None, typer.Argument(help="With a model, what to encode: as for fit.")] = None,
    folds: Annotated[int, typer.Option(help="Parts of the data, each judged by what the others teach.")] = 5,
    seed: Seed = 0,
    device: Device = "auto",
    strict: Strict = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Cross-validate a linear classifier on features, with labels from class folders or a column."""
    from orbitpool import userdata

    with showing(choose(quiet, json)):
        judgement = userdata.classify(features, source, folds, seed, device, strict)
        result("\n".join(judgement.in_words()), **judgement.as_json())


@app.command()
def inspect(
    model: Annotated[Path, typer.Argument(help="A file that fit or save wrote.")],
    out: Annotated[Path | None, typer.Option(help="A PNG file for its filters.")] = None,
) -> None:
    """What a model is, how long it learned, and its filters as a picture."""
    from orbitpool import userdata

    print("\n".join(userdata.inspect(model, out)))
    if out is not None:
        print(f"{out}: its filters")


def _names(rows: str | None) -> list[str] | None:
    return None if rows is None else [name.strip() for name in rows.split(",")]


def _aligned(table: Table) -> str:
    lines = (table.head, *table.rows)
    widths = [max(8, *map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in lines)


def main() -> None:
    """Run a command; what goes wrong is one sentence and a non-zero exit."""
    try:
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # as Ctrl-C: keep what can be kept
        with _joined():
            app()
    except KeyboardInterrupt:
        _fail(f"interrupted; {_kept()}", INTERRUPTED)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _fail(f"interrupted; {_kept()}", INTERRUPTED)
        raise
    except FileNotFoundError as error:
        _fail(f"{error.filename} is not there; check its name" if error.filename else str(error))
    except IsADirectoryError as error:
        _fail(f"{error.filename} is a folder; give a file" if error.filename else str(error))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except (ValueError, FloatingPointError, ImportError) as error:
        _fail(str(error))
    except (MemoryError, RuntimeError) as error:
        if _is_alone(error):
            _fail(f"another process has ended, and so does this one; {_kept()}, as with torchrun --max-restarts 3")
        if not isinstance(error, MemoryError) and "memory" not in str(error):
            raise
        way = LESS.get(_command(), "give less at a time")
        _fail(f"out of memory ({str(error).splitlines()[0]}); {way}, or on a GPU --device cpu")


@contextmanager
def _joined() -> Iterator[None]:
    """Inside, what torchrun has started works together, and the first process speaks for all."""
    if "RANK" not in os.environ:
        yield
        return
    from orbitpool import together

    with together.joined():
        if together.first():
            yield
            return
        warnings.simplefilter("ignore")
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            yield


def _kept() -> str:
    """What there is after a command that was stopped."""
    return KEPT.get(_command(), "nothing was written")


def _command() -> str:
    return "".join(sys.argv[1:2])


def _is_alone(error: BaseException) -> bool:
    """Whether an error says that a process with which this one works together has ended."""
    if "RANK" not in os.environ:
        return False
    from torch.distributed import DistError

    return isinstance(error, DistError) or "/gloo/" in str(error)


def _fail(why: str, code: int = 1) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing is left to be put in order
    if os.environ.get("RANK", "0") != "0":
        sleep(PATIENCE)  # if the first process has failed alike, torchrun has ended this one by then
        why = f"process {os.environ['RANK']}: {why}"
    print(f"orbitpool: {why}", file=sys.stderr, flush=True)
    sys.exit(code)
