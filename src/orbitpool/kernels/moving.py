"""Triton kernel for GPUs: products with the sparse operators of a transformation set, without a copy before or after.

Vectors lie in memory with the inputs last: windows as (D2 C, S, N), fields as (D1 C, N).
"""

from __future__ import annotations

from math import prod

import torch
import triton
import triton.language as tl
from torch import Tensor

from orbitpool.transforms import TransformSet
from orbitpool.transforms.sparse import Sparse

TILE = 4096  # numbers that a program holds


@triton.jit
def _multiply(
    x,
    starts,
    columns,
    values,
    y,
    n,
    x_place,
    x_item,
    y_place,
    channels,
    X_POSES: tl.constexpr,
    Y_POSES: tl.constexpr,
    ROUNDS: tl.constexpr,
    ENTRIES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row, c = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    start, end = tl.load(starts + row), tl.load(starts + row + 1)
    total = tl.zeros([BLOCK], tl.float32)
    for turn in range(ROUNDS):
        e = start + turn * ENTRIES + tl.arange(0, ENTRIES)
        column = tl.load(columns + e, mask=e < end, other=0).to(tl.int64)
        at = ((column // X_POSES * channels + c) * X_POSES + column % X_POSES) * x_place
        inside = (e < end)[:, None] & (i < n)[None, :]
        tile = tl.load(x + at[:, None] + i[None, :] * x_item, mask=inside, other=0.0).to(tl.float32)
        total += tl.sum(tile * tl.load(values + e, mask=e < end, other=0.0)[:, None], 0)
    to = ((row // Y_POSES * channels + c) * Y_POSES + row % Y_POSES) * y_place + i
    tl.store(y + to, total.to(y.dtype.element_ty), mask=i < y_place)


def apply(v: Tensor, transforms: TransformSet, dtype: torch.dtype, multiple: int) -> Tensor:
    """T_s v for every s, (N, S, D2 C) in another float type; N and D2 C are filled up with zeros to a multiple."""
    n, S, channels = len(v), len(transforms), v.shape[1] // prod(transforms.field_shape)
    size = channels * prod(transforms.window_shape)
    u = v.new_empty(size + -size % multiple, S, n + -n % multiple, dtype=dtype)
    u[size:].zero_()
    _product(transforms.to(v.device, torch.float32)._operators, v.T, u, channels, 1, S)
    return u.permute(2, 1, 0)


def adjoint(u: Tensor, transforms: TransformSet, shape: tuple[int, int]) -> Tensor:
    """sum_s T_s' u_s of windows as `apply` lays them out, (n, D1 C)."""
    (n, size), channels = shape, shape[1] // prod(transforms.field_shape)
    v = u.new_empty(size, n, dtype=torch.float32)
    windows = u.permute(2, 1, 0).flatten(0, 1)
    _product(transforms.to(u.device, torch.float32)._operators.T, windows[:, :n], v, channels, len(transforms), 1)
    return v.T


def _product(matrix: Sparse, x: Tensor, y: Tensor, channels: int, x_poses: int, y_poses: int) -> None:
    """Y = matrix x for each channel, of (places, n) numbers; all but n of y's columns become zeros."""
    n, N = x.shape[1], y.shape[-1]
    entries = min(64, triton.next_power_of_2(matrix.longest))
    block = min(max(32, TILE // entries), 512, max(32, triton.next_power_of_2(N)))
    grid = (matrix.shape[0], channels, triton.cdiv(N, block))
    rounds = triton.cdiv(matrix.longest, entries)
    sizes = {"X_POSES": x_poses, "Y_POSES": y_poses, "ROUNDS": rounds, "ENTRIES": entries, "BLOCK": block}
    sparse = matrix.starts, matrix.columns, matrix.values
    warps = min(4, max(1, entries * block // 1024))
    _multiply[grid](x, *sparse, y, n, x.stride(0), x.stride(1), N, channels, **sizes, num_warps=warps)
