"""Data in many files, larger than memory together: .npy, .parquet, and .tar of images as WebDataset has them.

Nothing is ever unpacked to a disk, so names in an archive are names and nothing else.
"""

from __future__ import annotations

import io
import os
import tarfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from glob import glob, has_magic
from importlib import import_module
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orbitpool.arrayfiles import LARGE, RATIO, read_npy
from orbitpool.imagefiles import decode_image, endings

CELLS = 16  # images of a .parquet that are unpacked at a time

Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Shard(Protocol):
    """One file: N items, which have names, labels ("" where there is none) and values."""

    path: Path
    names: Sequence[str]
    labels: Sequence[str]

    def __len__(self) -> int:
        """How many items."""

    def value(self, i: int, grey: bool) -> NDArray[Any]:
        """An item: an image in bytes, or an array of the file's own numbers; ValueError if it is damaged."""

    def values(self, start: int, stop: int) -> NDArray[Any]:
        """Items as rows, (n, ...): the file's own numbers, images as 0-1."""

    def cuts(self, most: int) -> list[int]:
        """Where to cut into pieces of about so many items that are read at once, first and last included."""


def shard_files(source: Files) -> list[Path]:
    """The shards that a folder, a pattern such as `shard-*.tar`, a file or a list of files means, perhaps none.

    A folder means its shards if there is nothing else for a reader of images in it.
    """
    if not isinstance(source, (str, os.PathLike)):
        return [Path(path) for path in source]
    path = Path(source).expanduser()
    if path.is_dir():
        return _in_folder(path)
    if path.suffix in (".tar", ".parquet") or (path.suffix in OPENERS and has_magic(str(source))):
        return [path] if path.is_file() else sorted(map(Path, glob(str(path))))
    return []


def _in_folder(folder: Path) -> list[Path]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            ending = PurePosixPath(entry.name).suffix.lower()
            if entry.name.startswith("."):
                continue
            if ending in endings() or entry.is_dir():
                return []
            if ending in OPENERS and entry.is_file():
                found.append(Path(entry.path))
    return sorted(found)


def open_shard(path: Path) -> Shard:
    """A shard, by the ending of its name."""
    if path.suffix not in OPENERS:
        raise ValueError(f"{path} ends in {path.suffix!r}; shards end in {', '.join(OPENERS)}")
    shard: Shard = OPENERS[path.suffix](path)
    return shard


class Chained(Sequence[Any]):
    """Sequences, one after the other, as one."""

    def __init__(self, parts: Sequence[Sequence[Any]]) -> None:
        self.parts, self.ends = parts, list(accumulate(map(len, parts)))

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def place(self, i: int) -> tuple[int, int]:
        """The number of the part that an item is in, and its place there."""
        number = bisect_right(self.ends, range(len(self))[i])
        return number, i - (self.ends[number] - len(self.parts[number]))

    def __getitem__(self, i: Any) -> Any:
        number, place = self.place(i)
        return self.parts[number][place]


