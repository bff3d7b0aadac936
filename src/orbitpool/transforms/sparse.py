"""A constant sparse matrix that multiplies dense ones on any device, with gradients."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

DENSE = 2**25  # entries up to which a GPU multiplies zeros faster than it finds out where they are


class Sparse:
    """A sparse matrix in compressed rows.

    The product is `embedding_bag`: the one sparse kernel of torch that is fast on a CPU and on a GPU, takes 32-bit
    indices and every float type, and needs no particular BLAS. Its own gradient is slow and forgets the structure, so
    the gradient used here is the product with the transpose.
    """

    def __init__(self, starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> None:
        self.starts, self.columns, self.values, self.shape = starts, columns, values, shape

    @classmethod
    def from_scipy(cls, matrix: Any, device: torch.device, dtype: torch.dtype) -> Sparse:
        """The same matrix, from any scipy.sparse format."""
        rows = matrix.tocsr()
        rows.sort_indices()
        starts, columns = (torch.from_numpy(a.astype(np.int32)).to(device) for a in (rows.indptr, rows.indices))
        return cls(starts, columns, torch.from_numpy(rows.data).to(device, dtype), rows.shape)

    def to_scipy(self) -> Any:
        """The same matrix as a float64 scipy.sparse.csr_array."""
        values, columns, starts = (t.cpu() for t in (self.values, self.columns, self.starts))
        return scipy.sparse.csr_array((values.double().numpy(), columns.numpy(), starts.numpy()), shape=self.shape)

    def to(self, device: torch.device, dtype: torch.dtype) -> Sparse:
        """The same matrix on another device or in another float type."""
        return Sparse(self.starts.to(device), self.columns.to(device), self.values.to(device, dtype), self.shape)

    @cached_property
    def T(self) -> Sparse:
        """The transpose."""
        rows, columns = self.shape
        order = self.columns.argsort(stable=True)
        starts = pad(torch.bincount(self.columns, minlength=columns).cumsum(0), (1, 0)).int()
        transpose = Sparse(starts, self._rows[order], self.values[order], (columns, rows))
        transpose.__dict__["T"] = self
        return transpose

    @cached_property
    def longest(self) -> int:
        """The most entries that a row has."""
        return int(self.starts.diff().max())

    @property
    def nbytes(self) -> int:
        """Bytes that the three arrays take."""
        return sum(t.numel() * t.element_size() for t in (self.starts, self.columns, self.values))

    def __reduce__(self) -> tuple[Any, ...]:
        return Sparse, (self.starts, self.columns, self.values, self.shape)

    @cached_property
    def _dense(self) -> Tensor:
        return self.values.new_zeros(self.shape).index_put_((self._rows, self.columns), self.values, accumulate=True)

    @cached_property
    def _rows(self) -> Tensor:
        """Of each entry."""
        return torch.arange(self.shape[0], device=self.starts.device).int().repeat_interleave(self.starts.diff())

    def __matmul__(self, x: Tensor) -> Tensor:
        if x.is_cuda and prod(self.shape) <= DENSE:
            return self._dense @ x
        product: Tensor = _Product.apply(x, self)  # type: ignore[no-untyped-call]
        return product


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, matrix: Sparse) -> Tensor:
        if x.shape[1] == 0:  # torch 2.11 cannot make empty bags of float32
            return x.new_empty(matrix.shape[0], 0)
        return embedding_bag(
            matrix.columns,
            x.contiguous(),
            matrix.starts,
            mode="sum",
            per_sample_weights=matrix.values,
            include_last_offset=True,
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Sparse], output: Tensor) -> None:
        ctx.matrix = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.T @ grads[0], None
