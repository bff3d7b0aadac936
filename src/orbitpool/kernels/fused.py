"""Triton kernels for GPUs: the softmax over poses with an off state, drawing from it, and a step of descent.

`orbit` and `kernels.poses` are the definition; here every number is read once and written once. Logits and what is made
of them lie in memory as (K, S, N). A warp holds all poses of its inputs; sums over inputs are made in the same order
every time.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

from orbitpool.kernels.products import ALIGNED
from orbitpool.together import Part

HELD = 4096  # numbers that a warp holds, or 32 inputs if those are more


@triton.jit
def _infer(
    a,
    bias,
    uniform,
    z,
    h,
    sums,
    n,
    N: tl.constexpr,
    S: tl.constexpr,
    DRAW: tl.constexpr,
    S_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    k, s = tl.program_id(0).to(tl.int64), tl.arange(0, S_BLOCK)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at, inside = (k * S + s[:, None]) * N + i[None, :], (s[:, None] < S) & (i[None, :] < N)
    x = tl.load(a + at, mask=inside, other=float("-inf")).to(tl.float32)
    x += tl.load(bias + k * S + s, mask=s < S, other=0.0)[:, None]
    peak = tl.maximum(tl.max(x, 0), 0.0)
    weights = tl.exp(x - peak[None, :])
    on = tl.sum(weights, 0)
    share = tl.where(i < n, 1.0, 0.0) / (on + tl.exp(-peak))  # nothing is on in the padding
    p = weights * share[None, :]
    tl.store(a + at, p.to(a.dtype.element_ty), mask=inside)
    if DRAW:
        tl.store(z + k * N + i, on * share, mask=i < N)
        u = tl.load(uniform + k * N + i, mask=i < N, other=1.0)
        pose = tl.sum(((u[None, :] >= tl.cumsum(p, 0)) & (s[:, None] < S)).to(tl.int32), 0)  # S where off
        one = (s[:, None] == pose[None, :]) & (i[None, :] < n)
        tl.store(h + at, one.to(h.dtype.element_ty), mask=inside)
    else:
        tl.store(sums + (tl.program_id(1) * tl.num_programs(0) + k) * S + s, tl.sum(p, 1) / n, mask=s < S)


@triton.jit
def _tilt(
    p,
    z,
    slope,
    mean,
    cost,
    n,
    N: tl.constexpr,
    S: tl.constexpr,
    S_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    k, s = tl.program_id(0).to(tl.int64), tl.arange(0, S_BLOCK)
    total = tl.zeros([S_BLOCK, BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        at, inside = (k * S + s[:, None]) * N + i[None, :], (s[:, None] < S) & (i[None, :] < N)
        on = tl.load(z + k * N + i, mask=i < N, other=0.0)
        x = tl.load(p + at, mask=inside, other=0.0).to(tl.float32) * (cost * tl.load(slope + k) * (1 - on) - 1)[None, :]
        tl.store(p + at, x.to(p.dtype.element_ty), mask=inside)
        total += x
    tl.store(mean + k * S + s, tl.sum(total, 1) / n, mask=s < S)


@triton.jit
def _compare(
    v,
    other,
    gap,
    squares,
    size,
    v_row,
    v_column,
    o_row,
    o_column,
    n: tl.constexpr,
    PIXELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    d = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    more = tl.zeros([PIXELS, BLOCK], tl.float32)
    squared = tl.zeros([PIXELS, BLOCK], tl.float32)
    energy = tl.zeros([PIXELS, BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        i = (start + tl.arange(0, BLOCK)).to(tl.int64)
        inside = (d < size)[:, None] & (i < n)[None, :]
        x = tl.load(v + i[None, :] * v_row + d[:, None] * v_column, mask=inside, other=0.0)
        larger = tl.load(other + i[None, :] * o_row + d[:, None] * o_column, mask=inside, other=0.0) - x
        more += larger
        squared += larger * larger
        energy += x * x
    tl.store(gap + d, tl.sum(more, 1) / n, mask=d < size)
    tl.store(squares + d, tl.sum(squared, 1) / n, mask=d < size)
    tl.store(squares + size + d, tl.sum(energy, 1) / n, mask=d < size)


@triton.jit
def _descend(t, velocity, gradient, size, width, stride, rate, momentum, decay, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    old = tl.load(t + i, mask=i < size)
    slope = tl.load(gradient + i // width * stride + i % width, mask=i < size) + decay * old
    new = momentum * tl.load(velocity + i, mask=i < size) - rate * slope
    tl.store(velocity + i, new, mask=i < size)
    tl.store(t + i, old + new, mask=i < size)


def infer_(
    a: Tensor, bias: Tensor, n: int, generator: torch.Generator, part: Part | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """`poses.infer` from logits without their biases, in place of them, of which the first n inputs count."""
    N, K, _ = _shape(a)
    z, drawn = _empty(a, K, N), torch.empty_like(a)
    if part is None or part.whole:
        uniform = _empty(a, K, N).uniform_(generator=generator)
    else:  # the numbers that these inputs would be given in the whole batch
        filled = part.n + -part.n % (ALIGNED if a.itemsize == 2 else 1)
        uniform = pad(_empty(a, K, filled).uniform_(generator=generator)[:, part.own], (0, N - n))
    _infer[_grid(a)](a, bias.contiguous(), uniform, z, drawn, z, n, DRAW=True, **_sizes(a))
    return a, z.T, drawn


def expect_(a: Tensor, bias: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """`poses.expect` from logits without their biases, in place of them, of which the first n inputs count."""
    (K, parts), S = _grid(a), a.shape[2]
    sums = _empty(a, parts, K, S)
    _infer[K, parts](a, bias.contiguous(), sums, sums, sums, sums, n, DRAW=False, **_sizes(a))
    return a, sums[0] if parts == 1 else sums.sum(0)


def _grid(a: Tensor) -> tuple[int, int]:
    N, K, S = _shape(a)
    return K, triton.cdiv(N, _block(N, S))


def _sizes(a: Tensor) -> dict[str, int]:
    N, _, S = _shape(a)
    return {"N": N, "S": S, "S_BLOCK": triton.next_power_of_2(S), "BLOCK": _block(N, S), "num_warps": _warps(N)}


def tilt_(p: Tensor, z: Tensor, cost: float, slope: Tensor, n: int) -> Tensor:
    """`poses.tilt_`."""
    N, K, S = _shape(p)
    mean = _empty(p, K, S)
    sizes = {"S_BLOCK": triton.next_power_of_2(S), "BLOCK": min(256, _block(N, S))}
    _tilt[(K,)](p, z.T, slope.contiguous(), mean, cost, n, N, S, num_warps=2, **sizes)
    return mean


def compare(v: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`poses.compare`."""
    n, size = v.shape
    gap, squares = _empty(v, size), _empty(v, 2, size)
    strides = *v.stride(), *other.stride()
    _compare[(triton.cdiv(size, 4),)](v, other, gap, squares, size, *strides, n, PIXELS=4, BLOCK=128)
    error, energy = squares.mean(1)
    return gap, error, energy


