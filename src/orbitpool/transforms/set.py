"""TransformSet: S linear operators, stored sparse, applied to batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import prod
from typing import Any, overload

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbitpool.transforms.quarters import Quarters, interleave, quarters
from orbitpool.transforms.sparse import Sparse

Shape = tuple[int, ...]
NEAR = 1e-6  # what weights differ by that would be the same without rounding


class TransformSet:
    """S linear operators T_s from a field of D1 pixels to a window of D2 pixels, stored sparse.

    Made by the functions of `orbitpool.transforms` and never changed afterwards. Vectors hold pixels x channels,
    channels last (a flattened (H, W) or (H, W, C) image); the number of channels is read off their length. Operators
    follow their input to its device and float type. NumPy gives NumPy, tensors give tensors, with gradients.

    Attributes
    ----------
    field_shape, window_shape : tuple of int
        Pixels (rows, columns), or (frames,).
    labels : tuple of str
        What each operator does, in words.
    """

    def __init__(self, operators: Sparse, field_shape: Shape, window_shape: Shape, labels: Iterable[str]) -> None:
        self._operators = (
            operators  # (D2 S, D1): row d of every T_s, then row d + 1, so that products come out in one piece
        )
        self.field_shape, self.window_shape, self.labels = field_shape, window_shape, tuple(labels)
        self._copies: dict[tuple[torch.device, torch.dtype], TransformSet] = {}

    @overload
    def apply(self, v: Tensor) -> Tensor: ...
    @overload
    def apply(self, v: NDArray[Any]) -> NDArray[Any]: ...
    def apply(self, v: Any) -> Any:
        """T_s v for every s: fields (..., D1 C) to windows (..., S, D2 C)."""
        if not isinstance(v, Tensor):
            return self.apply(_tensor(v)).numpy()
        channels = channels_of(v, self.field_shape, "field")
        return self._each(self.to(v.device, v.dtype)._operators, v, channels)

    @overload
    def adjoint(self, u: Tensor) -> Tensor: ...
    @overload
    def adjoint(self, u: NDArray[Any]) -> NDArray[Any]: ...
    def adjoint(self, u: Any) -> Any:
        """sum_s T_s' u_s: windows (..., S, D2 C) back to fields (..., D1 C)."""
        if not isinstance(u, Tensor):
            return self.adjoint(_tensor(u)).numpy()
        channels = channels_of(u, self.window_shape, "window")
        if u.ndim < 2 or u.shape[-2] != len(self):
            raise ValueError(
                f"adjoint got shape {tuple(u.shape)}; it takes (..., {len(self)}, {u.shape[-1]}), "
                "one window for each transformation"
            )
        lead, n, d1, d2 = u.shape[:-2], prod(u.shape[:-2]), prod(self.field_shape), prod(self.window_shape)
        windows = u.reshape(n, len(self), d2 * channels).permute(2, 1, 0).reshape(d2, channels, len(self), n)
        rows = windows.transpose(1, 2).reshape(d2 * len(self), channels * n)
        back = self.to(u.device, u.dtype)._operators.T @ rows
        return back.view(d1 * channels, n).T.reshape(*lead, d1 * channels)

    @overload
    def orbit(self, w: Tensor) -> Tensor: ...
    @overload
    def orbit(self, w: NDArray[Any]) -> NDArray[Any]: ...
    def orbit(self, w: Any) -> Any:
        """T_s' w for every s: filters (..., D2 C) to their poses in the field (..., S, D1 C)."""
        if not isinstance(w, Tensor):
            return self.orbit(_tensor(w)).numpy()
        channels = channels_of(w, self.window_shape, "window")
        return self._each(self.to(w.device, w.dtype)._transposes, w, channels)

    def _each(self, operators: Sparse, x: Tensor, channels: int) -> Tensor:
        """Every operator on every vector, (..., S, pixels C): a view of (pixels C, S, N), the batch last in memory."""
        lead, n, S, pixels = x.shape[:-1], prod(x.shape[:-1]), len(self), operators.shape[0] // len(self)
        y = operators @ x.reshape(n, x.shape[-1]).T.reshape(operators.shape[1], channels * n)
        y = y.view(pixels, S, channels, n).transpose(1, 2).reshape(pixels * channels, S, n)  # a copy only for channels
        return y.permute(2, 1, 0).reshape(*lead, S, pixels * channels)

    def to_dense(self) -> Tensor:
        """The matrices for one channel, (S, D2, D1)."""
        dense = torch.from_numpy(self._operators.to_scipy().toarray())
        return dense.view(prod(self.window_shape), len(self), -1).transpose(0, 1).to(self.device, self.dtype)

    def to(self, device: str | torch.device | None = None, dtype: torch.dtype | None = None) -> TransformSet:
        """The same set stored on another device or in another float type."""
        place = torch.empty(0, device=device or self.device).device  # "cuda" is some "cuda:0"
        dtype = dtype or self.dtype
        if not dtype.is_floating_point:
            raise ValueError(f"dtype {dtype} has no fractions; transformations need a float type such as torch.float32")
        if (place, dtype) == (self.device, self.dtype):
            return self
        if (place, dtype) not in self._copies:
            operators = self._operators.to(place, dtype)
            self._copies[place, dtype] = TransformSet(operators, self.field_shape, self.window_shape, self.labels)
        return self._copies[place, dtype]

    @property
    def device(self) -> torch.device:
        """Where the operators are stored."""
        return self._operators.values.device

    @property
    def dtype(self) -> torch.dtype:
        """The float type in which the operators are stored."""
        return self._operators.values.dtype

    @cached_property
    def leaves_alone(self) -> bool:
        """Whether there is one operator, and it does nothing."""
        if len(self) > 1 or self.field_shape != self.window_shape:
            return False
        matrix = self._operators.to_scipy()
        return bool((matrix != scipy.sparse.eye_array(*matrix.shape)).nnz == 0)

    @cached_property
    def orders(self) -> list[NDArray[Any]]:
        """Of each operator that only puts pixels into another order, the pixel of the field that each one shows."""
        if self.field_shape != self.window_shape:
            return []
        kept = []
        for T in self.matrices():
            order = np.asarray(T.argmax(axis=1)).ravel()
            moved = scipy.sparse.eye_array(len(order), format="csr")[order]
            if len(set(order)) == len(order) and abs(T - moved).max() < NEAR:
                kept.append(order)
        return kept

    @cached_property
    def quarters(self) -> Quarters | None:
        """How poses come in quarter turns of each other, if they do."""
        return quarters(self.matrices(), self.window_shape, self.device, self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes that the operators take."""
        return self._operators.nbytes

    @property
    def nnz(self) -> int:
        """Non-zero weights of all operators together: the multiplications it costs to move one channel."""
        return self._operators.values.numel()

    def matrices(self) -> list[Any]:
        """Each T_s for one channel as a float64 scipy.sparse.csr_array, (D2, D1)."""
        rows = self._operators.to_scipy()
        return [rows[s :: len(self)] for s in range(len(self))]

    @cached_property
    def _transposes(self) -> Sparse:
        """(D1 S, D2): the T_s' stacked likewise."""
        return _interleave([T.T for T in self.matrices()], self.device, self.dtype)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int | slice | Sequence[int]) -> TransformSet:
        """A set of the chosen transformations; an integer chooses one."""
        chosen = np.atleast_1d(np.arange(len(self))[index])
        if len(chosen) == 0:
            raise ValueError(f"index {index} chooses none of {len(self)} transformations; a set holds at least one")
        matrices = self.matrices()
        labels = [self.labels[i] for i in chosen]
        subset = stack([matrices[i] for i in chosen], self.field_shape, self.window_shape, labels)
        return subset.to(self.device, self.dtype)

    def __iter__(self) -> Iterator[TransformSet]:
        return iter(self._singles)

    @cached_property
    def _singles(self) -> list[TransformSet]:
        """Each transformation as a set of one."""
        each = zip(self.matrices(), self.labels, strict=True)
        shapes = self.field_shape, self.window_shape
        return [stack([matrix], *shapes, [label]).to(self.device, self.dtype) for matrix, label in each]

    def __eq__(self, other: object) -> bool:
        """Same shapes, labels and weights; weights rounded to another float type are others."""
        if not isinstance(other, TransformSet):
            return NotImplemented
        same_kind = (self.field_shape, self.window_shape, self.labels) == (
            (other.field_shape, other.window_shape, other.labels)
        )
        return same_kind and bool((self._operators.to_scipy() != other._operators.to_scipy()).nnz == 0)

    def __hash__(self) -> int:
        return hash((self.field_shape, self.window_shape, self.labels))

    def __deepcopy__(self, memo: dict[int, Any]) -> TransformSet:
        return self  # nothing changes a set, so a copy could not be told from it

    def __reduce__(self) -> tuple[Any, ...]:
        return TransformSet, (self._operators, self.field_shape, self.window_shape, self.labels)

    def __repr__(self) -> str:
        names = ", ".join(self.labels if len(self) <= 3 else (self.labels[0], "…", self.labels[-1]))
        return f"TransformSet({len(self)} of {by(self.field_shape)} → {by(self.window_shape)}: {names})"


