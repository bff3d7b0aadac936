"""Dense encoding on a GPU: products with all templates, reduced over poses and averaged over cells, in one kernel.

`Encoder.folded` followed by a mean over each cell is the definition. Products are of bfloat16 numbers with float32
sums; responses are never written to memory.
"""

from __future__ import annotations

from math import e, log2

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 64  # patches at a time; those of an image are filled up to a multiple of it
FILTERS = 64  # filters at a time
PATCHES = 16  # patches to normalise at a time


@triton.jit
def _normalize(
    images,
    corner,
    offset,
    shift,
    out,
    size,
    P,
    FILLED,
    eps,
    D: tl.constexpr,
    CONTRAST: tl.constexpr,
    D_BLOCK: tl.constexpr,
    PATCHES: tl.constexpr,
):
    image, p, d = (
        tl.program_id(1).to(tl.int64),
        tl.program_id(0) * PATCHES + tl.arange(0, PATCHES),
        tl.arange(0, D_BLOCK),
    )
    inside = (p < P)[:, None] & (d < D)[None, :]
    at = tl.load(corner + p, mask=p < P, other=0)[:, None] + tl.load(offset + d, mask=d < D, other=0)[None, :]
    x = tl.load(images + image * size + at, mask=inside, other=0.0)
    if CONTRAST:
        x = tl.where(inside, x - (tl.sum(x, 1) / D)[:, None], 0.0)
        x /= tl.sqrt(tl.sum(x * x, 1) / D + eps)[:, None]
    x = tl.where(inside, x - tl.load(shift + d, mask=d < D, other=0.0)[None, :], 0.0)
    to = out + (image * FILLED + p[:, None]) * D + d[None, :]
    tl.store(to, x.to(out.dtype.element_ty), mask=(p < FILLED)[:, None] & (d < D)[None, :])


@triton.jit
def _encode(
    x,
    t,
    bias,
    cell,
    out,
    P: tl.constexpr,
    K: tl.constexpr,
    S: tl.constexpr,
    D: tl.constexpr,
    HIGH: tl.constexpr,
    LOW: tl.constexpr,
    MAX: tl.constexpr,
    SIDES: tl.constexpr,
    ALPHA: tl.constexpr,
    CELLS: tl.constexpr,
    CELL_BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    FILTERS: tl.constexpr,
):
    k, image = tl.program_id(0) * FILTERS + tl.arange(0, FILTERS), tl.program_id(1).to(tl.int64)
    high, low, c = tl.arange(0, HIGH), HIGH + tl.arange(0, LOW), tl.arange(0, CELL_BLOCK)
    plus = tl.zeros([CELL_BLOCK, FILTERS], tl.float32)
    minus = tl.zeros([CELL_BLOCK, FILTERS], tl.float32)
    for start in range(0, P, ROWS):
        row = start + tl.arange(0, ROWS)
        at = x + (image * P + row)[:, None] * D
        v_high = tl.load(at + high[None, :], mask=(high < D)[None, :], other=0.0)
        v_low = tl.load(at + low[None, :], mask=(low < D)[None, :], other=0.0)
        on = tl.zeros([ROWS, FILTERS], tl.float32)  # responses of max(., 0) or sums of exponentials: both start at 0
        off = tl.zeros([ROWS, FILTERS], tl.float32)
        for s in range(S):
            w = t + (s * K + k)[None, :] * D
            r = tl.dot(v_high, tl.load(w + high[:, None], mask=(high < D)[:, None] & (k < K)[None, :], other=0.0))
            r = tl.dot(v_low, tl.load(w + low[:, None], mask=(low < D)[:, None] & (k < K)[None, :], other=0.0), r)
            if MAX:
                on = tl.maximum(on, r)
                off = tl.maximum(off, -r)
            else:
                b = tl.load(bias + k * S + s, mask=k < K, other=0.0)[None, :]
                on += tl.exp2(b + r)
                if SIDES == 2:
                    off += tl.exp2(b - r)
        if MAX:
            on = tl.maximum(on - ALPHA, 0.0)
            off = tl.maximum(off - ALPHA, 0.0)
        else:
            on = tl.where(on > 1e30, 1.0, on / (1 + on))  # also where the sum overflowed
            off = tl.where(off > 1e30, 1.0, off / (1 + off))
        member = (c[:, None] == tl.load(cell + row)[None, :]).to(tl.float32)
        plus = tl.dot(member, on, plus, input_precision="tf32")
        if SIDES == 2:
            minus = tl.dot(member, off, minus, input_precision="tf32")
    to = out + ((image * CELLS + c[:, None]) * SIDES * K) + k[None, :]
    inside = (c[:, None] < CELLS) & (k[None, :] < K)
    tl.store(to, plus, mask=inside)
    if SIDES == 2:
        tl.store(to + K, minus, mask=inside)


