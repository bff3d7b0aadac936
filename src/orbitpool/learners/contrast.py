"""Contrastive divergence: the poses of filters for the data, and for what Gibbs sampling makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from orbitpool import orbit, together
from orbitpool.kernels import expect, face, generate_drawn, infer, move, tilt_
from orbitpool.transforms import TransformSet

if TYPE_CHECKING:
    from orbitpool.kernels.products import Filters, Moved
    from orbitpool.kernels.turning import Hidden
    from orbitpool.learners.tirbm import TIRBM


@dataclass(frozen=True)
class Gibbs:
    """Sampling of hidden units and of inputs in turn."""

    t: dict[str, Tensor]
    visible: orbit.Visible
    operators: TransformSet
    generator: torch.Generator

    def up(self, v: Tensor, part: together.Part | None = None, room: int = 0) -> Any:
        """Inputs in every pose, (N, S, D2), and what `infer` says of them."""
        u = self.move(v)
        return u, *infer(u, self.filters, self.t["b"], len(v), self.generator, part, room)

    @cached_property
    def filters(self) -> Filters:
        """Filters as products with moved inputs want them."""
        return face(self.t["W"], self.operators)

    def move(self, v: Tensor) -> Moved:
        """Inputs in every pose, as the filters see them."""
        return move(self.visible.scaled(v), self.operators, self.t["W"])

    def down(self, drawn: Tensor, n: int) -> Tensor:
        """E[v | h] for the poses that were drawn for n inputs, (n, D1)."""
        W, c = self.t["W"], self.t["c"]
        return self.visible.mean(generate_drawn(drawn, W, self.operators, (n, len(c)), self.filters), c)

    def draw(self, mean: Tensor, part: together.Part | None = None) -> Tensor:
        """Inputs of some mean."""
        part = part or together.alone(len(mean))
        return part.drawn(lambda mean: self.visible.draw(mean, self.generator), mean)


class Side(NamedTuple):
    """Inputs, and the filters that they meet."""

    v: Tensor  # (n, D1)
    u: Moved  # in every pose, (N, S, D2)
    p: Hidden  # slope of the objective by each logit, (N, K, S): the probability, or for the data nearly minus that
    on: Tensor  # its mean, (K, S)
    part: together.Part

    @property
    def share(self) -> float:
        """Of an input, in the mean over all."""
        return self.part.weight / len(self.v)


def contrast(
    learner: TIRBM,
    t: dict[str, Tensor],
    v: Tensor,
    operators: TransformSet,
    generator: torch.Generator,
    part: together.Part,
) -> tuple[Side, Side, Tensor, Tensor]:
    """The data's side (N, D1) and the model's, what is recalled of the data, and the activity of filters in it, (K,).

    The objective is the mean of F(v) - F(v-) and the sparsity term. Chains that persist go on.
    """
    gibbs = Gibbs(t, learner._visible(t), operators, generator)
    chain = together.part(len(t["chains"])) if learner.persistent else part
    start = t["chains"][chain.own] if learner.persistent else v
    u, p, z, drawn = gibbs.up(v, part, room=len(start))
    activity = part.weigh(z.sum(0) / len(v))
    ready = part.sum_(activity, later=True)
    recalled = gibbs.down(drawn, len(v))

    def settle(mean: Tensor, part: together.Part) -> Tensor:
        return gibbs.draw(mean, part) if learner.sample_visible else mean

    negative = start if learner.persistent else settle(recalled, part)
    for _ in range(learner.cd_steps if learner.persistent else learner.cd_steps - 1):
        *_, drawn = gibbs.up(negative, chain)
        negative = settle(gibbs.down(drawn, len(negative)), chain)
    u_ = gibbs.move(negative)
    p_, on_ = expect(u_, gibbs.filters, t["b"], len(negative), beside=p)
    if learner.persistent:
        t["chains"].copy_(chain.gather(negative))

    ready()
    slope = learner._sparsity.slope(learner.sparsity_target, activity)
    # dE[z_j]/da_js = p_js (1 - z_j) joins the statistics of the data
    on = tilt_(p, z, learner.sparsity_cost, slope, len(v))
    return Side(v, u, p, on, part), Side(negative, u_, p_, on_, chain), recalled, activity