class Together:
    """Many shards as one sequence of items."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards, self._names = shards, Chained([shard.names for shard in shards])

    def __len__(self) -> int:
        return len(self._names)

    def at(self, i: int) -> tuple[Shard, int]:
        """The shard of an item, and its place there."""
        number, place = self._names.place(i)
        return self.shards[number], place


class _Array:
    """A .npy file, mapped."""

    def __init__(self, path: Path) -> None:
        self.path, self.array = path, read_npy(path)
        if self.array.ndim < 2 or 0 in self.array.shape or self.array.dtype.kind not in "fiub":
            raise ValueError(
                f"{path} has shape {self.array.shape} and type {self.array.dtype}; give (n, features) or images "
                "(n, height, width[, channels]) of real numbers, none of them 0"
            )
        self.names: Sequence[str] = _Numbered(path.name, len(self.array))
        self.labels: Sequence[str] = _Empty(len(self.array))
        first = self.array[: max(1, 2**22 // self.array[0].nbytes)]
        self.scale = 255 if first.max() <= 1 else 1  # pixels from 0 to 1, as far as the beginning shows

    def __len__(self) -> int:
        return len(self.array)

    def value(self, i: int, grey: bool) -> NDArray[Any]:
        """Pixels from 0 to 1 or from 0 to 255, as bytes."""
        image = np.asarray(self.array[i], np.float32)
        if image.ndim not in (2, 3) or image.shape[2:] not in ((), (1,), (3,)):
            raise ValueError(f"images have shape {image.shape}; give (H, W), (H, W, 1) or (H, W, 3)")
        if not 0 <= image.min() <= image.max() <= 255 / self.scale:
            raise ValueError(f"its pixels go from {image.min():g} to {image.max():g}; others go to {255 // self.scale}")
        pixels: NDArray[np.uint8] = np.rint(image * self.scale).astype(np.uint8)
        return pixels[..., 0] if pixels.shape[2:] == (1,) else pixels

    def values(self, start: int, stop: int) -> NDArray[Any]:
        """Rows as they are."""
        return np.array(self.array[start:stop])

    def cuts(self, most: int) -> list[int]:
        """Even pieces."""
        return [*range(0, len(self.array), most), len(self.array)]


class _Tar:
    """A .tar of images; a label is in a member of the same name that ends in .cls, or is the name of a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        found, classes = [], {}
        with _understood(path, "an archive of images, not packed"), tarfile.open(path, "r:") as tar:
            end = path.stat().st_size
            while (member := tar.next()) is not None:
                tar.members.clear()  # type: ignore[attr-defined]  # millions of them would fill the memory
                if not member.isreg() or member.issparse():
                    continue
                if member.offset_data + member.size > end:
                    raise ValueError(f"it ends inside {member.name!r}")
                name = PurePosixPath(member.name)
                if name.suffix.lower() in endings() and not name.name.startswith("."):
                    found.append((member.name, member.offset_data, member.size))
                elif name.suffix == ".cls" and member.size < 1000 and (held := tar.extractfile(member)):
                    classes[str(name.with_suffix(""))] = held.read().decode("utf-8", "replace").strip()
        if not found:
            raise ValueError(f"{path} holds no images; put some in, such as .png or .jpg")
        self.spans = np.array([span for _, *span in found])
        self.names: Sequence[str] = [f"{path.name}/{name}" for name, *_ in found]
        self.labels: Sequence[str] = [_label(PurePosixPath(name), classes) for name, *_ in found]

    def __len__(self) -> int:
        return len(self.spans)

    def value(self, i: int, grey: bool) -> NDArray[np.uint8]:
        """An image, out of memory."""
        offset, size = map(int, self.spans[i])
        with self.path.open("rb") as file:
            file.seek(offset)
            return decode_image(io.BytesIO(file.read(size)), grey)

    def values(self, start: int, stop: int) -> NDArray[Any]:
        """Images of one size, from 0 to 1, (n, H, W, 3)."""
        return _stacked(self, start, stop)

    def cuts(self, most: int) -> list[int]:
        """Even pieces."""
        return [*range(0, len(self), most), len(self)]


class _Parquet:
    """A .parquet of encoded images in a column `image` (bytes, or a struct that holds bytes), or of numbers."""

    def __init__(self, path: Path) -> None:
        self.path, size = path, path.stat().st_size
        with _understood(path, "a .parquet of images or numbers"):
            self.file = _pyarrow().ParquetFile(path, memory_map=True)
            meta, schema = self.file.metadata, self.file.schema_arrow
            unpacked = sum(meta.row_group(g).total_byte_size for g in range(meta.num_row_groups))
            if not 0 < meta.num_rows <= size or not 0 <= unpacked <= max(LARGE, RATIO * size):
                raise ValueError(f"{meta.num_rows:,} rows of {unpacked:,} bytes in a file of {size:,} are not likely")
            self.column = next((name for name in ("image", "jpg", "png") if name in schema.names), None)
            self.numbers = [f.name for f in schema if f.name != "label" and _is_number(f.type)]
            if self.column is None and not self.numbers:
                raise ValueError(f"its columns are {', '.join(schema.names)}; give one 'image', or columns of numbers")
            sizes = [meta.row_group(g).num_rows for g in range(meta.num_row_groups)]
            if min(sizes) < 0 or sum(sizes) != meta.num_rows:
                raise ValueError("its parts are not as many rows as it has")
            labels = self.file.read(columns=["label"])["label"].to_pylist() if "label" in schema.names else []
        self.ends: list[int] = list(accumulate(sizes))
        self.names: Sequence[str] = _Numbered(path.name, self.ends[-1])
        self.labels: Sequence[str] = [_word(x) for x in labels] or _Empty(self.ends[-1])
        self._rows = lru_cache(1)(self._read_rows)
        self._ahead: tuple[int, int, list[Any], Iterator[Any]] = (-1, 0, [], iter(()))

    def __len__(self) -> int:
        return self.ends[-1]

    def _read_rows(self, number: int) -> NDArray[Any]:
        """The numbers of a row group, (n, D)."""
        with _understood(self.path, "a .parquet of images or numbers"):
            table = self.file.read_row_group(number, columns=self.numbers)
            return np.concatenate([_plain(table[name], table.num_rows) for name in self.numbers], axis=1)

    def _held(self, i: int) -> Any:
        """The cell of an image: some are read at a time, so that going forwards is cheap and memory stays bounded."""
        number = bisect_right(self.ends, i)
        place = i - (self.ends[number - 1] if number else 0)
        group, start, cells, more = self._ahead
        with _understood(self.path, "a .parquet of images or numbers"):
            if group != number or place < start:
                batches = self.file.iter_batches(CELLS, row_groups=[number], columns=[self.column], use_threads=False)
                start, cells, more = 0, [], (batch.column(0).to_pylist() for batch in batches)
            while place >= start + len(cells):
                start, cells = start + len(cells), next(more, [])
                if not cells:
                    raise ValueError(f"row {i} is not there")
        self._ahead = number, start, cells, more
        return cells[place - start]

    def value(self, i: int, grey: bool) -> NDArray[np.uint8]:
        """An image, out of memory."""
        if self.column is None:
            raise ValueError("rows are numbers; give a column 'image' of encoded images")
        held = self._held(i)
        data = held.get("bytes") if isinstance(held, dict) else held
        if not isinstance(data, bytes):
            raise ValueError(f"it is {data!r:.40}; give the bytes of an image file")
        return decode_image(io.BytesIO(data), grey)

    def values(self, start: int, stop: int) -> NDArray[Any]:
        """Rows of numbers, or images of one size, from 0 to 1, (n, H, W, 3)."""
        if self.column is not None:
            return _stacked(self, start, stop)
        number = bisect_right(self.ends, start)
        first = self.ends[number - 1] if number else 0
        return self._rows(number)[start - first : stop - first]

    def cuts(self, most: int) -> list[int]:
        """Its own row groups, which are read whole, cut further where they are larger."""
        starts = [0, *self.ends[:-1]]
        return sorted({c for a, b in zip(starts, self.ends, strict=True) for c in (*range(a, b, most), b)} | {0})


