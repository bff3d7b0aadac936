"""Which poses filters are in: their posterior, drawing from it, and what the drawn ones add up to."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from orbitpool import orbit
from orbitpool.kernels.products import ALIGNED, fused, generate, respond
from orbitpool.transforms import TransformSet

DENSE = 1 / 80  # share of hidden units on, above which a product is faster than adding rows up


def move(v: Tensor, transforms: TransformSet, W: Tensor) -> Tensor:
    """Inputs in every pose, (N, S, D2), in the float type of the filters.

    Short numbers on a GPU get a few zeros more, inputs as well as pixels, so that every product with them is fast.
    """
    if fused(v):
        from orbitpool.kernels import moving

        return moving.apply(v, transforms, W.dtype, ALIGNED if W.itemsize == 2 else 1)
    return v.to(W.dtype)[:, None] if transforms.leaves_alone else transforms.apply(v.to(W.dtype))


def infer(
    u: Tensor, W: Tensor, b: Tensor, n: int, generator: torch.Generator, pooled: bool = False
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Probability of each pose, (N, K, S), of moved inputs; of any pose, (N, K), if asked for; poses drawn. Eq. 7.

    Drawn are indices (N, K), -1 where off, or hidden units (N, K, S), whichever is faster to go on with. Only the first
    n of the N inputs count; nothing is on in the others.
    """
    if fused(u):
        from orbitpool.kernels import fused as kernels

        return kernels.infer_(respond(u, W), b, n, generator)
    p = _posterior(u, W, b)
    z = p.permute(2, 1, 0).sum(0).T if pooled else None
    return p, z, orbit.sample(p, generator)


def expect(u: Tensor, W: Tensor, b: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Probability of each pose, (N, K, S), as `infer` has it, and its mean over the n inputs that count, (K, S)."""
    if fused(u):
        from orbitpool.kernels import fused as kernels

        return kernels.expect_(respond(u, W), b, n)
    p = _posterior(u, W, b)
    return p, _mean(p)


def tilt_(p: Tensor, z: Tensor, cost: float, slope: Tensor, n: int) -> Tensor:
    """Multiply the posterior by 1 - cost slope_j (1 - z_j) in place; its mean over n inputs, (K, S)."""
    if fused(p):
        from orbitpool.kernels import fused as kernels

        return kernels.tilt_(p, z, cost, slope, n)
    p *= (1 - cost * slope * (1 - z))[..., None]
    return _mean(p)


def compare(v: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """By how much the mean of each pixel, (D1,), is larger in as many other inputs; mean squares of that and of v."""
    if fused(v):
        from orbitpool.kernels import fused as kernels

        return kernels.compare(v, other)
    gap = other - v
    return gap.mean(0), gap.square().mean(), v.square().mean()


def generate_drawn(
    drawn: Tensor, W: Tensor, transforms: TransformSet, shape: tuple[int, int], rows: int = 64
) -> Tensor:
    """sum_j T_s' w_j over the filters that are on, each in its pose s, in the shape of the inputs they were drawn for.

    Where few are on, their rows are added up instead of multiplied by zeros, some inputs at a time to stay in cache.
    """
    if drawn.ndim == 3:
        from orbitpool.kernels import moving

        return moving.adjoint(generate(drawn, W), transforms, shape)
    S = len(transforms)
    if drawn.is_cuda or (drawn >= 0).sum() > DENSE * S * drawn.numel():  # counting would make a GPU wait
        h = torch.stack([(drawn == s).T for s in range(S)], 1).to(W.dtype)
        return _back(generate(h.permute(2, 0, 1), W), transforms)
    return torch.cat([_back(_windows(part, W, S), transforms) for part in torch.split(drawn.contiguous(), rows)])


def _back(u: Tensor, transforms: TransformSet) -> Tensor:
    return u[:, 0] if transforms.leaves_alone else transforms.adjoint(u)


def _posterior(u: Tensor, W: Tensor, b: Tensor) -> Tensor:
    return orbit.posterior(respond(u, W, b).to(b.dtype), overwrite=True)


def _mean(p: Tensor) -> Tensor:
    """Over inputs, (K, S)."""
    return p.permute(2, 1, 0).mean(2).T


def _windows(pose: Tensor, W: Tensor, n_poses: int) -> Tensor:
    """The sum of the filters that are on in each pose, (N, S, D2)."""
    n, k = (pose >= 0).nonzero(as_tuple=True)
    bag, order = (pose[n, k] * len(pose) + n).int().sort()
    edges = torch.arange(n_poses * len(pose) + 1, dtype=torch.int32, device=pose.device)
    starts = torch.searchsorted(bag, edges, out_int32=True)
    sums = embedding_bag(k.int()[order], W, starts, mode="sum", include_last_offset=True)
    return sums.view(n_poses, len(pose), -1).permute(1, 0, 2)