def descend_(t: Tensor, velocity: Tensor, gradient: Tensor, rate: float, momentum: float, decay: float) -> None:
    """`descent.descend_`."""
    gradient = gradient if gradient.stride(-1) == 1 else gradient.contiguous()
    size, width, stride = t.numel(), t.shape[-1], gradient.stride(0) if t.ndim == 2 else 0
    numbers = size, width, stride, rate, momentum, decay
    _descend[(triton.cdiv(size, 1024),)](t, velocity, gradient, *numbers, BLOCK=1024)


def _empty(near: Tensor, *shape: int) -> Tensor:
    """Room for float32 numbers, whatever torch makes of plain ones, on the same device."""
    return near.new_empty(shape, dtype=torch.float32)


def _shape(p: Tensor) -> tuple[int, int, int]:
    """N, K and S of a tensor whose inputs are last in memory, then poses, then filters."""
    N, K, S = p.shape
    if not p.permute(1, 2, 0).is_contiguous():
        raise ValueError(f"strides of {(N, K, S)} are {p.stride()}; inputs must be last in memory, then poses")
    return N, K, S


def _warps(N: int) -> int:
    return 1 if N <= 512 else 2


def _block(N: int, S: int) -> int:
    """Inputs at a time, few enough for the registers of a program's warps."""
    most = min(512, _warps(N) * HELD // triton.next_power_of_2(S))
    return int(max(32, min(most, triton.next_power_of_2(N))))
