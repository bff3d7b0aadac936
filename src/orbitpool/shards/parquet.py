"""A .parquet of encoded images, or of numbers, as a shard."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.arrayfiles import LARGE, RATIO
from orbitpool.excerpt import excerpt
from orbitpool.imagefiles import decode_image
from orbitpool.shards.kept import Kept
from orbitpool.shards.shard import Empty, Numbered, stacked, understood

CELLS = 16  # images that are unpacked at a time
ROOM = 2**30  # bytes of row groups that are kept, of all files together
OPEN = 8  # row groups of images that are gone through at the same time


class Groups:
    """What is kept of the row groups of some files: those of numbers whole, of those of images the place reached."""

    def __init__(self) -> None:
        self.numbers, self.images = Kept(ROOM), Kept(OPEN)


class ParquetShard:
    """A .parquet of encoded images in a column `image` (bytes, or a struct that holds bytes), or of numbers."""

    row_shape: tuple[int, ...] | None = None
    scattered = False

    def __init__(self, path: Path, groups: Groups | None = None) -> None:
        self.path, self.groups, size = path, groups or Groups(), path.stat().st_size
        with understood(path, "a .parquet of images or numbers"):
            self.file = _pyarrow().ParquetFile(path, memory_map=True)
            meta, schema = self.file.metadata, self.file.schema_arrow
            parts = [_unpacked(meta.row_group(g)) for g in range(meta.num_row_groups)]
            unpacked = sum(parts)
            if meta.num_rows <= 0 or not 0 <= unpacked <= max(LARGE, RATIO * size):
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
        self.names: Sequence[str] = Numbered(path.name, self.ends[-1])
        self.labels: Sequence[str] = [_word(x) for x in labels] or Empty(self.ends[-1])
        self.wholes: Sequence[int] = self.ends
        self.sizes = [0 if self.column else 2 * part for part in parts]  # columns of several types become doubles
        self.whole_size = max(self.sizes)

    def __len__(self) -> int:
        return self.ends[-1]

    def _read_rows(self, number: int) -> NDArray[Any]:
        """The numbers of a row group, (n, D)."""
        with understood(self.path, "a .parquet of images or numbers"):
            table = self.file.read_row_group(number, columns=self.numbers)
            return np.concatenate([_plain(table[name], table.num_rows) for name in self.numbers], axis=1)

    def _held(self, i: int) -> Any:
        """The cell of an image: some are read at a time, so that going forwards is cheap and memory stays bounded."""
        number = bisect_right(self.ends, i)
        place = i - (self.ends[number - 1] if number else 0)
        key, kept = (self, number), self.groups.images
        with understood(self.path, "a .parquet of images or numbers"):
            ahead = kept.get(key, lambda: _Ahead(self, number))
            if place < ahead.start:
                kept.drop(key)
                ahead = kept.get(key, lambda: _Ahead(self, number))
            cell = ahead.at(place)
        if i + 1 == self.ends[number]:
            kept.drop(key)
        return cell

    def value(self, i: int, grey: bool) -> NDArray[np.uint8]:
        """An image, out of memory."""
        if self.column is None:
            raise ValueError("rows are numbers; give a column 'image' of encoded images")
        held = self._held(i)
        data = held.get("bytes") if isinstance(held, dict) else held
        if not isinstance(data, bytes):
            raise ValueError(f"it is {excerpt(data, 40)}; give the bytes of an image file")
        return decode_image(io.BytesIO(data), grey)

    def values(self, items: Sequence[int]) -> NDArray[Any]:
        """Rows of numbers out of one row group, or images of one size, from 0 to 1, (n, H, W, 3)."""
        if self.column is not None:
            return stacked(self, items)
        number = bisect_right(self.ends, items[0])
        first = self.ends[number - 1] if number else 0
        key, kept = (self, number), self.groups.numbers
        rows = kept.get(key, lambda: self._read_rows(number), self.sizes[number])
        some: NDArray[Any] = rows[items[0] - first : items[-1] + 1 - first]
        if items[-1] + 1 == self.ends[number]:
            kept.drop(key)
        return some

    def cuts(self, most: int) -> list[int]:
        """Its own row groups, which are read whole, cut further where they are larger."""
        starts = [0, *self.ends[:-1]]
        return sorted({c for a, b in zip(starts, self.ends, strict=True) for c in (*range(a, b, most), b)} | {0})


class _Ahead:
    """A way through the images of a row group, forwards."""

    def __init__(self, shard: ParquetShard, number: int) -> None:
        batches = shard.file.iter_batches(CELLS, row_groups=[number], columns=[shard.column], use_threads=False)
        self.more: Iterator[list[Any]] = (batch.column(0).to_pylist() for batch in batches)
        self.start, self.cells = 0, list[Any]()

    def at(self, place: int) -> Any:
        """The cell at a place that is not behind."""
        while place >= self.start + len(self.cells):
            self.start, self.cells = self.start + len(self.cells), next(self.more, [])
            if not self.cells:
                raise ValueError(f"row {place} of a row group is not there")
        return self.cells[place - self.start]


def _unpacked(group: Any) -> int:
    """Bytes of a row group in memory, at least; equal values take none in the file."""
    values = sum(group.column(c).num_values for c in range(group.num_columns))
    return int(max(group.total_byte_size, 4 * values))


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
