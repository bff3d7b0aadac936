"""Where minibatches come from: arrays, memory-mapped arrays, and iterables of batches."""

from __future__ import annotations

import hashlib
import mmap
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbitpool.learners.checks import finite

_PLAIN = ("float32", "float64", "uint8")  # types that torch has, too
_LOOK, _SPLIT = 1 << 32, 2 << 32  # added to a run's seed, so that no two choices of rows are the same


class Source(Protocol):
    """Rows to learn from, epoch after epoch."""

    n_features: int
    dtype: torch.dtype
    device: torch.device

    def look(self, rows: int, seed: int) -> Tensor:
        """Some rows, to start a model from, (n, D1)."""

    def batches(self, size: int, order: int | None, skip: int) -> Iterator[Tensor]:
        """One epoch of minibatches, (n, D1) each, shuffled by the seed `order` and without the first `skip`."""

    def n_batches(self, size: int) -> int | None:
        """Minibatches in an epoch, if that is known."""

    def fingerprint(self) -> str:
        """Unlike for sources that hold other data, as far as a sample shows."""


class Rows:
    """An array (N, ...) in memory or mapped into it; only the rows of a batch are ever converted.

    `only` names the rows that count, if not all do; `checked` says that all values are known to be finite.
    """

    def __init__(
        self, X: Any, dtype: torch.dtype, device: torch.device, checked: bool = False, only: Tensor | None = None
    ) -> None:
        self.X, self.dtype, self.device, self.checked, self.only = X, dtype, device, checked, only
        self.n_features = int(np.prod(X.shape[1:]))
        if not checked and isinstance(X, Tensor):
            finite(X)
            self.checked = True

    def __len__(self) -> int:
        return int(self.X.shape[0]) if self.only is None else len(self.only)

    def look(self, rows: int, seed: int) -> Tensor:
        """Random rows in their order, (n, D1), perhaps in memory of the array, so not to be written to."""
        if rows >= len(self) and self.only is None:
            return convert(self.X, self.dtype, self.device, self.checked)
        _advise(self.X, "RANDOM")
        return self._take(_permutation(len(self), seed + _LOOK)[:rows].sort().values)

    def batches(self, size: int, order: int | None, skip: int) -> Iterator[Tensor]:
        """Minibatches in an order that depends on the seed alone."""
        return (batch[:] for batch in self.chosen(size, order, skip))

    def chosen(self, size: int, order: int | None, skip: int) -> Iterator[Chosen]:
        """The same minibatches, of which only those rows are read that are asked for."""
        rows = torch.arange(len(self)) if order is None else _permutation(len(self), order)
        rows = rows.to(self.X.device) if isinstance(self.X, Tensor) else rows
        _advise(self.X, "NORMAL" if order is None else "RANDOM")
        for start in range(skip * size, len(self), size):
            yield Chosen(self, rows[start : start + size])
            _advise(self.X, "DONTNEED")  # else every page that was ever read counts as ours

    def n_batches(self, size: int) -> int:
        """Minibatches in an epoch, the last one perhaps smaller."""
        return -(-len(self) // size)

    def fingerprint(self) -> str:
        """Shape, type and 64 of the rows."""
        digest = hashlib.sha256(f"{tuple(self.X.shape)} {self.dtype}".encode())
        spread = torch.linspace(0, len(self) - 1, min(len(self), 64), dtype=torch.float64).long()
        digest.update(self._take(spread).cpu().numpy().tobytes())
        return digest.hexdigest()

    def resident(self) -> Rows:
        """The same with the array on the GPU that computes, if it takes at most a quarter of what is free there."""
        if self.device.type != "cuda" or isinstance(self.X, (Tensor, np.memmap)) or self.X.dtype.name not in _PLAIN:
            return self
        if 4 * self.X.nbytes > torch.cuda.mem_get_info(self.device)[0]:
            return self
        X = torch.from_numpy(np.require(self.X, requirements=["C", "W"])).to(self.device)
        return Rows(X, self.dtype, self.device, self.checked, self.only)

    def part(self, own: slice) -> Rows:
        """Rows of it that follow each other."""
        if self.only is None:
            return Rows(self.X[own], self.dtype, self.device, self.checked)
        return Rows(self.X, self.dtype, self.device, self.checked, self.only[own])

    def split(self, fraction: float, seed: int) -> tuple[Rows, Rows]:
        """The rows without a random part of them, and that part."""
        shuffled = _permutation(len(self), seed + _SPLIT)
        held_out = max(1, round(fraction * len(self)))
        if held_out >= len(self):
            raise ValueError(
                f"validation_fraction {fraction} of {len(self)} rows leaves none to learn from; "
                "lower it, give more rows, or set early_stopping=False"
            )
        return self._only(shuffled[held_out:]), self._only(shuffled[:held_out])

    def _only(self, rows: Tensor) -> Rows:
        return Rows(self.X, self.dtype, self.device, self.checked, rows.sort().values)

    def _take(self, rows: Tensor) -> Tensor:
        chosen = rows if self.only is None else self.only.to(rows.device)[rows]
        taken = self.X[chosen.to(self.X.device)] if isinstance(self.X, Tensor) else self.X[chosen.numpy()]
        return convert(taken, self.dtype, self.device, self.checked)


class Chosen:
    """Rows of a source, read when they are asked for."""

    def __init__(self, source: Rows, rows: Tensor) -> None:
        self.source, self.rows, self.device = source, rows, source.device

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: slice | Tensor) -> Tensor:
        return self.source._take(self.rows[which.to(self.rows.device) if isinstance(which, Tensor) else which])


