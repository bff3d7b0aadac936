"""Features in files, with what each row is beside them: .npy (features alone), .npz, .csv and .parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool import together
from orbitpool.arrayfiles import map_npz, read_npz, write_npz
from orbitpool.learners.checks import one_of
from orbitpool.userdata.items import Columns
from orbitpool.wholefile import check_place, whole

AT_ONCE = 2**24  # bytes of features that are looked at together


def check(path: Path) -> None:
    """Raise, before the work, if features could not be written to a file."""
    one_of("the ending of --out", path.suffix, WRITERS)
    if path.suffix == ".parquet":
        _pandas()
    check_place(path)


@together.once
def write(path: Path, Z: NDArray[Any], columns: Columns) -> None:
    """Write features (N, F) and columns of N, whole or not at all."""
    with whole(path) as file:
        WRITERS[path.suffix](file, Z, columns)


def read(path: Path) -> tuple[NDArray[Any], list[str]]:
    """Features (N, F) of a file, mapped if it is an .npz, and the label of each row."""
    one_of(
        f"{path} is no file of features with labels, and a model needs a source beside it: the ending",
        path.suffix,
        READERS,
    )
    with path.open("rb"):  # a file that is not there is another matter
        pass
    try:
        return _checked(*READERS[path.suffix](path))
    except (KeyError, IndexError, TypeError, ValueError, OSError, OverflowError, csv.Error) as error:
        raise ValueError(f"{path} is not a file that orbitpool encode wrote: {error}; encode anew") from error


def _checked(Z: NDArray[Any], labels: Iterable[Any]) -> tuple[NDArray[Any], list[str]]:
    """The same, if they are features and labels that belong together."""
    words = [str(label) for label in labels]
    if Z.ndim != 2 or Z.dtype.kind != "f" or 0 in Z.shape or len(Z) != len(words):
        raise ValueError(f"it holds {len(words)} labels for features of shape {Z.shape} and type {Z.dtype}")
    if not all(np.isfinite(some).all() for some in np.array_split(Z, -(-Z.nbytes // AT_ONCE))):
        raise ValueError("its features are not all finite")
    return Z, words


def _write_npy(file: Any, Z: NDArray[Any], columns: Columns) -> None:
    np.save(file, Z)


def _write_npz(file: Any, Z: NDArray[Any], columns: Columns) -> None:
    arrays: dict[str, Any] = {f"{name}s": np.array(column) for name, column in columns.items()}
    write_npz(file, features=Z, **arrays)


def _write_csv(file: Any, Z: NDArray[Any], columns: Columns) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    table = csv.writer(text)
    table.writerow([*columns, *_names(Z)])
    table.writerows([*row, *z.tolist()] for *row, z in zip(*columns.values(), Z, strict=True))
    text.flush()
    text.detach()


def _write_parquet(file: Any, Z: NDArray[Any], columns: Columns) -> None:
    pandas = _pandas()
    pandas.concat([pandas.DataFrame(columns), pandas.DataFrame(Z, columns=_names(Z))], axis=1).to_parquet(file)


def _read_npz(path: Path) -> tuple[NDArray[Any], list[str]]:
    return map_npz(path, "features"), read_npz(path, ("labels",))["labels"].tolist()


def _read_csv(path: Path) -> tuple[NDArray[Any], list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        table = csv.reader(file)
        head = next(table, [])
        label, first = head.index("label"), head.index("feature0")
        rows = [(row[label], np.array(row[first:], np.float32)) for row in table]
    return np.stack([z for _, z in rows]), [name for name, _ in rows]


def _read_parquet(path: Path) -> tuple[NDArray[Any], list[str]]:
    frame = _pandas().read_parquet(path)
    return frame.filter(regex=r"^feature\d+$").to_numpy(), frame["label"].fillna("").tolist()


def _names(Z: NDArray[Any]) -> list[str]:
    return [f"feature{i}" for i in range(Z.shape[1])]


def _pandas() -> Any:
    try:
        import_module("pyarrow")
        return import_module("pandas")
    except ImportError as error:
        raise ImportError(f"{error}; .parquet needs pandas and pyarrow: pip install pandas pyarrow") from error


WRITERS = {".npy": _write_npy, ".npz": _write_npz, ".csv": _write_csv, ".parquet": _write_parquet}
READERS = {".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet}
