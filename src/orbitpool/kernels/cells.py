"""Dense encoding on a CPU: features of patches, summed over cells, in pieces that stay in cache.

`Encoder.folded` followed by a sum over each cell is the definition; `dense.encode_cells` does the same on a GPU, and
`native.encode` all but the products where there is a compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from orbitpool import orbit
from orbitpool.kernels import native
from orbitpool.kernels.matrices import multiply
from orbitpool.kernels.turning import lengthened

PATCHES = 2048  # patches that are encoded best at a time
RESPONSES = 2**20  # bytes of responses in one pose at a time

Pose = tuple[Tensor, Tensor]  # pixels that some template looks at, (d,), and what templates have there, (K, d)


def by_pose(templates: Tensor) -> list[Pose]:
    """Templates (K, S, D) pose by pose, without the pixels that all of them leave out."""
    pixels = [t.any(0).nonzero()[:, 0] for t in templates.unbind(1)]
    return [(some, t[:, some]) for some, t in zip(pixels, templates.unbind(1), strict=True)]


def encode_cells(
    x: Tensor,
    poses: list[Pose],
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
    poses : list of S poses
        What `by_pose` gives; if templates are in bfloat16, responses are products of such numbers.
    bias : tensor (K, S), optional
    cell : tensor (P,)
        Which cell a patch belongs to.
    cells : int
    how : {"logsumexp", "max"}
        Probabilities of any pose, or max(response - alpha, 0).
    alpha : float
    two_sided : bool
    """
    (n, P, D), S, (K, _) = x.shape, len(poses), poses[0][1].shape
    patches = x.reshape(-1, D).T.to(poses[0][1].dtype)
    looks = [(t, patches if len(pixels) == D else patches[pixels]) for pixels, t in poses]
    b = x.new_zeros(S, K, 1) if bias is None else bias.T.reshape(S, K, 1).contiguous()
    out = x.new_empty(n, cells, 2 if two_sided else 1, K)
    peaks, compiled = how == "max", native.ready(out, b) and patches.dtype in native.BRIEF
    step = max(1, RESPONSES // (n * P * patches.itemsize))
    for some in (slice(start, start + step) for start in range(0, K, step)):

        def respond(some: slice = some) -> Iterator[Tensor]:
            return (multiply(t[some], seen) for t, seen in looks)

        if compiled:
            some_bias = None if peaks else b[:, some, 0].contiguous()
            out[..., some] = native.encode(respond(), some_bias, S, alpha, out.shape[2], cell.view(P), cells)
        else:
            sides = _peaks(respond(), alpha, two_sided) if peaks else _probabilities(respond, b[:, some], two_sided)
            member = (cell == torch.arange(cells)[:, None]).to(x.dtype)
            for side, z in enumerate(sides):
                sums = member @ z.view(-1, P).T
                out[:, :, side, some] = sums.view(cells, -1, n).permute(2, 0, 1)
    return out.flatten(2)


def _peaks(responses: Iterator[Tensor], alpha: float, two_sided: bool) -> list[Tensor]:
    """max(max_s a_s - alpha, 0), and the same of -a, from responses a_s in each pose; all are (k, m)."""
    high = low = next(responses)
    for a in responses:
        low = torch.minimum(low, a) if two_sided else low
        high = torch.maximum(high, a)
    sides = (high, -low) if two_sided else (high,)
    return [lengthened(side).sub_(alpha).relu_() for side in sides]


def _probabilities(respond: Callable[[], Iterator[Tensor]], bias: Tensor, two_sided: bool) -> list[Tensor]:
    """Probability of any pose, and the same of -a, from responses a_s in each pose, (k, m), and biases, (S, k, 1)."""
    bound, weights = orbit.SAFE - float(bias.abs().max()), bias.exp()
    sides: list[Tensor] = []
    for a, weight in zip(respond(), weights, strict=True):
        low, high = a.aminmax()
        if not max(-float(low), float(high)) < bound:  # or not a number
            return _whatever_they_are(respond(), bias, two_sided)
        odds = a.to(bias.dtype).exp_()
        sides = sides or [torch.zeros_like(odds) for _ in range(2 if two_sided else 1)]
        sides[0].addcmul_(odds, weight)
        if two_sided:
            sides[1].addcdiv_(weight, odds)
    return [on.div_(on + 1) for on in sides]


def _whatever_they_are(responses: Iterator[Tensor], bias: Tensor, two_sided: bool) -> list[Tensor]:
    """Probabilities from responses whose exponentials may be too large or too small."""
    totals = [bias.new_tensor(float("-inf"))] * (2 if two_sided else 1)
    for a, b in zip(responses, bias, strict=True):
        sides = (b + a, b - a)
        totals = [torch.logaddexp(total, side) for total, side in zip(totals, sides, strict=False)]
    return [total.sigmoid_() for total in totals]
