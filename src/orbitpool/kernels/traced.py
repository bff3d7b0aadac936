"""Reduce an orbit over its poses with gradients, and as one graph that can be exported."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from orbitpool import orbit
from orbitpool.kernels.chunked import BUDGET, REDUCTIONS, by_templates, reduce_templates

TRACED = REDUCTIONS | {"logsumexp": orbit.total}  # that which overwrites nothing


def pool_templates(
    v: Tensor,
    templates: Tensor,
    bias: Tensor | None = None,
    how: str = "logsumexp",
    two_sided: bool = False,
    budget: int = BUDGET,
) -> Tensor:
    """What `reduce_templates` gives, (N, K) or (N, 2 K), with gradients to all that is given.

    Where the logits of all inputs are larger than `budget` bytes, gradients compute them a second time, part by part.
    """
    if torch.compiler.is_exporting():  # a number of parts would fix the number of inputs
        return _pool(v, templates, bias, how, two_sided)
    if not torch.is_grad_enabled():
        return reduce_templates(v, templates, bias, how, two_sided, budget)
    rows = max(1, budget // (templates.shape[0] * templates.shape[1] * v.element_size()))
    if len(v) <= rows:
        return _pool(v, templates, bias, how, two_sided)
    return torch.cat([_pool_again(part, templates, bias, how, two_sided) for part in torch.split(v, rows)])


def _pool_again(*given: Any) -> Tensor:
    """`_pool`, which gradients compute a second time instead of keeping what they need."""
    pooled: Tensor = checkpoint(_pool, *given, use_reentrant=False, preserve_rng_state=False)
    return pooled


def _pool(v: Tensor, templates: Tensor, bias: Tensor | None, how: str, two_sided: bool) -> Tensor:
    K, S, d1 = templates.shape
    x = by_templates(templates.permute(1, 0, 2).reshape(S * K, d1), v, S)
    sides = (x, -x) if two_sided else (x,)
    return torch.cat([TRACED[how](a if bias is None else a + bias) for a in sides], 1)
