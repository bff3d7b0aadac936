"""Which files are meant, and many of them as one sequence."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from glob import glob, has_magic
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any

from orbitpool.imagefiles import endings
from orbitpool.shards.array import ArrayShard
from orbitpool.shards.parquet import Groups, ParquetShard
from orbitpool.shards.shard import Shard
from orbitpool.shards.tar import TarShard

Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
OPENERS: dict[str, Callable[[Path, Groups | None], Shard]] = {
    ".npy": lambda path, _: ArrayShard(path),
    ".tar": lambda path, _: TarShard(path),
    ".parquet": ParquetShard,
}


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


def open_shard(path: Path, groups: Groups | None = None) -> Shard:
    """A shard, by the ending of its name; what is kept of a .parquet is kept with that of others in `groups`."""
    if (ending := path.suffix.lower()) not in OPENERS:
        raise ValueError(f"{path} ends in {path.suffix!r}; shards end in {', '.join(OPENERS)}")
    return OPENERS[ending](path, groups)


class Chained(Sequence[Any]):
    """Sequences, one after the other, as one."""

    def __init__(self, parts: Sequence[Sequence[Any]]) -> None:
        self.parts, self.ends = parts, list(accumulate(map(len, parts)))

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def place(self, i: int) -> tuple[int, int]:
        """The number of the part that an item is in, and its place there."""
        i = range(len(self))[i]
        number = bisect_right(self.ends, i)
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