OPENERS: dict[str, Any] = {".npy": _Array, ".tar": _Tar, ".parquet": _Parquet}


class _Numbered(Sequence[str]):
    """Names such as `x.npy[3]`, made when they are asked for."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self.many = name, count

    def __len__(self) -> int:
        return self.many

    def __getitem__(self, i: Any) -> Any:
        return f"{self.name}[{range(self.many)[i]}]"


class _Empty(_Numbered):
    """No labels."""

    def __init__(self, count: int) -> None:
        super().__init__("", count)

    def __getitem__(self, i: Any) -> Any:
        return ""


@contextmanager
def _understood(path: Path, what: str) -> Iterator[None]:
    """Whatever goes wrong inside becomes a ValueError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (
        *(tarfile.TarError, OSError, EOFError, ValueError, KeyError, TypeError, IndexError, AttributeError),
        *(OverflowError, NotImplementedError, RuntimeError, MemoryError, RecursionError),
    ) as error:
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path} cannot be read as {what} ({why}); restore it from a copy or take it away") from error


def _stacked(shard: Shard, start: int, stop: int) -> NDArray[np.float32]:
    try:
        images = [shard.value(i, grey=False) for i in range(start, stop)]
        rows: NDArray[np.float32] = np.divide(np.stack(images), 255, dtype=np.float32)
        return rows
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{shard.path}: images {start} to {stop} cannot be read as images of one size ({error})"
        ) from error


def _label(name: PurePosixPath, classes: dict[str, str]) -> str:
    """What a .cls beside an image says, or else the folder that it lies in."""
    return classes.get(str(name.with_suffix("")), name.parent.name)


def _word(value: Any) -> str:
    return "" if value is None else str(value)


def _plain(column: Any, rows: int) -> NDArray[Any]:
    """A column of numbers, or of lists of as many numbers each, as (rows, n)."""
    array = column.combine_chunks()
    while "list" in str(array.type):
        if array.null_count or len(array.value_lengths().unique()) != 1:
            raise ValueError("its lists are not all of one length")
        array = array.flatten()
    if array.null_count:
        raise ValueError(f"{array.null_count} of its cells are empty")
    plain: NDArray[Any] = array.to_numpy(zero_copy_only=False).reshape(rows, -1)
    return plain


def _is_number(kind: Any) -> bool:
    types = import_module("pyarrow.types")
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind = kind.value_type
    return bool(types.is_integer(kind) or types.is_floating(kind))


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(f"{error}; .parquet needs pyarrow: pip install pyarrow") from error
