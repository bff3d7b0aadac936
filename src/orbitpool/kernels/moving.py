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

TILE = 4096  # numbers that a program holds; these three were the fastest of those tried on an H200
ENTRIES = 4  # entries of a row at a time, at most
BLOCK = 128  # inputs at a time, at most


@triton.jit
def _multiply(
    x,
    starts,
    columns,
    values,
    y,
    rows,
    places,
    n,
    X_PLACE: tl.constexpr,
    X_ITEM: tl.constexpr,
    Y_PLACE: tl.constexpr,
    CHANNELS: tl.constexpr,
    X_POSES: tl.constexpr,
    Y_POSES: tl.constexpr,
    ROUNDS: tl.constexpr,
    ENTRIES: tl.constexpr,
    PLACES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64) * PLACES + tl.arange(0, PLACES)
    i = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    pixel, pose = place // Y_POSES, place % Y_POSES
    row, channel = pixel // CHANNELS * Y_POSES + pose, (pixel % CHANNELS)[:, None]
    start = tl.load(starts + row, mask=row < rows, other=0)[:, None]  # what is filled up has no entries
    end = tl.load(starts + row + 1, mask=row < rows, other=0)[:, None]
    total = tl.zeros([PLACES, BLOCK], tl.float32)
    for turn in range(ROUNDS):
        e = start + turn * ENTRIES + tl.arange(0, ENTRIES)[None, :]
        column = tl.load(columns + e, mask=e < end, other=0).to(tl.int64)
        at = ((column // X_POSES * CHANNELS + channel) * X_POSES + column % X_POSES) * X_PLACE
        inside = (e < end)[:, :, None] & (i < n)[None, None, :]
        tile = tl.load(x + at[:, :, None] + i[None, None, :] * X_ITEM, mask=inside, other=0.0).to(tl.float32)
        total += tl.sum(tile * tl.load(values + e, mask=e < end, other=0.0)[:, :, None], 1)
    to, inside = place[:, None] * Y_PLACE + i[None, :], (place < places)[:, None] & (i < Y_PLACE)[None, :]
    tl.store(y + to, total.to(y.dtype.element_ty), mask=inside)


def apply(v: Tensor, transforms: TransformSet, dtype: torch.dtype, multiple: int) -> Tensor:
    """T_s v for every s, (N, S, D2 C) in another float type; N and D2 C are filled up with zeros to a multiple."""
    n, S, channels = len(v), len(transforms), v.shape[1] // prod(transforms.field_shape)
    size = channels * prod(transforms.window_shape)
    u = v.new_empty(size + -size % multiple, S, n + -n % multiple, dtype=dtype)
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
    """Y = matrix x for each channel, of (places, n) numbers; what y has more becomes zeros."""
    N, places = y.shape[-1], y.numel() // y.shape[-1]
    entries = min(ENTRIES, triton.next_power_of_2(matrix.longest))
    block = min(BLOCK, triton.next_power_of_2(N))
    some = max(1, TILE // (entries * block))
    sizes = {"X_PLACE": x.stride(0), "X_ITEM": x.stride(1), "Y_PLACE": N, "CHANNELS": channels, "X_POSES": x_poses}
    sizes |= {"Y_POSES": y_poses, "ROUNDS": triton.cdiv(matrix.longest, entries), "ENTRIES": entries}
    grid, sparse = (triton.cdiv(places, some), triton.cdiv(N, block)), (matrix.starts, matrix.columns, matrix.values)
    _multiply[grid](x, *sparse, y, matrix.shape[0], places, x.shape[1], **sizes, PLACES=some, BLOCK=block)
