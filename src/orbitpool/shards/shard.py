"""What one file of many is, and what all kinds of them share."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Shard(Protocol):
    """One file: N items, which have names, labels ("" where there is none) and values."""

    path: Path
    names: Sequence[str]
    labels: Sequence[str]
    row_shape: tuple[int, ...] | None  # of an item as a row, where that is known without reading
    scattered: bool  # whether items here and there are read without what lies between
    wholes: Sequence[int]  # where stretches end that are read whole, whatever is asked for; none if there are no such
    whole_size: int  # bytes that the largest of them takes in memory

    def __len__(self) -> int:
        """How many items."""

    def value(self, i: int, grey: bool) -> NDArray[Any]:
        """An item: an image in bytes, or an array of the file's own numbers; ValueError if it is damaged."""

    def values(self, items: Sequence[int]) -> NDArray[Any]:
        """Items, in rising order, as rows, (n, ...): the file's own numbers, images as 0-1."""

    def cuts(self, most: int) -> list[int]:
        """Where to cut into pieces of about so many items that are read at once, first and last included."""


class Numbered(Sequence[str]):
    """Names such as `x.npy[3]`, made when they are asked for."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self.many = name, count

    def __len__(self) -> int:
        return self.many

    def __getitem__(self, i: Any) -> Any:
        return f"{self.name}[{range(self.many)[i]}]"


class Empty(Numbered):
    """No labels."""

    def __init__(self, count: int) -> None:
        super().__init__("", count)

    def __getitem__(self, i: Any) -> Any:
        return ""


@contextmanager
def understood(path: Path, what: str) -> Iterator[None]:
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


def stacked(shard: Shard, items: Sequence[int]) -> NDArray[np.float32]:
    """The images of a shard as rows, from 0 to 1, (n, H, W, 3)."""
    try:
        images = [shard.value(i, grey=False) for i in items]
        rows: NDArray[np.float32] = np.divide(np.stack(images), 255, dtype=np.float32)
        return rows
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{shard.path}: images {items[0]} to {items[-1]} cannot be read as images of one size ({error})"
        ) from error
