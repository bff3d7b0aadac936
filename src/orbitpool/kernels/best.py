"""The filter and the pose that answer most to each input, on a GPU: products and their arg-max in one kernel.

Responses are never written to memory. Each program takes some filters and some inputs through all poses, and leaves its
winners in one number an input: the bits of the largest response above, and below them the index, counted down so that
the first of equals is the largest number. A maximum is the same in whatever order programs come.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 64  # inputs at a time
FILTERS = 64  # filters at a time
SHARED = 96 * 2**10  # bytes for the filters of a program and for inputs in one pose, some of them on their way
LAST = 2**31 - 1  # from which the index of a filter in a pose is taken away


@triton.jit
def _search(
    u,
    W,
    gain,
    used,
    out,
    units,
    stride,
    K: tl.constexpr,
    S: tl.constexpr,
    D: tl.constexpr,
    USED: tl.constexpr,
    UNIT: tl.constexpr,
    LAST: tl.constexpr,
    HIGH: tl.constexpr,
    LOW: tl.constexpr,
    ROWS: tl.constexpr,
    FILTERS: tl.constexpr,
):
    N = units * UNIT  # so the compiler knows that it may load several inputs at once
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    k = tl.program_id(1) * FILTERS + tl.arange(0, FILTERS)
    high, low = tl.arange(0, HIGH), HIGH + tl.arange(0, LOW)
    w, known = W + k[:, None] * stride, (k < K)[:, None]
    w_high = tl.load(w + high[None, :], mask=known & (high < D)[None, :], other=0.0)
    w_low = tl.load(w + low[None, :], mask=known & (low < D)[None, :], other=0.0)
    peak = tl.full([FILTERS, ROWS], -1.0, tl.float32)
    pose = tl.zeros([FILTERS, ROWS], tl.int32)
    here = (i < N)[None, :]
    for s in range(S):
        x_high = u + (high * S + s).to(tl.int64)[:, None] * N + i[None, :]
        x_low = u + (low * S + s).to(tl.int64)[:, None] * N + i[None, :]
        r = tl.dot(w_high, tl.load(x_high, mask=(high < D)[:, None] & here, other=0.0))
        r = tl.dot(w_low, tl.load(x_low, mask=(low < D)[:, None] & here, other=0.0), r)
        r = tl.abs(r) * tl.load(gain + k * S + s, mask=k < K, other=0.0)[:, None]
        pose = tl.where(r > peak, s, pose)
        peak = tl.where(r > peak, r, peak)
    peak = tl.where(known, peak, -1.0)
    for n in range(USED):
        taken = tl.load(used + i * USED + n, mask=i < N, other=-1)
        peak = tl.where(k[:, None] == taken[None, :], -1.0, peak)
    top = tl.max(peak, 0)
    first = tl.min(tl.where(peak == top[None, :], k[:, None] * S + pose, LAST), 0)
    packed = (top.to(tl.int32, bitcast=True).to(tl.int64) << 32) | (LAST - first).to(tl.int64)
    tl.atomic_max(out + i, packed, mask=(i < N) & (top >= 0), sem="relaxed")


def best(u: Tensor, W: Tensor, gain: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
    """Filter j and pose s with the largest |w_j' T_s v| gain_js, the first ones of equals, (N,) each.

    Parameters
    ----------
    u : tensor (N, S, D2)
        Inputs in every pose, as `TransformSet.apply` gives them: inputs last in memory, then poses.
    W : tensor (K, D2)
        Filters, of the type of the inputs, for which there must be room. A GPU rounds float32 numbers to ten bits
        before it multiplies them.
    gain : tensor (K, S)
        Not negative.
    used : tensor (N, i)
        Filters that are not to be chosen, fewer than K.
    """
    (N, S, D), K = u.shape, len(W)
    if not u.permute(2, 1, 0).is_contiguous() or W.stride(1) != 1:
        raise ValueError(
            f"strides of inputs {(N, S, D)} are {u.stride()}, of filters {(K, D)} {W.stride()}; "
            "inputs must be last in memory, then poses, and a filter in one piece"
        )
    out = torch.full((N,), -1, device=u.device)  # less than any winner, with the low bits of the first filter
    high, low = _parts(D)
    stages = min(3, SHARED // _bytes(W) - 1)
    unit = 1 if N % 8 else 8
    sizes = {"UNIT": unit, "LAST": LAST, "HIGH": high, "LOW": low, "ROWS": ROWS, "FILTERS": FILTERS}
    given = u, W, gain.float().contiguous(), used.contiguous(), out, N // unit, W.stride(0)
    grid = (triton.cdiv(N, ROWS), triton.cdiv(K, FILTERS))
    _search[grid](*given, K, S, D, used.shape[1], **sizes, num_warps=4, num_stages=stages)
    index = LAST - (out & LAST)
    return index // S, index % S


def room(W: Tensor) -> bool:
    """Whether filters (K, D2) are short enough for `best`."""
    return 2 * _bytes(W) <= SHARED


def _bytes(W: Tensor) -> int:
    """What some filters, or as many inputs, take."""
    return sum(_parts(W.shape[1])) * max(FILTERS, ROWS) * W.element_size()


def _parts(D: int) -> tuple[int, int]:
    """Two sizes that a GPU multiplies, powers of two from sixteen on, which together are at least D."""
    high = 1 << (D.bit_length() - 1)
    return max(16, high), max(16, triton.next_power_of_2(D - high))
