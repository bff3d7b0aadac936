"""Reduce an orbit over its poses in plain torch, in chunks that fit a memory budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

import torch
from torch import Tensor

from orbitpool import orbit
from orbitpool.transforms import TransformSet

Reduction = Literal["logsumexp", "max"]

REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "logsumexp": orbit.total,
    "max": lambda a: a.permute(2, 1, 0).amax(0).T,
}
BUDGET = 64 * 2**20  # bytes; small buffers stay in cache and are given back and taken again without page faults


@dataclass(frozen=True)
class Plan:
    """How to go through N inputs and K filters."""

    move: Literal["inputs", "filters"]  # which of the two is transformed
    rows: int  # inputs at a time
    filters: int  # filters at a time


def plan(n: int, k: int, channels: int, transforms: TransformSet, itemsize: int, budget: int) -> Plan:
    """Move whichever costs fewer multiplications, in chunks whose intermediate results take at most `budget` bytes."""
    S, d1, d2 = len(transforms), prod(transforms.field_shape) * channels, prod(transforms.window_shape) * channels
    moving = transforms.nnz * channels
    by_inputs = n * moving + n * k * S * d2
    by_filters = k * moving + n * k * S * d1
    numbers = budget // itemsize
    # Half of the budget is for what was moved, half for the logits and the copy that a reduction makes of them.
    if by_inputs <= by_filters:
        rows = _clip(numbers // 2 // (S * d2 + d1), n)
        return Plan("inputs", rows, _clip(numbers // 4 // (S * rows), k))
    filters = _clip(numbers // 2 // (S * d1 + d2), k)
    return Plan("filters", _clip(numbers // 4 // (S * filters), n), filters)


@torch.no_grad()
def reduce_orbit(
    v: Tensor,
    W: Tensor,
    transforms: TransformSet,
    bias: Tensor | None = None,
    how: Reduction = "logsumexp",
    two_sided: bool = False,
    budget: int = BUDGET,
) -> Tensor:
    """Reduce w_j' T_s v + b_js over s without holding (N, K, S); no gradients.

    Parameters
    ----------
    v : tensor (N, D1 C)
    W : tensor (K, D2 C)
    transforms : TransformSet
    bias : tensor (K, S), optional
    how : {"logsumexp", "max"}
    two_sided : bool
        Also reduce -w_j' T_s v + b_js, from the same product.
    budget : int
        Bytes for intermediate results.

    Returns
    -------
    tensor (N, K), or (N, 2 K) with the negative side last
    """
    if how not in REDUCTIONS:
        raise ValueError(f"how is {how!r}; choose one of {', '.join(REDUCTIONS)}")
    (n, _), (k, _) = v.shape, W.shape
    channels = _common_channels(v, W, transforms)
    if bias is not None and bias.shape != (k, len(transforms)):
        raise ValueError(f"bias has shape {tuple(bias.shape)}; {k} filters in {len(transforms)} poses need one each")
    steps = plan(n, k, channels, transforms, v.element_size(), budget)
    out = v.new_empty(n, 1 + two_sided, k)
    for rows, filters, x in _products(v, W, transforms, steps):
        for side, signed in enumerate((x, -x) if two_sided else (x,)):
            if bias is not None:
                signed += bias[filters]
            out[rows, side, filters] = REDUCTIONS[how](signed)
    return out.flatten(1)


def _products(v: Tensor, W: Tensor, transforms: TransformSet, steps: Plan) -> Iterator[tuple[slice, slice, Tensor]]:
    """w_j' T_s v of every chunk, (n, k, S) with poses first in memory."""
    all_rows, all_filters = _slices(len(v), steps.rows), _slices(len(W), steps.filters)
    if steps.move == "inputs":
        for rows in all_rows:
            moved = transforms.apply(v[rows]).permute(1, 2, 0)  # (S, D2, n)
            for filters in all_filters:
                yield rows, filters, (W[filters] @ moved).permute(2, 1, 0)
    else:
        for filters in all_filters:
            posed = transforms.orbit(W[filters]).permute(1, 0, 2)  # (S, k, D1)
            for rows in all_rows:
                yield rows, filters, (posed @ v[rows].T).permute(2, 1, 0)


def _slices(size: int, step: int) -> list[slice]:
    return [slice(start, start + step) for start in range(0, size, step)]


def _clip(chunk: int, size: int) -> int:
    return max(1, min(chunk, size))


def _common_channels(v: Tensor, W: Tensor, transforms: TransformSet) -> int:
    d1, d2, r, w = v.shape[1], W.shape[1], prod(transforms.field_shape), prod(transforms.window_shape)
    if d1 == 0 or d1 % r or d1 // r * w != d2:
        raise ValueError(
            f"inputs of {d1} numbers and filters of {d2} do not go together: the field has {r} pixels, the window {w}, "
            "and both take the same number of channels"
        )
    return d1 // r
