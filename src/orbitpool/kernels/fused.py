"""Triton kernels for GPUs: the softmax over poses with an off state, drawing from it, and a step of descent.

`orbit` and `kernels.poses` are the definition; here every number is read once and written once. Logits and what is made
of them lie in memory as (K, S, N). A warp holds all poses of its inputs, and one program makes the sums over inputs, in
the same order every time.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 128  # inputs at a time


@triton.jit
def _infer(
    a,
    bias,
    uniform,
    z,
    h,
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
    tl.store(z + k * N + i, on * share, mask=i < N)
    if DRAW:
        u = tl.load(uniform + k * N + i, mask=i < N, other=1.0)
        pose = tl.sum(((u[None, :] >= tl.cumsum(p, 0)) & (s[:, None] < S)).to(tl.int32), 0)  # S where off
        one = (s[:, None] == pose[None, :]) & (i[None, :] < n)
        tl.store(h + at, one.to(h.dtype.element_ty), mask=inside)


@triton.jit
def _tilt(
    p,
    z,
    pull,
    mean,
    n,
    N: tl.constexpr,
    S: tl.constexpr,
    PULL: tl.constexpr,
    S_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    k, s = tl.program_id(0).to(tl.int64), tl.arange(0, S_BLOCK)
    total = tl.zeros([S_BLOCK, BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        at, inside = (k * S + s[:, None]) * N + i[None, :], (s[:, None] < S) & (i[None, :] < N)
        x = tl.load(p + at, mask=inside, other=0.0).to(tl.float32)
        if PULL:
            on = tl.load(z + k * N + i, mask=i < N, other=0.0)
            x *= (1 - tl.load(pull + k) * (1 - on))[None, :]
            tl.store(p + at, x.to(p.dtype.element_ty), mask=inside)
        total += x
    tl.store(mean + k * S + s, tl.sum(total, 1) / n, mask=s < S)


@triton.jit
def _descend(t, velocity, gradient, size, rate, momentum, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    new = momentum * tl.load(velocity + i, mask=i < size) - rate * tl.load(gradient + i, mask=i < size)
    tl.store(velocity + i, new, mask=i < size)
    tl.store(t + i, tl.load(t + i, mask=i < size) + new, mask=i < size)


def infer_(a: Tensor, bias: Tensor, n: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """`poses.infer` from logits without their biases, in place of them, of which the first n inputs count."""
    N, K, S = _shape(a)
    z = torch.empty(K, N, device=a.device)
    drawn = None if generator is None else torch.empty_like(a)
    uniform = z if generator is None else torch.rand(K, N, generator=generator, device=a.device)
    options = {"DRAW": drawn is not None, "S_BLOCK": triton.next_power_of_2(S), "BLOCK": _block(S)}
    grid = (K, triton.cdiv(N, _block(S)))
    _infer[grid](a, bias.contiguous(), uniform, z, a if drawn is None else drawn, n, N, S, num_warps=1, **options)
    return a, z.T, drawn


def tilt_(p: Tensor, z: Tensor | None, pull: Tensor | None, n: int) -> Tensor:
    """`poses.tilt_`."""
    N, K, S = _shape(p)
    mean = torch.empty(K, S, device=p.device)
    options = {"PULL": pull is not None, "S_BLOCK": triton.next_power_of_2(S), "BLOCK": 4 * _block(S)}
    on, by = (mean, mean) if z is None or pull is None else (z.T, pull.contiguous())  # not read without a pull
    _tilt[(K,)](p, on, by, mean, n, N, S, num_warps=4, **options)
    return mean


def descend_(t: Tensor, velocity: Tensor, gradient: Tensor, rate: float, momentum: float) -> None:
    """Velocity becomes momentum velocity - rate gradient and is added to t."""
    size = t.numel()
    _descend[(triton.cdiv(size, 1024),)](t, velocity, gradient.contiguous(), size, rate, momentum, BLOCK=1024)


def _shape(p: Tensor) -> tuple[int, int, int]:
    """N, K and S of a tensor whose inputs are last in memory, then poses, then filters."""
    N, K, S = p.shape
    if not p.permute(1, 2, 0).is_contiguous():
        raise ValueError(f"strides of {(N, K, S)} are {p.stride()}; inputs must be last in memory, then poses")
    return N, K, S


def _block(S: int) -> int:
    """Inputs at a time, few enough for the registers of a warp."""
    return int(max(32, min(BLOCK, 2048 // triton.next_power_of_2(S))))
