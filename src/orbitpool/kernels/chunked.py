"""Reduce an orbit over its poses in plain torch, in chunks that fit a memory budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

import torch
from torch import Tensor

from orbitpool import orbit
from orbitpool.kernels.matrices import multiply
from orbitpool.kernels.products import flat_moved, respond
from orbitpool.kernels.turning import apart, turned
from orbitpool.transforms import TransformSet
from orbitpool.transforms.set import channels_of

Reduction = Callable[[Tensor], Tensor]  # (n, k, S), which it may overwrite, to (n, k)

REDUCTIONS: dict[str, Reduction] = {
    "logsumexp": lambda a: orbit.total(a, overwrite=True),
    "max": lambda a: a.permute(2, 1, 0).amax(0).T,
}
Chunks = Iterator[tuple[slice, slice, Tensor]]  # which rows, which filters, and their products (n, k, S)
BUDGET = 128 * 2**20  # bytes; small buffers stay in cache and are given back and taken again without page faults


@dataclass(frozen=True)
class Plan:
    """How to go through N inputs and K filters."""

    move: Literal["inputs", "filters"]  # which of the two is transformed
    rows: int  # inputs at a time
    filters: int  # filters at a time


def plan(
    n: int, k: int, channels: int, transforms: TransformSet, itemsize: int, budget: int, share: float = 1.0
) -> Plan:
    """Move whichever costs fewer multiplications, in chunks whose intermediate results take at most `budget` bytes.

    `share` is that of the multiplications which products with moved inputs can do with.
    """
    S, d1, d2 = len(transforms), prod(transforms.field_shape) * channels, prod(transforms.window_shape) * channels
    moving = transforms.nnz * channels
    by_inputs = n * moving + n * k * S * d2 * share
    by_filters = k * moving + n * k * S * d1
    numbers = budget // itemsize
    # A quarter for what is moved, because the last one lives until the next is there; an eighth for the logits, because
    # there can be four like them: two signs, a reduction's copy, and the last chunk's.
    if by_inputs <= by_filters:
        rows = _even(numbers // 4 // (S * d2 + d1), n)
        return Plan("inputs", rows, _even(numbers // 8 // (S * rows), k))
    filters = _even(numbers // 4 // (S * d1 + d2), k)
    return Plan("filters", _even(numbers // 8 // (S * filters), n), filters)


@torch.no_grad()
def reduce_orbit(
    v: Tensor,
    W: Tensor,
    transforms: TransformSet,
    bias: Tensor | None = None,
    how: str | Reduction = "logsumexp",
    two_sided: bool = False,
    scale: Tensor | None = None,
    budget: int = BUDGET,
) -> Tensor:
    """Reduce g_js w_j' T_s v + b_js over s without holding (N, K, S); no gradients.

    Parameters
    ----------
    v : tensor (N, D1 C)
    W : tensor (K, D2 C)
        If it is in bfloat16, products are of such numbers.
    transforms : TransformSet
    bias : tensor (K, S), optional
    how : {"logsumexp", "max"} or callable (n, k, S) -> (n, k)
    two_sided : bool
        Also reduce -g_js w_j' T_s v + b_js, from the same product.
    scale : tensor (K, S), optional
        The factors g.
    budget : int
        Bytes for intermediate results.

    Returns
    -------
    tensor (N, K), or (N, 2 K) with the negative side last
    """
    channels = _check(v, W, transforms, {"bias": bias, "scale": scale})
    share = 1.0 if apart(v, transforms) is None else 3 / 8
    steps = plan(len(v), len(W), channels, transforms, v.element_size(), budget, share)
    return _reduce(_products(v, W, transforms, steps), v, len(W), bias, how, two_sided, scale)


@torch.no_grad()
def reduce_templates(
    v: Tensor,
    templates: Tensor,
    bias: Tensor | None = None,
    how: str | Reduction = "logsumexp",
    two_sided: bool = False,
    budget: int = BUDGET,
) -> Tensor:
    """The same as `reduce_orbit` for filters that are in their poses already, (K, S, D1)."""
    K, S, d1 = templates.shape
    flat = templates.permute(1, 0, 2).contiguous()  # (S, K, D1)
    filters = _even(budget // v.element_size() // 8 // S // 256, K)
    rows = _even(budget // v.element_size() // 8 // (S * filters), len(v))

    def products() -> Chunks:
        for some in _slices(K, filters):
            posed = flat[:, some].reshape(-1, d1)
            for part in _slices(len(v), rows):
                yield part, some, by_templates(posed, v[part], S)

    return _reduce(products(), v, K, bias, how, two_sided, None)


def _reduce(
    products: Chunks,
    v: Tensor,
    K: int,
    bias: Tensor | None,
    how: str | Reduction,
    two_sided: bool,
    scale: Tensor | None,
) -> Tensor:
    reduce = how if callable(how) else REDUCTIONS.get(how)
    if reduce is None:
        raise ValueError(f"how is {how!r}; choose one of {', '.join(REDUCTIONS)}, or give a function")
    sides = 2 if two_sided else 1
    out: Tensor | None = None
    for rows, filters, x in products:
        if scale is not None:
            x *= scale[filters]
        for side, a in enumerate((x, -x) if two_sided else (x,)):
            if bias is not None:
                a += bias[filters]
            reduced = reduce(a)
            if out is None:
                out = reduced.new_empty(len(v), sides, K)
            out[rows, side, filters] = reduced
    return v.new_empty(0, sides * K) if out is None else out.flatten(1)


def _products(v: Tensor, W: Tensor, transforms: TransformSet, steps: Plan) -> Chunks:
    """w_j' T_s v of every chunk, (n, k, S), with inputs last in memory."""
    all_rows, all_filters = _slices(len(v), steps.rows), _slices(len(W), steps.filters)
    if steps.move == "inputs":
        for rows in all_rows:
            moved = turned(v[rows], transforms, W.dtype)
            for filters in all_filters:
                yield rows, filters, respond(moved, W[filters]).to(v.dtype)
    else:
        inputs = v.to(W.dtype)
        for filters in all_filters:
            posed = flat_moved(transforms.orbit(W[filters].to(v.dtype)).to(W.dtype)).T  # (S k, D1)
            for rows in all_rows:
                yield rows, filters, by_templates(posed, inputs[rows], len(transforms)).to(v.dtype)


