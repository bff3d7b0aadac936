"""Poses that are learned: steps down the gradient of the RBM's objective, through the interpolation, to their motions.

The steps are few and large, and taken beside the updates of the filters, each on many inputs: what a batch says of a
pose is mostly noise. Filters go on with the poses of the epoch's beginning, so that these are made into sparse
operators once an epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orbitpool import orbit, together
from orbitpool.kernels import generate, respond
from orbitpool.learners.training import State
from orbitpool.transforms import LearnedSet

if TYPE_CHECKING:
    from orbitpool.learners.tirbm import TIRBM

MEMORY, SQUARES = 0.9, 0.99  # of Adam: what is kept of the mean gradient and of its squares
TINY = 1e-12
MANY, ROOM = 1000, 2**25  # inputs to a step, and numbers that they may have in all poses of all filters


def begin(poses: LearnedSet, look: Tensor) -> dict[str, Tensor]:
    """The tensors of a fresh state: motions, those in use, and the memory of their gradients, (S, 6) each."""
    start = poses.start.to(look.device)  # in double precision, in which corners of the interpolation are seen
    nothing = torch.zeros_like(start)
    first = {"poses": start, "poses.used": start, "poses.mean": nothing, "poses.square": nothing}
    return {name: tensor.clone() for name, tensor in first.items()}


def enough(learner: TIRBM, poses: LearnedSet) -> int:
    """How many inputs a step is best taken on."""
    return min(MANY, max(1, ROOM // (learner.n_components * len(poses))))


def step_(learner: TIRBM, poses: LearnedSet, state: State, v: Tensor) -> None:
    """Move the motions of a state by one step of Adam, in pixels, on inputs (N, D1)."""
    t, count = state.tensors, state.at.update // poses.every + 1
    part = together.part(len(v))
    free = poses.free.to(t["poses"])
    gradient = part.weigh(_gradient(learner, poses, state, v[part.own], part) * free)
    part.sum_(gradient)
    t["poses.mean"].lerp_(gradient, 1 - MEMORY)
    t["poses.square"].lerp_(gradient.square(), 1 - SQUARES)
    mean = t["poses.mean"] / (1 - MEMORY**count)
    size = (t["poses.square"] / (1 - SQUARES**count)).sqrt() + TINY
    t["poses"].sub_(free * mean / size, alpha=poses.learning_rate)


def _gradient(learner: TIRBM, poses: LearnedSet, state: State, v: Tensor, part: together.Part) -> Tensor:
    """The gradient of `objective` by the motions, (S, 6)."""
    with torch.enable_grad():
        motions = state.tensors["poses"].detach().requires_grad_()
        T = poses.operators(motions).to(v)
        negative = _negative(learner, T.detach(), state, v, part)
        (gradient,) = torch.autograd.grad(objective(learner, T, state.tensors, v, negative, part), motions)
    return gradient.nan_to_num()


def objective(
    learner: TIRBM, T: Tensor, t: dict[str, Tensor], v: Tensor, negative: Tensor, part: together.Part
) -> Tensor:
    """The mean of F(v) - F(v-) and the sparsity term, with operators (S, D2, D1) in place of the learner's.

    Of a part of a batch it has the gradient by that part: the sparsity term depends on the activity in all of it.
    """
    visible = learner._visible(t)
    totals = [orbit.total(_logits(T, x, t, visible)) for x in (v, negative)]
    high, low = (orbit.free_energy(x, a, t["c"], visible).mean() for x, a in zip((v, negative), totals, strict=True))
    active = totals[0].sigmoid().mean(0)
    active = active + (part.mean(active.detach()) - active.detach())
    sparse = learner._sparsity.value(learner.sparsity_target, active).sum()
    return high - low + learner.sparsity_cost * sparse


@torch.no_grad()
def _negative(learner: TIRBM, T: Tensor, state: State, v: Tensor, part: together.Part) -> Tensor:
    """Where Gibbs sampling leads from a batch in the learner's steps, or its persistent chains."""
    t, visible = state.tensors, learner._visible(state.tensors)
    if learner.persistent:
        return t["chains"]
    for _ in range(learner.cd_steps):
        pose = part.drawn(lambda p: orbit.sample(p, state.generator), orbit.posterior(_logits(T, v, t, visible)))
        windows = generate(orbit.hidden(pose, len(T), T.dtype), t["W"])  # (N, S, D2 C)
        channels = windows.view(*windows.shape[:2], T.shape[1], -1)
        mean = visible.mean(torch.einsum("sde,nsdc->nec", T, channels).flatten(1), t["c"])
        v = learner._settle(mean, visible, state.generator, part)
    return v


def _logits(T: Tensor, v: Tensor, t: dict[str, Tensor], visible: orbit.Visible) -> Tensor:
    """How well each filter explains v in each pose, (N, K, S)."""
    channels = visible.scaled(v).view(len(v), T.shape[2], -1)
    moved = torch.einsum("sde,nec->nsdc", T, channels).flatten(2)
    return respond(moved, t["W"], t["b"])
