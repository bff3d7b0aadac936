"""The three products of learning, all derivatives of sum_njs h_njs w_j' T_s v_n, with inputs already moved.

`u` is `transforms.apply(v)`, (N, S, D2), which lies in memory as (D2, S N); logits and what is made of them lie as
(K, S N). So each product is one product of matrices, without a copy.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from orbitpool.transforms import TransformSet

DENSE = 1 / 80  # share of hidden units on, above which a product is faster than adding rows up


def respond(u: Tensor, W: Tensor, bias: Tensor | None = None) -> Tensor:
    """Logits w_j' T_s v + b_js, (N, K, S)."""
    n, S, _ = u.shape
    a = (W @ flat_moved(u)).view(-1, S, n)
    if bias is not None:
        a += bias[:, :, None]
    return a.permute(2, 0, 1)


def correlate_(out: Tensor, h: Tensor, u: Tensor, alpha: float) -> Tensor:
    """Add alpha sum_ns h_njs T_s v_n to `out`, (K, D2), in place."""
    return out.addmm_(_flat_hidden(h), flat_moved(u).T, alpha=alpha)


def generate(h: Tensor, W: Tensor) -> Tensor:
    """What the filters that are on, in each pose, add up to in the window, sum_j w_j h_njs, (N, S, D2)."""
    n, _, S = h.shape
    return (W.T @ _flat_hidden(h)).view(-1, S, n).permute(2, 1, 0)


def flat_moved(u: Tensor) -> Tensor:
    """(N, S, D) as it lies in memory, (D, S N)."""
    return u.permute(2, 1, 0).reshape(u.shape[2], -1)


def _flat_hidden(h: Tensor) -> Tensor:
    """(N, K, S) as it lies in memory, (K, S N)."""
    return h.permute(1, 2, 0).reshape(h.shape[1], -1)


def generate_sampled(pose: Tensor, W: Tensor, transforms: TransformSet, rows: int = 64) -> Tensor:
    """sum_j T_s' w_j over the filters that are on, each in its pose s, (N, D1), from poses (N, K), -1 where off.

    Where few are on, their rows are added up instead of multiplied by zeros, some inputs at a time to stay in cache.
    """
    S = len(transforms)
    if pose.is_cuda or (pose >= 0).sum() > DENSE * S * pose.numel():  # counting would make a GPU wait
        h = torch.stack([(pose == s).T for s in range(S)], 1).to(W.dtype)
        return transforms.adjoint(generate(h.permute(2, 0, 1), W))
    return torch.cat([transforms.adjoint(_windows(part, W, S)) for part in torch.split(pose.contiguous(), rows)])


def _windows(pose: Tensor, W: Tensor, n_poses: int) -> Tensor:
    """The sum of the filters that are on in each pose, (N, S, D2)."""
    n, k = (pose >= 0).nonzero(as_tuple=True)
    bag, order = (pose[n, k] * len(pose) + n).int().sort()
    edges = torch.arange(n_poses * len(pose) + 1, dtype=torch.int32, device=pose.device)
    starts = torch.searchsorted(bag, edges, out_int32=True)
    sums = embedding_bag(k.int()[order], W, starts, mode="sum", include_last_offset=True)
    return sums.view(n_poses, len(pose), -1).permute(1, 0, 2)