def by_templates(posed: Tensor, v: Tensor, n_poses: int) -> Tensor:
    """Products of (S k, D1) templates with inputs, (n, k, S), inputs last in memory."""
    return multiply(posed, v.T).view(n_poses, posed.shape[0] // n_poses, v.shape[0]).permute(2, 1, 0)


def _slices(size: int, step: int) -> list[slice]:
    return [slice(start, start + step) for start in range(0, size, step)]


def _even(chunk: int, size: int) -> int:
    """The chunk, at most as large as asked for, that divides the size most evenly."""
    pieces = -(-size // max(1, chunk))
    return -(-size // max(1, pieces)) or 1


def _check(v: Tensor, W: Tensor, transforms: TransformSet, each_pose: dict[str, Tensor | None]) -> int:
    """The number of channels, if all that is given goes together."""
    if v.ndim != 2 or W.ndim != 2 or W.dtype not in (v.dtype, torch.bfloat16) or v.device != W.device:
        raise ValueError(
            f"inputs are {tuple(v.shape)} {v.dtype} on {v.device}, filters {tuple(W.shape)} {W.dtype} on {W.device}; "
            "give (N, D1) and (K, D2) of one type, or filters in bfloat16, on one device"
        )
    channels, filter_channels = (
        channels_of(v, transforms.field_shape, "field"),
        channels_of(W, transforms.window_shape, "window"),
    )
    if channels != filter_channels:
        raise ValueError(f"inputs have {channels} channels and filters {filter_channels}; they must have as many")
    for name, t in each_pose.items():
        if t is not None and t.shape != (len(W), len(transforms)):
            raise ValueError(
                f"{name} has shape {tuple(t.shape)}; {len(W)} filters in {len(transforms)} poses need one each"
            )
    return channels
