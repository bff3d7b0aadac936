"""Dense encoding on a CPU: features of patches, summed over cells, in pieces that stay in cache.

`Encoder.folded` followed by a sum over each cell is the definition; `dense.encode_cells` does the same on a GPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orbitpool import orbit

PATCHES = 2048  # patches that are encoded best at a time
RESPONSES = 2**21  # responses at a time


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
        Patches of each image.
    templates : tensor (K, S, D)
        If they are in bfloat16, responses are products of such numbers.
    bias : tensor (K, S), optional
    cell : tensor (P,)
        Which cell a patch belongs to.
    cells : int
    how : {"logsumexp", "max"}
        Probabilities of any pose, or max(response - alpha, 0).
    alpha : float
    two_sided : bool
    """
    (n, P, D), (K, S, _) = x.shape, templates.shape
    member = (cell == torch.arange(cells)[:, None]).to(x.dtype)
    patches, posed = x.reshape(-1, D).T.to(templates.dtype), templates.permute(1, 0, 2)
    b = x.new_zeros(S, K, 1) if bias is None else bias.T[..., None]
    out = x.new_empty(n, cells, 2 if two_sided else 1, K)
    some = min(K, max(1, RESPONSES // (S * n * P)))
    # Room for all pieces, because the memory of new tensors would have to be fetched each time.
    products, rooms = patches.new_empty(S * some, n * P), x.new_empty(3, some, n * P)
    responses = products if products.dtype == x.dtype else x.new_empty(products.shape)
    for start in range(0, K, some):
        part = slice(start, start + some)
        some_posed = posed[:, part].reshape(-1, D)
        a = torch.mm(some_posed, patches, out=products[: len(some_posed)])
        a = (a if a.dtype == x.dtype else responses[: len(a)].copy_(a)).view(S, -1, n * P)
        room = rooms[:, : a.shape[1]]
        sides = _peaks(a, alpha, two_sided, room) if how == "max" else _probabilities(a, b[:, part], two_sided, room)
        for side, z in enumerate(sides):
            out[:, :, side, part] = (member @ z.view(-1, P).T).view(cells, -1, n).permute(2, 0, 1)
    return out.flatten(2)


def _peaks(a: Tensor, alpha: float, two_sided: bool, room: Tensor) -> list[Tensor]:
    """max(max_s a_s - alpha, 0), and the same of -a, from (S, k, m) responses, (k, m) each, in (3, k, m) of room."""
    low = [torch.neg(_over_poses(torch.amin, a, room[1]), out=room[1])] if two_sided else []
    return [peak.sub_(alpha).relu_() for peak in (_over_poses(torch.amax, a, room[0]), *low)]


def _probabilities(a: Tensor, bias: Tensor, two_sided: bool, room: Tensor) -> list[Tensor]:
    """Probability of any pose, and the same of -a, from (S, k, m) responses, (k, m) each, in (3, k, m) of room."""
    a += bias
    if not two_sided:
        return [orbit.pooled(a.permute(2, 1, 0), overwrite=True).T]
    low, high = (float(x) for x in a.aminmax())
    if not max(-low, high) + 2 * float(bias.abs().max()) < orbit.SAFE:  # or not a number
        return [orbit.pooled(side.permute(2, 1, 0), overwrite=True).T for side in (2 * bias - a, a)][::-1]
    up = _over_poses(torch.sum, a.exp_(), room[0])
    # exp(b - a) is exp(2 b) / exp(a + b)
    other = torch.div((2 * bias).exp_(), a, out=a if len(a) > 1 else room[1:2])
    down = _over_poses(torch.sum, other, room[1])
    return [on.div_(torch.add(on, 1, out=room[2])) for on in (up, down)]


def _over_poses(reduce: Any, a: Tensor, room: Tensor) -> Tensor:
    """What is left of (S, k, m) over poses, (k, m), in room; one pose is left as it is, because torch is slow there."""
    reduced: Tensor = a[0] if len(a) == 1 else reduce(a, 0, out=room)
    return reduced
