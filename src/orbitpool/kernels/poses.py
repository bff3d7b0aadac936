"""Which poses filters are in: their posterior, drawing from it, and what the drawn ones add up to."""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from orbitpool import orbit
from orbitpool.kernels.products import generate, respond
from orbitpool.transforms import TransformSet

DENSE = 1 / 80  # share of hidden units on, above which a product is faster than adding rows up
ALIGNED = 8  # numbers to which a GPU's fast products want rows of sixteen-bit numbers to be rounded up
TRITON = find_spec("triton") is not None


def move(v: Tensor, transforms: TransformSet) -> Tensor:
    """Inputs in every pose, (N, S, D2); short numbers on a GPU get a few inputs of zeros more, to be fast."""
    return transforms.apply(pad(v, (0, 0, 0, -len(v) % ALIGNED)) if v.is_cuda and v.itemsize == 2 else v)


def infer(
    u: Tensor, W: Tensor, b: Tensor, n: int, generator: torch.Generator | None = None, pooled: bool = False
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Probability of each pose, (N, K, S), of moved inputs; of any pose, (N, K), if asked for; poses drawn. Eq. 7.

    Drawn are indices (N, K), -1 where off, or hidden units (N, K, S), whichever is faster to go on with. Only the first
    n of the N inputs count; nothing is on in the others.
    """
    if fused(u):
        from orbitpool.kernels import fused as kernels

        return kernels.infer_(respond(u, W), b, n, generator)
    p = orbit.posterior(respond(u, W, b).to(b.dtype), overwrite=True)
    if n < len(p):
        p[n:] = 0
    z = p.permute(2, 1, 0).sum(0).T if pooled else None
    return p, z, None if generator is None else orbit.sample(p, generator)


def tilt_(p: Tensor, z: Tensor | None, pull: Tensor | None, n: int) -> Tensor:
    """Multiply the posterior by 1 - pull_j (1 - z_j) in place, if there is a pull; its mean over n inputs, (K, S)."""
    if fused(p):
        from orbitpool.kernels import fused as kernels

        return kernels.tilt_(p, z, pull, n)
    if pull is not None and z is not None:
        p *= (1 - pull * (1 - z))[..., None]
    return p.permute(2, 1, 0).sum(2).T / n


def generate_drawn(drawn: Tensor, W: Tensor, transforms: TransformSet, rows: int = 64) -> Tensor:
    """sum_j T_s' w_j over the filters that are on, each in its pose s, (N, D1), from what `infer` drew.

    Where few are on, their rows are added up instead of multiplied by zeros, some inputs at a time to stay in cache.
    """
    if drawn.ndim == 3:
        return transforms.adjoint(generate(drawn, W))
    S = len(transforms)
    if drawn.is_cuda or (drawn >= 0).sum() > DENSE * S * drawn.numel():  # counting would make a GPU wait
        h = torch.stack([(drawn == s).T for s in range(S)], 1).to(W.dtype)
        return transforms.adjoint(generate(h.permute(2, 0, 1), W))
    return torch.cat([transforms.adjoint(_windows(part, W, S)) for part in torch.split(drawn.contiguous(), rows)])


def fused(x: Tensor) -> bool:
    """Whether there are kernels for this tensor that do everything at once."""
    return x.is_cuda and x.dtype != torch.float64 and TRITON


def _windows(pose: Tensor, W: Tensor, n_poses: int) -> Tensor:
    """The sum of the filters that are on in each pose, (N, S, D2)."""
    n, k = (pose >= 0).nonzero(as_tuple=True)
    bag, order = (pose[n, k] * len(pose) + n).int().sort()
    edges = torch.arange(n_poses * len(pose) + 1, dtype=torch.int32, device=pose.device)
    starts = torch.searchsorted(bag, edges, out_int32=True)
    sums = embedding_bag(k.int()[order], W, starts, mode="sum", include_last_offset=True)
    return sums.view(n_poses, len(pose), -1).permute(1, 0, 2)
