"""Rows out of many files, larger than memory together, to learn from."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, islice, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbitpool.learners.checks import whole
from orbitpool.learners.sources import convert, working_dtype
from orbitpool.shards import ROOM, Files, Groups, Shard, Together, open_shard, shard_files

PIECES = 8  # of the buffer, each read at once from one place
SAMPLED = 16  # pieces whose first rows stand for all

Piece = tuple[int, int, int]  # number of a shard, first and last row


class Shards:
    """Rows in many files, for `fit` and `partial_fit` of a learner: `TIRBM(100).fit(Shards("patches/*.npy"))`.

    Files are .npy (n, features) or (n, height, width[, channels]); .parquet of numbers, in columns or in lists, or of
    encoded images in a column `image`; or .tar of images of one size, which count as 0-1. `fit` goes through them in
    an order that depends on the seed and the epoch alone: pieces of all files are shuffled, and rows within a buffer
    of some pieces. Row groups of a .parquet are read whole, once an epoch: up to eight are gone through side by side,
    as many as fit into 1 GiB, so that some tens of megabytes each are best. A run that is stopped goes on from its
    checkpoint without reading again what it has seen.

    Parameters
    ----------
    files : path, pattern or list of paths
        A folder of shards, a pattern such as `"shard-*.npy"`, or the files themselves.
    buffer : int
        Rows that are in memory and shuffled at a time.
    """

    def __init__(self, files: Files, buffer: int = 10_000) -> None:
        whole("buffer", buffer)
        self.files, self.buffer = shard_files(files), buffer
        if not self.files:
            raise ValueError(f"{files} names no shards; give a folder or a pattern of .npy, .parquet or .tar files")
        groups = Groups()
        self._held = Together([open_shard(path, groups) for path in self.files])
        most = max(1, buffer // PIECES)
        self.pieces: list[Piece] = [
            (number, start, stop)
            for number, shard in enumerate(self._held.shards)
            for start, stop in pairwise(shard.cuts(most))
        ]
        self.units = [list(unit) for _, unit in groupby(self.pieces, self._unit)]
        self.row_shape: tuple[int, ...] = self._held.shards[0].values(range(1)).shape[1:]
        for shard in self._held.shards:
            self._check(shard, shard.row_shape or self.row_shape)

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """All rows in the order of the files, a piece at a time."""
        return map(self.read, self.pieces)

    def read(self, piece: Piece) -> NDArray[Any]:
        """The rows of a piece, (n, ...)."""
        number, start, stop = piece
        return self.rows(number, range(start, stop))

    def rows(self, number: int, items: Sequence[int]) -> NDArray[Any]:
        """Some items of a shard, in rising order, (n, ...)."""
        shard = self._held.shards[number]
        rows = shard.values(items)
        self._check(shard, rows.shape[1:])
        return rows

    @property
    def scattered(self) -> bool:
        """Whether rows here and there are read without what lies between."""
        return all(shard.scattered for shard in self._held.shards)

    @property
    def at_once(self) -> int:
        """How many units to read side by side, so that what they keep in memory fits there."""
        largest = max(shard.whole_size for shard in self._held.shards)
        return max(1, min(PIECES, ROOM // max(1, largest)))

    def _unit(self, piece: Piece) -> tuple[int, int]:
        """The same for pieces of a stretch that is read whole, even for one of them."""
        number, start, _ = piece
        wholes = self._held.shards[number].wholes
        return number, bisect_right(wholes, start) if wholes else start

    def _check(self, shard: Shard, shape: tuple[int, ...]) -> None:
        if shape != self.row_shape:
            raise ValueError(
                f"{shard.path} has rows of shape {shape}, but {self.files[0]} has {self.row_shape}; "
                "all shards must have the same"
            )


class ShardRows:
    """Minibatches out of shards."""

    def __init__(self, shards: Shards, dtype: torch.dtype | None, device: torch.device) -> None:
        self.shards, self.device = shards, device
        self.dtype = dtype or working_dtype(shards.read(shards.pieces[0])[:1])
        self.n_features = int(np.prod(shards.row_shape))

    def look(self, rows: int, seed: int) -> Tensor:
        """Random rows out of some random pieces, (n, D1)."""
        rng, taken, count = np.random.default_rng([seed, 2]), [], 0
        for number in rng.permutation(len(self.shards.pieces)):
            taken.append(self.shards.read(self.shards.pieces[number]))
            count += len(taken[-1])
            if count >= 4 * rows or count >= self.shards.buffer:
                break
        held = np.concatenate(taken)
        return self._convert(held[np.sort(rng.permutation(len(held))[:rows])])

    def batches(self, size: int, order: int | None, skip: int) -> Iterator[Tensor]:
        """Minibatches in an order that depends on the seed alone; what is skipped is not read."""
        read = self.shards.read
        blocks = (np.concatenate(list(map(read, block)))[rows] for block, rows in self._blocks(order, skip * size))
        return map(self._convert, _cut(blocks, size))

    def chosen(self, size: int, order: int | None, skip: int) -> Iterator[Tensor | Scattered]:
        """The same minibatches, of which only those rows are read that are asked for, where files can be read so."""
        if not self.shards.scattered:
            return self.batches(size, order, skip)
        blocks = (np.concatenate(list(map(_places, block)))[rows] for block, rows in self._blocks(order, skip * size))
        return (Scattered(self, places) for places in _cut(blocks, size))

    def _blocks(self, order: int | None, skip: int) -> Iterator[tuple[list[Piece], NDArray[np.int64]]]:
        """Some pieces at a time, and the order of their rows, without the first `skip`."""
        units = self.shards.units
        shuffled = range(len(units)) if order is None else np.random.default_rng([order, 0]).permutation(len(units))
        at_once = 1 if order is None else self.shards.at_once
        for number, block in enumerate(_side_by_side((units[i] for i in shuffled), at_once)):
            count = sum(stop - first for _, first, stop in block)
            if skip >= count:
                skip -= count
                continue
            rows = np.arange(count)
            yield block, (rows if order is None else np.random.default_rng([order, 1, number]).permutation(rows))[skip:]
            skip = 0

    def take(self, places: NDArray[np.int64]) -> Tensor:
        """Rows by the numbers of their shards and their places there, (n, 2), in that order, (n, D1)."""
        rising = np.lexsort((places[:, 1], places[:, 0]))
        numbers, starts = np.unique(places[rising, 0], return_index=True)
        parts = np.split(places[rising, 1], starts[1:])
        rows = np.concatenate([self.shards.rows(int(n), part.tolist()) for n, part in zip(numbers, parts, strict=True)])
        return self._convert(rows[np.argsort(rising)])

    def n_batches(self, size: int) -> int:
        """Minibatches in an epoch, the last one perhaps smaller."""
        return -(-len(self.shards) // size)

    def fingerprint(self) -> str:
        """Sizes, type and the first row of some pieces."""
        pieces = self.shards.pieces
        sizes = list(accumulate(stop - start for _, start, stop in pieces))
        digest = hashlib.sha256(f"{sizes} {self.shards.row_shape} {self.dtype}".encode())
        for i in np.linspace(0, len(pieces) - 1, min(len(pieces), SAMPLED)).astype(int):
            number, start, _ = pieces[i]
            digest.update(self._convert(self.shards.read((number, start, start + 1))).cpu().numpy().tobytes())
        return digest.hexdigest()

    def _convert(self, rows: NDArray[Any]) -> Tensor:
        return convert(rows, self.dtype, self.device, checked=False)


class Scattered:
    """A minibatch whose rows are read when they are asked for."""

    def __init__(self, source: ShardRows, places: NDArray[np.int64]) -> None:
        self.source, self.places, self.device = source, places, source.device

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, which: slice | Tensor) -> Tensor:
        return self.source.take(self.places[which.cpu().numpy() if isinstance(which, Tensor) else which])


def _places(piece: Piece) -> NDArray[np.int64]:
    """The number of the shard and the place there of every row of a piece, (n, 2)."""
    number, start, stop = piece
    return np.stack([np.full(stop - start, number), np.arange(start, stop)], axis=1)


def _side_by_side(units: Iterable[list[Piece]], at_once: int) -> Iterator[list[Piece]]:
    """Eight pieces at a time, in turn out of so many units, each of which is gone through from its beginning."""
    waiting, running = iter(units), deque[deque[Piece]]()
    block: list[Piece] = []
    while True:
        running.extend(deque(unit) for unit in islice(waiting, at_once - len(running)))
        if not running:
            break
        unit = running.popleft()
        block.append(unit.popleft())
        running.extend([unit] if unit else [])
        if len(block) == PIECES:
            yield block
            block = []
    if block:
        yield block


def _cut(blocks: Iterable[NDArray[Any]], size: int) -> Iterator[NDArray[Any]]:
    """The rows of all blocks, so many at a time; the last ones may be fewer."""
    rest: NDArray[Any] | None = None
    for rows in blocks:
        rows = rows if rest is None else np.concatenate([rest, rows])
        full = len(rows) // size * size
        for start in range(0, full, size):
            yield rows[start : start + size]
        rest = rows[full:]
    if rest is not None and len(rest):
        yield rest
