"""From responses to features: what a classifier is given for each filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import relu

from orbitpool import orbit
from orbitpool.kernels import reduce_orbit, reduce_templates
from orbitpool.kernels.chunked import by_templates
from orbitpool.kernels.matrices import multiply
from orbitpool.transforms import TransformSet


@dataclass(frozen=True)
class Encoder:
    """How a learner turns an input into K features, or 2 K with those of -v last.

    Features are squash(reduce_s (g_js w_j' T_s v + b_js)).
    """

    W: Tensor  # (K, D2)
    transforms: TransformSet
    how: str  # "logsumexp" or "max"
    two_sided: bool = False
    bias: Tensor | None = None  # (K, S)
    scale: Tensor | None = None  # (K, S), the factors g
    alpha: float = 0.0  # threshold of a maximum

    def encode(self, v: Tensor) -> Tensor:
        """Features, (N, K) or (N, 2 K)."""
        reduced = reduce_orbit(v, self.W, self.transforms, self.bias, self.how, self.two_sided, self.scale)
        return squash(reduced, self.how, self.alpha)

    def folded(self, P: Tensor | None) -> Callable[[Tensor], Tensor]:
        """The features of P v as a function of v, (N, D) to (N, K) or (N, 2 K): P is folded into the filters."""
        templates, how = self.templates(P), self.how
        return lambda v: squash(reduce_templates(v, templates, self.bias, how, self.two_sided), how, self.alpha)

    def apart(self, P: Tensor | None) -> Callable[[Tensor], Tensor]:
        """The features of P v with poses apart, as a function of v, (N, D) to (N, S K) or (N, 2 S K), pose by pose.

        They are probabilities of each pose, or what is above the threshold in each.
        """
        templates, S = self.templates(P), len(self.transforms)
        flat = templates.transpose(0, 1).flatten(0, 1)

        def features(v: Tensor) -> Tensor:
            a = by_templates(flat, v, S)
            sides = [self._apart(side) for side in ((a, -a) if self.two_sided else (a,))]
            return torch.cat(sides, 1).transpose(1, 2).flatten(1)

        return features

    def _apart(self, a: Tensor) -> Tensor:
        if self.how == "max":
            return relu(a - self.alpha)
        return orbit.posterior(a if self.bias is None else a + self.bias)

    def templates(self, P: Tensor | None) -> Tensor:
        """What v is multiplied with in every pose for features of P v, (K, S, D)."""
        posed = self.transforms.orbit(self.W)
        posed = posed if self.scale is None else posed * self.scale[..., None]
        return posed if P is None else fold(posed, P)


def fold(templates: Tensor, P: Tensor) -> Tensor:
    """What v is multiplied with instead of P v with templates, (K, S, D)."""
    return multiply(templates.flatten(0, 1), P).view(templates.shape)


def squash(reduced: Tensor, how: str, alpha: float = 0.0) -> Tensor:
    """Probabilities from log-sums over poses, what is above the threshold alpha from maxima."""
    return reduced.sigmoid() if how == "logsumexp" else relu(reduced - alpha)


def probability(W: Tensor, transforms: TransformSet, bias: Tensor, two_sided: bool = False) -> Encoder:
    """Probability that each filter is on in any pose. Eq. 10."""
    return Encoder(W, transforms, "logsumexp", two_sided, bias)


def soft_threshold(
    W: Tensor, transforms: TransformSet, alpha: float, two_sided: bool = True, scale: Tensor | None = None
) -> Encoder:
    """max(max_s w_j' T_s v - alpha, 0). Section 5.3."""
    return Encoder(W, transforms, "max", two_sided, None, scale, alpha)


def unit_gain(templates: Tensor) -> Tensor:
    """What makes each of (K, S, D1) templates of unit norm, (K, S)."""
    lengths: Tensor = torch.linalg.vector_norm(templates, dim=-1)
    return lengths.clamp_min(1e-8).reciprocal()
