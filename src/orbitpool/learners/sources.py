"""Where minibatches come from: arrays, memory-mapped arrays, and iterables of batches."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor


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
        """The same for sources that hold the same data."""


class Rows:
    """An array (N, ...) in memory or mapped into it; only the rows of a batch are ever converted."""

    def __init__(self, X: Any, dtype: torch.dtype, device: torch.device) -> None:
        self.X, self.dtype, self.device = X, dtype, device
        self.n_features = int(np.prod(X.shape[1:]))

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def look(self, rows: int, seed: int) -> Tensor:
        """Random rows, (n, D1)."""
        _advise(self.X, "RANDOM")
        return self._take(_permutation(len(self), seed)[:rows].sort().values)

    def batches(self, size: int, order: int | None, skip: int) -> Iterator[Tensor]:
        """Minibatches in an order that depends on the seed alone."""
        rows = torch.arange(len(self)) if order is None else _permutation(len(self), order)
        _advise(self.X, "NORMAL" if order is None else "RANDOM")
        for start in range(skip * size, len(self), size):
            yield self._take(rows[start : start + size])
            _advise(self.X, "DONTNEED")  # else every page that was ever read counts as ours

    def n_batches(self, size: int) -> int:
        """Minibatches in an epoch, the last one perhaps smaller."""
        return -(-len(self) // size)

    def fingerprint(self) -> str:
        """Shape, type and a sample of the rows."""
        digest = hashlib.sha256(f"{tuple(self.X.shape)} {self.dtype}".encode())
        spread = torch.linspace(0, len(self) - 1, min(len(self), 64)).long()
        digest.update(self._take(spread).cpu().numpy().tobytes())
        return digest.hexdigest()

    def split(self, fraction: float, seed: int) -> tuple[Source, Tensor]:
        """The rows without a random part of them, and that part, (n, D1)."""
        shuffled = _permutation(len(self), seed)
        held_out = max(1, round(fraction * len(self)))
        return Subset(self, shuffled[held_out:].sort().values), self._take(shuffled[:held_out].sort().values)

    def _take(self, rows: Tensor) -> Tensor:
        if isinstance(self.X, Tensor):
            taken = self.X[rows.to(self.X.device)]
        else:
            taken = torch.from_numpy(np.array(self.X[rows.numpy()], subok=False))
        batch = taken.reshape(len(rows), -1).to(self.device, self.dtype)
        return _finite(batch)


class Subset(Rows):
    """Some rows of an array, without a copy of it."""

    def __init__(self, whole: Rows, rows: Tensor) -> None:
        super().__init__(whole.X, whole.dtype, whole.device)
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def _take(self, rows: Tensor) -> Tensor:
        return super()._take(self.rows[rows])


class Batches:
    """An iterable that gives ready minibatches and can be gone through once an epoch, such as a DataLoader."""

    def __init__(self, iterable: Iterable[Any], dtype: torch.dtype | None, device: torch.device) -> None:
        self.iterable, self.device = iterable, device
        self._ahead: Iterator[Any] | None = iter(iterable)
        self._first = next(self._ahead, None)
        if self._first is None:
            raise ValueError(
                "the iterable of batches is empty (0 batches); give at least one array of shape (n, features)"
            )
        first = _as_array(self._first)
        self.dtype = dtype or working_dtype(first)
        self.n_features = int(np.prod(first.shape[1:]))

    def look(self, rows: int, seed: int) -> Tensor:
        """The beginning of the first batch, (n, D1)."""
        return self._convert(self._first)[:rows]

    def batches(self, size: int, order: int | None, skip: int) -> Iterator[Tensor]:
        """The iterable's own minibatches in its own order."""
        seen = -1
        for seen, batch in enumerate(self._stream()):
            if seen >= skip:
                yield self._convert(batch)
        if seen < 0:
            raise ValueError(
                "the iterable of batches gave none in a later epoch: a generator can be gone through once; "
                "give something that starts again, such as a list-like object or a DataLoader, or set n_iter=1"
            )

    def n_batches(self, size: int) -> None:
        """Not known before the end."""

    def fingerprint(self) -> str:
        """The first batch stands for all."""
        return hashlib.sha256(self._convert(self._first).cpu().numpy().tobytes()).hexdigest()

    def _stream(self) -> Iterator[Any]:
        """The batches of an epoch; the first epoch goes on from the batch that was looked at."""
        if self._ahead is None:
            yield from self.iterable
            return
        ahead, self._ahead = self._ahead, None
        yield self._first
        yield from ahead

    def _convert(self, batch: Any) -> Tensor:
        array = _as_array(batch)
        if array.shape[0] == 0 or int(np.prod(array.shape[1:])) != self.n_features:
            raise ValueError(
                f"a batch has shape {tuple(array.shape)}; the first one had {self.n_features} features a row, "
                "and every batch needs as many and at least one row"
            )
        return _finite(torch.as_tensor(array).reshape(array.shape[0], -1).to(self.device, self.dtype))


def is_stream(X: Any) -> bool:
    """Whether X is an iterable of batches, and not an array or something that turns into one."""
    array_like = isinstance(X, (list, tuple, Tensor)) or any(
        hasattr(X, name) for name in ("shape", "__array__", "__dataframe__", "__arrow_c_stream__")
    )
    return not array_like and hasattr(X, "__iter__") and not isinstance(X, (str, bytes, dict))


def working_dtype(X: Any) -> torch.dtype:
    """The float type to compute in: float64 for float64, float32 for everything else."""
    return torch.float64 if X.dtype in (torch.float64, np.float64) else torch.float32


def _as_array(batch: Any) -> Any:
    """The inputs of a batch, which a DataLoader may give together with labels."""
    array = batch[0] if isinstance(batch, (tuple, list)) else batch
    array = array if isinstance(array, Tensor) else np.asarray(array)
    if array.ndim < 2:
        raise ValueError(
            f"a batch has shape {tuple(array.shape)}; it must be (n, features) or (n, height, width[, channels])"
        )
    return array


def _permutation(n: int, seed: int) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


def _finite(batch: Tensor) -> Tensor:
    if not batch.isfinite().all():
        raise ValueError("Input contains NaN or infinity; every value must be finite: drop or fill those rows first")
    return batch


def _advise(X: Any, advice: str) -> None:
    """Tell the system how a mapped file is read; nothing for other arrays."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and X.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
            X._mmap.madvise(getattr(mmap, f"MADV_{advice}"))  # type: ignore[attr-defined]
            return
        X = X.base
