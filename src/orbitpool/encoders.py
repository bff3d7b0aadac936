"""From responses to features: what a classifier is given for each filter."""

from __future__ import annotations

from torch import Tensor

from orbitpool.kernels import reduce_orbit
from orbitpool.transforms import TransformSet


def probability(v: Tensor, W: Tensor, transforms: TransformSet, bias: Tensor, two_sided: bool = False) -> Tensor:
    """Probability that each filter is on in any pose, (N, K). Eq. 10; two-sided (N, 2 K), the filters of -v last."""
    return reduce_orbit(v, W, transforms, bias, "logsumexp", two_sided).sigmoid_()


def soft_threshold(
    v: Tensor, W: Tensor, transforms: TransformSet, alpha: float, two_sided: bool = True, scale: Tensor | None = None
) -> Tensor:
    """max(max_s w_j' T_s v - alpha, 0), (N, K); two-sided (N, 2 K), the filters of -v last. Section 5.3."""
    return reduce_orbit(v, W, transforms, None, "max", two_sided, scale=scale).sub_(alpha).clamp_(min=0)
