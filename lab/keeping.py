"""Tries in a CSV file, a line each, which are not run again."""

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any


def keep(
    path: Path,
    columns: Sequence[str],
    tries: Iterable[Sequence[Any]],
    run: Callable[..., Sequence[Any]],
    seconds: float = float("inf"),
) -> None:
    """Run tries that the file does not have, and add what each one gives to it at once; begin none after some time.

    A try is what the first columns say of it, and `run` takes that and gives the others.
    """
    start = perf_counter()
    path.parent.mkdir(parents=True, exist_ok=True)
    known = list(csv.reader(path.open())) if path.exists() else []
    if known and tuple(known[0]) != tuple(columns):
        raise SystemExit(f"{path} has columns {', '.join(known[0])}, not {', '.join(columns)}; give another --out")
    with path.open("a", newline="") as file:
        out = csv.writer(file)
        if not known:
            out.writerow(columns)
        for one in tries:
            words = [str(value) for value in one]
            if any(line[: len(words)] == words for line in known) or perf_counter() - start > seconds:
                continue
            line = [*words, *map(str, run(*one))]
            out.writerow(line)
            file.flush()
            known.append(line)
            print(*line, sep="  ", flush=True)
