"""The three products of learning, all derivatives of sum_njs h_njs w_j' T_s v_n, with inputs already moved.

`u` is `transforms.apply(v)`, (N, S, D2), which lies in memory as (D2, S N); logits and what is made of them lie as
(K, S N), of one side or of both beside each other. So each product is one product of matrices, without a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from orbitpool.kernels.matrices import WHOLE, multiply
from orbitpool.kernels.turning import (
    Hidden,
    Parts,
    Turned,
    beside,
    correlate_turned,
    flat_hidden,
    joined,
    lengthened,
    merged,
    whole,
)

Moved = Tensor | Turned  # (N, S, D2), or what stands for it
Filters = Tensor | Parts  # (K, D2), or what stands for them
Statistics = list[tuple[Hidden, Moved, float]]  # each h, u and alpha of `correlate`
ALIGNED = 8  # short numbers to which a GPU's fast products want rows of them to be rounded up
TRITON = find_spec("triton") is not None
# Whether a CPU multiplies short numbers, and rightly: that is oneDNN's work.
SHORT = WHOLE and any(torch.cpu.get_capabilities().get(kind) for kind in ("amx_bf16", "avx512_bf16"))


def fused(x: Tensor) -> bool:
    """Whether there are kernels for this tensor that do everything at once."""
    return x.is_cuda and x.dtype != torch.float64 and TRITON


def dense_room(size: int, cells: int) -> bool:
    """Whether patches of so many numbers, and so many cells of an image, are few enough for the kernel of `dense`."""
    return size < 512 and cells <= 64


def answers(u: Moved, W: Filters) -> Sequence[Tensor]:
    """Products that logits are `merged` from: with whole filters, (K, S N), or with their even, odd and other parts."""
    return u.answers(W) if isinstance(u, Turned) else [multiply(cast("Tensor", W), flat_moved(u))]


def respond(u: Moved, W: Filters, bias: Tensor | None = None) -> Tensor:
    """Logits w_j' T_s v + b_js, (N, K, S), in the float type of the bias; without one, short numbers may stay short."""
    n, S = u.shape[:2]
    a = merged(answers(u, W))
    a = a.view(len(a), S, n).permute(2, 0, 1)
    return a if bias is None else a.to(bias.dtype).add_(bias)


def correlate(statistics: Statistics, dtype: torch.dtype) -> Tensor:
    """The sum over statistics of alpha sum_ns h_njs T_s v_n, (K, D2); h may be overwritten."""
    total, factor = scaled(statistics, dtype)
    return lengthened(total) if factor == 1 else lengthened(total).mul_(factor)


def scaled(statistics: Statistics, dtype: torch.dtype) -> tuple[Tensor, float]:
    """What `correlate` gives, but for a factor, and this.

    A GPU gives the result in a float type that may have more digits than the factors, a CPU as many as products have
    there. Where a CPU would round each sum, all are one product, because sums of nearly the same size cancel; for one
    pose as well, because that is faster.
    """
    first, moved, _ = statistics[0]
    if isinstance(first, Tensor) and first.is_cuda:
        return _correlate_on_gpu(statistics, dtype), 1.0
    factor = max((alpha for *_, alpha in statistics), key=abs)
    hidden = [h if alpha == factor else whole(h) * (alpha / factor) for h, _, alpha in statistics]
    if turned := [u for _, u, _ in statistics if isinstance(u, Turned)]:
        return correlate_turned(hidden, turned), factor
    flat = [flat_moved(u) for _, u, _ in statistics if isinstance(u, Tensor)]
    if joint(moved):
        (h,) = beside(hidden, flat[0].dtype)
        return multiply(h, joined(flat, h.dtype).T), factor
    total, *others = (multiply(flat_hidden(whole(h)), u.T) for h, u in zip(hidden, flat, strict=True))
    for other in others:
        total += other
    return total, factor


def joint(u: Moved) -> bool:
    """Whether statistics of several sides are one product on a CPU."""
    return isinstance(u, Turned) or u.itemsize == 2 or u.shape[1] == 1


def _correlate_on_gpu(statistics: Statistics, dtype: torch.dtype) -> Tensor:
    pairs = [(flat_hidden(whole(h)), flat_moved(u), alpha) for h, u, alpha in statistics if isinstance(u, Tensor)]
    (h, u, _), beta = pairs[0], 0.0
    out = h.new_empty(len(h), len(u), dtype=dtype)
    for h, u, alpha in pairs:
        if dtype == u.dtype:
            out.addmm_(h.to(u.dtype), u.T, alpha=alpha, beta=beta)
        else:
            torch.addmm(out, h.to(u.dtype), u.T, out_dtype=dtype, alpha=alpha, beta=beta, out=out)
        beta = 1.0
    return out


def generate(h: Hidden, W: Tensor) -> Tensor:
    """What the filters that are on, in each pose, add up to in the window, sum_j w_j h_njs, (N, S, D2)."""
    h = whole(h)
    n, _, S = h.shape
    if S == 1:
        return multiply(h[..., 0], W)[:, None]
    return multiply(W.T, flat_hidden(h)).view(-1, S, n).permute(2, 1, 0)


def shortened(W: Tensor, precision: str) -> Tensor:
    """W in bfloat16, if it is float32 and products are to be of such numbers: on a CPU only if it has them.

    Where there are kernels it gets a few columns of zeros more, as `move` gives them to inputs.
    """
    if W.dtype != torch.float32 or not (precision != "full" if W.is_cuda else precision == "bfloat16" and SHORT):
        return W
    return (pad(W, (0, -W.shape[1] % ALIGNED)) if fused(W) else W).to(torch.bfloat16)


def flat_moved(u: Tensor) -> Tensor:
    """(N, S, D) as it lies in memory, (D, S N)."""
    return u.permute(2, 1, 0).reshape(u.shape[2], -1)