class Batches:
    """An iterable that gives ready minibatches and can be gone through once an epoch, such as a DataLoader."""

    def __init__(self, iterable: Iterable[Any], dtype: torch.dtype | None, device: torch.device) -> None:
        self.iterable, self.device = iterable, device
        self._ahead: Iterator[Any] | None = iter(iterable)
        self._first = next(self._ahead, None)
        self._looked = [self._first]
        if self._first is None:
            raise ValueError("the iterable gave 0 batches; give at least one array of shape (n, features)")
        first = _as_array(self._first)
        self.dtype = dtype or working_dtype(first)
        self.row_shape: tuple[int, ...] = tuple(first.shape[1:])
        self.n_features = int(np.prod(self.row_shape))

    def look(self, rows: int, seed: int) -> Tensor:
        """The beginning of the first batch, (n, D1)."""
        return self._convert(self._first)[:rows]

    def ahead(self, rows: int) -> Tensor:
        """So many rows of the first batches, or all there are, (n, D1); the first epoch begins with them, too."""
        held = [self._convert(batch) for batch in self._looked]
        while self._ahead is not None and sum(map(len, held)) < rows:
            batch = next(self._ahead, None)
            if batch is None:
                break
            self._looked.append(batch)
            held.append(self._convert(batch))
        return torch.cat(held)[:rows]

    def batches(self, size: int, order: int | None, skip: int) -> Iterator[Tensor]:
        """The iterable's own minibatches in its own order."""
        seen = -1
        for seen, batch in enumerate(self._stream()):
            if seen >= skip:
                yield self._convert(batch)
        if seen < 0:
            raise ValueError(
                "the iterable gave 0 batches in a later epoch: a generator can be gone through once; give something "
                "that starts again when it is iterated, such as a DataLoader, or set n_iter=1"
            )

    def n_batches(self, size: int) -> None:
        """Not known before the end."""

    def fingerprint(self) -> str:
        """The first batch stands for all."""
        return hashlib.sha256(self._convert(self._first).cpu().numpy().tobytes()).hexdigest()

    def _stream(self) -> Iterator[Any]:
        """The batches of an epoch; the first epoch goes on from the batches that were looked at."""
        if self._ahead is None:
            yield from self.iterable
            return
        ahead, self._ahead = self._ahead, None
        looked, self._looked = self._looked, [self._first]
        yield from looked
        yield from ahead

    def _convert(self, batch: Any) -> Tensor:
        array = _as_array(batch)
        if array.shape[0] == 0 or int(np.prod(array.shape[1:])) != self.n_features:
            raise ValueError(
                f"a batch has shape {tuple(array.shape)}; the first one had {self.n_features} features a row, "
                "and every batch needs as many and at least one row"
            )
        return convert(array, self.dtype, self.device, checked=False)


def is_stream(X: Any) -> bool:
    """Whether X is an iterable of batches, and not an array or something that turns into one."""
    array_like = isinstance(X, (list, tuple, Tensor)) or any(
        hasattr(X, name) for name in ("shape", "__array__", "__dataframe__", "__arrow_c_stream__")
    )
    return not array_like and hasattr(X, "__iter__") and not isinstance(X, (str, bytes, dict))


def working_dtype(X: Any) -> torch.dtype:
    """The float type to compute in: float64 for float64 and longer, float32 for everything else."""
    if isinstance(X, Tensor):
        return torch.float64 if X.dtype == torch.float64 else torch.float32
    return torch.float64 if X.dtype.kind == "f" and X.dtype.itemsize >= 8 else torch.float32


def shared(X: NDArray[Any]) -> Tensor:
    """An array as a tensor in the same memory where that can be, which nothing may write to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(X if min(X.strides, default=0) >= 0 else X.copy())


def convert(x: Any, dtype: torch.dtype, device: torch.device, checked: bool) -> Tensor:
    """Rows of any array as (n, D1), checked for NaN before they leave the CPU unless that was done already."""
    if not isinstance(x, Tensor):
        x = torch.from_numpy(np.require(x, np.float64 if dtype == torch.float64 else np.float32, ["C", "W"]))
    if x.is_complex():
        raise ValueError(f"Complex data not supported: X is {x.dtype}; give real numbers")
    batch: Tensor = x.detach().reshape(len(x), -1).to(dtype)
    if not checked:
        finite(batch)
    return batch.to(device)


def _as_array(batch: Any) -> Any:
    """The inputs of a batch, which a DataLoader may give together with labels."""
    array = batch[0] if isinstance(batch, (tuple, list)) else batch
    array = array if isinstance(array, Tensor) else np.asarray(array)
    if array.ndim < 2 or (isinstance(array, np.ndarray) and array.dtype.kind not in "fiub"):
        raise ValueError(
            f"a batch has shape {tuple(array.shape)} and type {array.dtype}; it must be (n, features) or "
            "(n, height, width[, channels]) of real numbers"
        )
    return array


def _permutation(n: int, seed: int) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


def _advise(X: Any, advice: str) -> None:
    """Tell the system how a mapped file is read; nothing for other arrays."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and X.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
            X._mmap.madvise(getattr(mmap, f"MADV_{advice}"))  # type: ignore[attr-defined]
            return
        X = X.base
