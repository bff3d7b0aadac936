"""The three products of learning, all derivatives of sum_njs h_njs w_j' T_s v_n, with inputs already moved.

`u` is `transforms.apply(v)`, (N, S, D2), which lies in memory as (D2, S N); logits and what is made of them lie as
(K, S N). So each product is one product of matrices, without a copy.
"""

from __future__ import annotations

import torch
from torch import Tensor


def respond(u: Tensor, W: Tensor, bias: Tensor | None = None) -> Tensor:
    """Logits w_j' T_s v + b_js, (N, K, S)."""
    n, S, _ = u.shape
    a = (W @ flat_moved(u)).view(-1, S, n)
    if bias is not None:
        a += bias[:, :, None]
    return a.permute(2, 0, 1)


def correlate_(out: Tensor, h: Tensor, u: Tensor, alpha: float) -> Tensor:
    """Add alpha sum_ns h_njs T_s v_n to `out`, (K, D2), in place; `out` may have more digits than the factors."""
    left, right = _flat_hidden(h).to(u.dtype), flat_moved(u).T
    if out.dtype == u.dtype:
        return out.addmm_(left, right, alpha=alpha)
    if out.is_cuda:
        return torch.addmm(out, left, right, out_dtype=out.dtype, alpha=alpha)
    return out.add_(left @ right, alpha=alpha)


def generate(h: Tensor, W: Tensor) -> Tensor:
    """What the filters that are on, in each pose, add up to in the window, sum_j w_j h_njs, (N, S, D2)."""
    n, _, S = h.shape
    return (W.T @ _flat_hidden(h)).view(-1, S, n).permute(2, 1, 0)


def shortened(W: Tensor) -> Tensor:
    """W in bfloat16, with rows that lie a multiple of 16 bytes apart, which a GPU's fast products want."""
    return W.new_empty(len(W), W.shape[1] + -W.shape[1] % 8, dtype=torch.bfloat16)[:, : W.shape[1]].copy_(W)


def flat_moved(u: Tensor) -> Tensor:
    """(N, S, D) as it lies in memory, (D, S N)."""
    return u.permute(2, 1, 0).reshape(u.shape[2], -1)


def _flat_hidden(h: Tensor) -> Tensor:
    """(N, K, S) as it lies in memory, (K, S N)."""
    return h.permute(1, 2, 0).reshape(h.shape[1], -1)
