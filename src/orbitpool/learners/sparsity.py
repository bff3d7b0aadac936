"""Distances between the activity a filter should have and the one it has: D(p, q) of eq. 9."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_SAFE = 1e-6  # keeps the slope at a filter that is never or always on finite, and very large


@dataclass(frozen=True)
class Distance:
    """D(p, q) and its derivative in q, both elementwise."""

    value: Callable[[float, Tensor], Tensor]
    slope: Callable[[float, Tensor], Tensor]


def _kl(p: float, q: Tensor) -> Tensor:
    q = q + (q.clamp(_SAFE, 1 - _SAFE) - q).detach()  # moved away from 0 and 1 without losing its slope
    return p * torch.log(p / q) + (1 - p) * torch.log((1 - p) / (1 - q))


def _kl_slope(p: float, q: Tensor) -> Tensor:
    q = q.clamp(_SAFE, 1 - _SAFE)
    return (q - p) / (q * (1 - q))


DISTANCES = {
    "l2": Distance(lambda p, q: (p - q) ** 2, lambda p, q: 2 * (q - p)),
    "kl": Distance(_kl, _kl_slope),
}
