"""What the RBM and the autoencoder share: a softmax over poses with an off state, and descent on a sparse objective."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from math import inf, log
from typing import Any, ClassVar

import torch
from torch import Tensor

from orbitpool import encoders, orbit
from orbitpool.kernels import Statistics, descend_, generate, reduce_orbit, respond
from orbitpool.kernels.descent import summed
from orbitpool.learners import checks
from orbitpool.learners.base import Learner, Parameters
from orbitpool.learners.sparsity import DISTANCES, Distance
from orbitpool.learners.training import State, at
from orbitpool.together import Part


class SoftmaxLearner(Learner):
    """Filters W, hidden biases b and visible biases c, with eqs 7-8 (12-13) between inputs and hidden units."""

    PARAMETERS: ClassVar = {"W": "components_", "b": "intercept_hidden_", "c": "intercept_visible_"}
    REPLAYS: ClassVar = True

    def _visible(self, t: Parameters) -> orbit.Visible:
        """What is assumed of inputs."""
        raise AssertionError("a subclass knows its visible units")

    def _check(self) -> None:
        super()._check()
        checks.schedule("learning_rate", self.learning_rate)
        checks.schedule("momentum", self.momentum, below=1.0)
        for name in ("learning_rate_decay", "weight_decay", "sparsity_cost"):
            checks.at_least(name, getattr(self, name), 0)
        checks.within("sparsity_target", self.sparsity_target, 0, 1)
        checks.one_of("sparsity_distance", self.sparsity_distance, DISTANCES)

    def _begin(self, look: Tensor, generator: torch.Generator, **given: Tensor) -> Parameters:
        K, S, p = self.n_components, len(self._operators), self.sparsity_target
        if isinstance(self._visible(given), orbit.Binary):
            _warn_unless_unit(look)
        learned = {
            "W": 0.02 * torch.randn(K, self._filter_size, generator=generator, dtype=look.dtype).to(look.device),
            "b": look.new_full((K, S), log(p / (1 - p) / S)),  # E[z] starts at its target
        }
        learned["c"] = self._visible(given).bias(look)
        return given | learned | {f"{name}.velocity": torch.zeros_like(t) for name, t in learned.items()}

    @property
    def _sparsity(self) -> Distance:
        return DISTANCES[self.sparsity_distance]

    def _rate(self, epoch: int) -> float:
        return at(self.learning_rate, epoch) / (1 + float(self.learning_rate_decay) * epoch)

    def _descend(
        self,
        state: State,
        gradients: Mapping[str, Tensor | Statistics],
        part: Part,
        figures: tuple[Tensor, ...],
        decay: float = 0.0,
    ) -> None:
        """One step with momentum, by gradients to which decay W is to be added.

        Gradients and figures are what this part of a batch adds to them; figures become those of the whole batch.
        """
        if not part.alone:
            gradients = {name: summed(gradient, state.tensors[name]) for name, gradient in gradients.items()}
            part.sum_(*gradients.values(), *figures)  # type: ignore[arg-type]
        rate, momentum, *_ = self._pace(state.at.epoch)
        for name, gradient in gradients.items():
            t, velocity = state.tensors[name], state.tensors[f"{name}.velocity"]
            descend_(t, velocity, gradient, rate, momentum, decay if name == "W" else 0.0)

    def _pace(self, epoch: int) -> tuple[float, ...]:
        return self._rate(epoch), at(self.momentum, epoch)

    def _advice(self, epoch: int) -> str:
        elsewhere = ", with another checkpoint path" if self.checkpoint else ""
        return f"learning_rate was {self._rate(epoch):g}: lower it{elsewhere}, or scale real inputs to unit variance"

    def _weight_limit(self) -> float:
        return 1e3 if isinstance(self._visible({}), orbit.Binary) else inf  # e^1000 for one pixel of size one

    def _up(self, v: Tensor, t: Parameters, visible: orbit.Visible) -> tuple[Tensor, Tensor]:
        """Inputs in every pose, (N, S, D2), and the posterior, (N, K, S)."""
        u = self._operators.apply(visible.scaled(v))
        return u, orbit.posterior(respond(u, t["W"], t["b"]), overwrite=not torch.is_grad_enabled())

    def _encoder(self, t: Parameters) -> encoders.Encoder:
        return encoders.probability(self._visible(t).scaled(t["W"]), self._operators, t["b"], self.two_sided)

    def _decoder(self, t: Parameters) -> Callable[[Tensor], Tensor]:
        visible = self._visible(t)

        def decode(v: Tensor) -> Tensor:
            _, p = self._up(v, t, visible)
            return visible.mean(self._operators.adjoint(generate(p, t["W"])), t["c"])

        return decode

    def posterior(self, X: Any) -> Any:
        """Probability of each pose of each filter, (N, K, S); the off state takes the rest. Eqs 7 and 12."""
        return self._map(lambda t: lambda v: self._up(v, t, self._visible(t))[1], X, few=True)

    def pose(self, X: Any) -> Any:
        """Index of the likeliest pose of each filter, (N, K), -1 where the filter is likelier off than on."""

        def likeliest(a: Tensor) -> Tensor:
            return a.argmax(-1).masked_fill_(orbit.total(a) < 0, -1)

        def poses(t: Parameters) -> Callable[[Tensor], Tensor]:
            W = self._visible(t).scaled(t["W"])
            return lambda v: reduce_orbit(v, W, self._operators, t["b"], likeliest)

        return self._map(poses, X)


def _warn_unless_unit(look: Tensor) -> None:
    low, high = look.min().item(), look.max().item()
    if low < 0 or high > 1:
        warnings.warn(
            f"inputs range from {low:.3g} to {high:.3g} and binary units take values from 0 to 1; "
            "scale the inputs, or choose units for real values (visible='gaussian', decoder='linear')",
            stacklevel=6,
        )