def stack(matrices: Sequence[Any], field: Shape, window: Shape, labels: Iterable[str]) -> TransformSet:
    """A set from sparse matrices of shape (D2, D1) each."""
    return TransformSet(_interleave(matrices, torch.device("cpu"), torch.float64), field, window, labels)


def by(shape: Shape) -> str:
    """A shape as a person writes it: 28×28."""
    return "×".join(map(str, shape))


def _tensor(array: Any) -> Tensor:
    array = np.asarray(array)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"an array of {array.dtype} is not one of real numbers; transformations take those alone")
    kept = array.dtype.kind == "f" and array.dtype.itemsize <= 8
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("=") if kept else np.float64, order="C"))


def channels_of(x: Tensor, pixels: Shape, name: str) -> int:
    """The number of channels of vectors over a field or window."""
    length, size = (x.shape[-1] if x.ndim else 1), prod(pixels)
    if length == 0 or length % size:
        raise ValueError(
            f"vectors of length {length} do not fit a {name} of {by(pixels)} = {size} pixels; "
            f"the length must be {size} times the number of channels"
        )
    return length // size


def _interleave(matrices: Sequence[Any], device: torch.device, dtype: torch.dtype) -> Sparse:
    return Sparse.from_scipy(interleave(matrices), device, dtype)
