"""Which poses filters are in: their posterior, drawing from it, and what the drawn ones add up to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from orbitpool import orbit, together
from orbitpool.kernels import native
from orbitpool.kernels.products import ALIGNED, Filters, Moved, answers, fused, generate, joint, respond
from orbitpool.kernels.turning import Beside, Hidden, apart, lengthened, taken_apart, turned
from orbitpool.together import Part
from orbitpool.transforms import TransformSet
from orbitpool.transforms.set import channels_of

ROWS = 64  # inputs whose windows in some poses stay in cache
DENSE = {False: 1 / 40, True: 1 / 12}  # share of hidden units on, from which a product beats rows added up, also in C


def move(v: Tensor, transforms: TransformSet, W: Tensor) -> Moved:
    """Inputs in every pose, (N, S, D2), in the float type of the filters, or what stands for them in products.

    Short numbers on a GPU get a few zeros more, inputs as well as pixels, so that every product with them is fast.
    """
    if fused(v):
        from orbitpool.kernels import moving

        return moving.apply(v, transforms, W.dtype, ALIGNED if W.itemsize == 2 else 1)
    return v.to(W.dtype)[:, None] if transforms.leaves_alone else turned(v, transforms, W.dtype)


def face(W: Tensor, transforms: TransformSet) -> Filters:
    """Filters (K, D2) as products with inputs that `move` gives want them, which need not be found out each time."""
    quarters = None if fused(W) else apart(W, transforms)
    if quarters is None:
        return W
    channels = channels_of(W, transforms.window_shape, "window")
    return taken_apart(W, quarters.pixels(channels), quarters.orbits.shape[1] * channels)


def infer(
    u: Moved,
    W: Filters,
    b: Tensor,
    n: int,
    generator: torch.Generator,
    part: Part | None = None,
    room: int = 0,
) -> tuple[Hidden, Tensor, Tensor]:
    """Probability of each pose, (N, K, S), of moved inputs; of any pose, (N, K); poses drawn. Eq. 7.

    Drawn are hidden units (N, K, S), or the pose of each filter, (N, K), `orbit.OFF` where it is in none, whichever is
    faster to go on with. Only the first n of the N inputs count; nothing is on in the others. Inputs that are `part` of
    a batch get the random numbers that they would get in all of it. The first may have `room` beside it for those of so
    many inputs more.
    """
    part = part or together.alone(n)
    if fused(b):
        from orbitpool.kernels import fused as kernels

        return kernels.infer_(respond(u, W), b, n, generator, part)
    if native.ready(b):
        seed = int(torch.empty((), dtype=torch.int64, device=b.device).random_(generator=generator))
        products = answers(u, W)
        hidden = _put(u, products, b, n, n + room)
        z, _, pose = native.infer(products, b, n, hidden, seed=seed, first=part.own.start, batch=part.n)
        return hidden, z, pose
    p, z = orbit.infer_(respond(u, W, b))
    if p.is_cuda:
        return p, z, part.drawn(lambda p: orbit.sample(p, generator), p)
    return p, z, draw(p, z, generator, part)


def draw(p: Tensor, z: Tensor, generator: torch.Generator, part: Part) -> Tensor:
    """What `orbit.sample` draws from probabilities of each pose and of any, as `infer` gives it, on a CPU."""
    chance = part.drawn(lambda z: torch.empty_like(z).uniform_(generator=generator), z)
    if p.shape[2] == 1:
        return chance.lt_(z)[..., None]
    pose = torch.full_like(z, orbit.OFF, dtype=torch.int32)
    k, n = (chance < z).T.nonzero(as_tuple=True)
    passed = p[n, k].cumsum(1)[:, :-1] <= chance[n, k, None]
    return pose.index_put_((n, k), passed.count_nonzero(1).int())


def _put(u: Moved, products: Sequence[Tensor], b: Tensor, n: int, room: int) -> Beside:
    """Where hidden units of n inputs go, with room for so many; those that will not be beside others, over products."""
    if room == n or not joint(u):
        return Beside(products, 0, n, (n, *b.shape))
    parts = [products[0].new_empty(len(part), part.shape[1] // n * room) for part in products]
    return Beside(parts, 0, room, (n, *b.shape))


def expect(u: Moved, W: Filters, b: Tensor, n: int, beside: Hidden | None = None) -> tuple[Hidden, Tensor]:
    """Probability of each pose, (N, K, S), as `infer` has it, and its mean over the n inputs that count, (K, S).

    The first goes into the room beside others, if there is any.
    """
    if fused(b):
        from orbitpool.kernels import fused as kernels

        return kernels.expect_(respond(u, W), b, n)
    if native.ready(b):
        products = answers(u, W)
        there = isinstance(beside, Beside) and beside.first + beside.shape[0] + n <= beside.room
        hidden = cast("Beside", beside).after(n) if there else _put(u, products, b, n, n)
        _, mean, _ = native.infer(products, b, n, hidden)
        return hidden, mean
    p, _ = orbit.infer_(respond(u, W, b))
    return p, _mean(p)


def tilt_(p: Hidden, z: Tensor, cost: float, slope: Tensor, n: int) -> Tensor:
    """Multiply the posterior by cost slope_j (1 - z_j) - 1 in place; its mean over n inputs, (K, S)."""
    weight = cost * slope
    if isinstance(p, Beside):
        return native.tilt_(p, z, weight)
    if fused(p):
        from orbitpool.kernels import fused as kernels

        return kernels.tilt_(p, z, cost, slope, n)
    p *= torch.addcmul(weight - 1, weight, z, value=-1)[..., None]
    return _mean(p)


def compare(v: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """By how much the mean of each pixel, (D1,), is larger in as many other inputs; mean squares of that and of v."""
    if fused(v):
        from orbitpool.kernels import fused as kernels

        return kernels.compare(v, other)
    gap = other - v
    error, energy = (torch.linalg.vector_norm(x).square() / x.numel() for x in (gap, v))
    return gap.mean(0), error, energy


def generate_drawn(
    drawn: Tensor, W: Tensor, transforms: TransformSet, shape: tuple[int, int], filters: Filters | None = None
) -> Tensor:
    """sum_j T_s' w_j over the filters that are on, each in its pose s, in the shape of the inputs they were drawn for.

    `filters` are what `face` gives, if it is at hand; what it takes apart is added up so, rounded as on the way up.

    Where few are on, their rows are added up instead of multiplied by zeros.
    """
    if drawn.ndim == 3:
        u = generate(drawn.to(W.dtype), W)
        if fused(u):
            from orbitpool.kernels import moving

            return moving.adjoint(u, transforms, shape)
        return _back(u, transforms)
    N, K, S = shape[0], len(W), len(transforms)
    compiled = native.ready(W, kinds=native.BRIEF)
    few = DENSE[compiled]
    if W.is_cuda or S == 1 or (few * S < 1 and (drawn >= 0).sum() > few * N * K * S):
        hidden = native.hidden if compiled else orbit.hidden
        return _back(generate(hidden(drawn, S, W.dtype), W), transforms)
    if compiled:
        transposes, quarters = transforms.to(W.device, torch.float32)._transposes, apart(W, transforms)
        filters = face(W, transforms) if filters is None else filters
        if quarters is None or isinstance(filters, Tensor):
            return native.generate(drawn, [W], transposes, shape[1], None)
        pixels = quarters.pixels(channels_of(W, transforms.window_shape, "window"))
        return native.generate(drawn, filters, transposes, shape[1], pixels)
    rows = -(-N // -(-N // ROWS))
    return torch.cat([_back(u, transforms) for u in _add_up(drawn, W, S, rows)])


def _back(u: Tensor, transforms: TransformSet) -> Tensor:
    u = lengthened(u)
    return u[:, 0] if transforms.leaves_alone else transforms.adjoint(u)


def _mean(p: Tensor) -> Tensor:
    """Over inputs, (K, S)."""
    return p.permute(2, 1, 0).mean(2).T


def _add_up(pose: Tensor, W: Tensor, n_poses: int, rows: int) -> Iterator[Tensor]:
    """Sums of the filters that are on in each pose of each input, (rows, S, D2), so many rows at a time."""
    size = len(pose)
    k, n = (pose >= 0).T.nonzero(as_tuple=True)
    s = pose[n, k]
    bags = -(-size // rows) * rows * n_poses
    bag = (n // rows * n_poses + s) * rows + n % rows
    order = np.argsort(bag.numpy().astype(np.min_scalar_type(bags)), kind="stable")  # fast for short integers
    starts = pad(torch.bincount(bag, minlength=bags).cumsum(0), (1, 0))
    filters = k[torch.from_numpy(order)]
    for first in range(0, size, rows):
        part = starts[first * n_poses : (first + rows) * n_poses + 1]
        some = filters[part[0] : part[-1]]
        sums = embedding_bag(some, W, part - part[0], mode="sum", include_last_offset=True)
        yield sums.view(n_poses, rows, -1).transpose(0, 1)[: size - first]