def normalized_patches(
    images: Tensor,
    patch: tuple[int, int],
    stride: int,
    contrast: float | None,
    mean: Tensor,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """Every patch at a stride, its contrast normalised unless that is None, less a mean (D,), (N, P, D).

    There are a few patches of zeros more at the end, as many as `encode_cells` wants.
    """
    n, height, width, channels = images.shape
    place = torch.arange(height * width * channels, device=images.device).view(height, width, channels)
    place = place.to(torch.int32)
    corner = place[: height - patch[0] + 1 : stride, : width - patch[1] + 1 : stride, 0].flatten()
    offset = place[: patch[0], : patch[1]].flatten()
    P, D = len(corner), len(offset)
    filled = P + -P % ROWS
    x = torch.empty(n, filled, D, dtype=dtype, device=images.device)
    sizes = {"D": D, "D_BLOCK": triton.next_power_of_2(D), "PATCHES": PATCHES, "CONTRAST": contrast is not None}
    numbers = place.numel(), P, filled, contrast or 0.0
    grid = (triton.cdiv(filled, PATCHES), n)
    _normalize[grid](images.contiguous(), corner, offset, mean.contiguous(), x, *numbers, **sizes)
    return x


def encode_cells(
    x: Tensor,
    templates: Tensor,
    bias: Tensor | None,
    cell: Tensor,
    cells: int,
    how: str,
    alpha: float = 0.0,
    two_sided: bool = False,
) -> Tensor:
    """Features of patches summed over the cells of their image, (N, cells, K or 2 K).

    Parameters
    ----------
    x : tensor (N, P, D)
        Patches of each image, as `normalized_patches` gives them.
    templates : tensor (K, S, D)
    bias : tensor (K, S), optional
    cell : tensor (P or fewer,)
        Which cell a patch belongs to, -1 for none, as for those that are left over.
    cells : int
    how : {"logsumexp", "max"}
        Probabilities of any pose, or max(response - alpha, 0).
    alpha : float
    two_sided : bool
    """
    (n, P, D), (K, S, _) = x.shape, templates.shape
    cell = torch.nn.functional.pad(cell.to(x.device, torch.int32), (0, P - len(cell)), value=-1)
    unit = 1.0 if how == "max" else log2(e)  # exponentials are powers of two
    t = (unit * templates).permute(1, 0, 2).to(x.dtype).contiguous()
    b = x.new_zeros(1, dtype=torch.float32) if bias is None else unit * bias.float().contiguous()
    sides = 2 if two_sided else 1
    out = x.new_empty(n, cells, sides * K, dtype=torch.float32)
    high = 1 << (D.bit_length() - 1)
    low = max(16, triton.next_power_of_2(D - high))
    options = {"HIGH": max(16, high), "LOW": low, "MAX": how == "max", "SIDES": sides, "ALPHA": alpha}
    sizes = {"CELLS": cells, "CELL_BLOCK": max(16, triton.next_power_of_2(cells)), "ROWS": ROWS, "FILTERS": FILTERS}
    grid = (triton.cdiv(K, FILTERS), n)
    _encode[grid](x, t, b, cell, out, P, K, S, D, **options, **sizes, num_warps=4, num_stages=3)
    return out
