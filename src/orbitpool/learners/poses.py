"""Poses that are learned: steps down the gradient of the RBM's objective, through the interpolation, to their motions.

The steps are few and large, and taken beside the updates of the filters, each on many inputs: what a batch says of a
pose is mostly noise. Filters go on with the poses of the epoch's beginning, so that these are made into sparse
operators once an epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orbitpool import together
from orbitpool.kernels import generate
from orbitpool.learners.contrast import contrast
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


@torch.no_grad()
def step_(learner: TIRBM, poses: LearnedSet, state: State, v: Tensor) -> None:
    """Move the motions of a state by one step of Adam, in pixels, on inputs (N, D1)."""
    t, count = state.tensors, state.at.update // poses.every
    part = together.part(len(v))
    free = poses.free.to(t["poses"])
    gradient = _gradient(learner, poses, state, v[part.own], part) * free
    part.sum_(gradient)
    t["poses.mean"].lerp_(gradient, 1 - MEMORY)
    t["poses.square"].lerp_(gradient.square(), 1 - SQUARES)
    mean = t["poses.mean"] / (1 - MEMORY**count)
    size = (t["poses.square"] / (1 - SQUARES**count)).sqrt() + TINY
    t["poses"].sub_(free * mean / size, alpha=poses.learning_rate)


def _gradient(learner: TIRBM, poses: LearnedSet, state: State, v: Tensor, part: together.Part) -> Tensor:
    """What a part of the inputs adds to the gradient of the objective by the motions, (S, 6)."""
    t = state.tensors
    operators, changes = poses.near(t["poses"])
    data, model, *_ = contrast(learner, t, v, operators, state.generator, part)
    gradient = torch.zeros_like(t["poses"])
    for side in (data, model):
        windows, x = generate(side.p, t["W"]), learner._visible(t).scaled(side.v)
        for column, change in changes.items():
            slopes = (windows * change.apply(x)).sum((0, 2))
            gradient[:, column].add_(slopes, alpha=side.share)
    return gradient.nan_to_num()
