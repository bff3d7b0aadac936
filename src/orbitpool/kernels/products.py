"""The three products of learning, all derivatives of sum_njs h_njs w_j' T_s v_n, with inputs already moved.

`u` is `transforms.apply(v)`, (N, S, D2). Every product works on poses first in memory, (S, ., N), without a copy.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


def respond(u: Tensor, W: Tensor, bias: Tensor) -> Tensor:
    """Logits w_j' T_s v + b_js, (N, K, S)."""
    a = W @ u.permute(1, 2, 0)
    a += bias.T[:, :, None]
    return a.permute(2, 1, 0)


def correlate(h: Tensor, u: Tensor) -> Tensor:
    """sum_ns h_njs T_s v_n, (K, D2); no gradients."""
    total = u.new_zeros(h.shape[1], u.shape[2])
    for h_s, u_s in zip(h.permute(2, 1, 0), u.permute(1, 0, 2), strict=True):
        total.addmm_(h_s, u_s)
    return total


def generate(h: Tensor, W: Tensor) -> Tensor:
    """What the filters that are on, in each pose, add up to in the window, sum_j w_j h_njs, (N, S, D2)."""
    return (W.T @ h.permute(2, 1, 0)).permute(2, 0, 1)


def generate_sampled(pose: Tensor, W: Tensor, n_poses: int) -> Tensor:
    """The same for a sampled pose of each filter, (N, K), -1 where off: only rows that are on are added up."""
    poses = pose.T  # (K, N), as it lies in memory
    k, n = (poses >= 0).nonzero(as_tuple=True)
    bag, order = (poses[k, n] * len(pose) + n).sort()
    starts = torch.searchsorted(bag, torch.arange(n_poses * len(pose) + 1, device=pose.device))
    windows = embedding_bag(k[order], W, starts, mode="sum", include_last_offset=True)
    return windows.view(n_poses, len(pose), -1).permute(1, 0, 2)
