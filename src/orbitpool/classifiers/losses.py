"""What it costs to respond wrongly, with the two derivatives that Newton's method asks for.

Responses F are (B, K, N): B problems over the same rows, K columns of weights, N rows; `weight` is (B, 1, N).
"""

from __future__ import annotations

from math import inf
from typing import ClassVar, Protocol

import torch
from torch import Tensor


class Loss(Protocol):
    """A convex function of the responses that is a sum over rows."""

    dims: ClassVar[tuple[int, ...]]  # over which of (B, K, ...) a sum goes that belongs to one independent problem
    bias_penalty: ClassVar[float]
    gentle: ClassVar[float]  # C times the sum of squared features up to which Newton's method may start from zero

    def value(self, F: Tensor) -> Tensor:
        """The loss of each independent problem, (B, K or 1, 1)."""

    def slope(self, F: Tensor) -> Tensor:
        """The derivative by each response, (B, K, N)."""

    def curvature(self, F: Tensor) -> Tensor:
        """What `bend` and `diagonal` need to know of F, (B, K, N)."""

    def bend(self, curvature: Tensor, U: Tensor) -> Tensor:
        """The second derivative times the direction U, (B, K, N)."""

    def diagonal(self, curvature: Tensor) -> Tensor:
        """The diagonal of the second derivative, (B, K, N)."""


class SquaredHinge:
    """weight max(0, 1 - y f)^2, each class against the rest; `signs` y are (1, K, N) of -1 and 1."""

    dims: ClassVar[tuple[int, ...]] = (-1,)
    bias_penalty: ClassVar[float] = 1.0
    gentle: ClassVar[float] = 1e5  # beyond it a first step satisfies too many rows, and small ones must undo it

    def __init__(self, signs: Tensor, weight: Tensor) -> None:
        self.signs, self.weight = signs, weight

    def _short(self, F: Tensor) -> Tensor:
        """How far each response falls short of its margin, (B, K, N)."""
        return torch.addcmul(F.new_ones(()), self.signs, F, value=-1).clamp_min_(0)

    def value(self, F: Tensor) -> Tensor:
        """The sum of squared shortfalls, (B, K, 1)."""
        return (self._short(F).square_() * self.weight).sum(self.dims, keepdim=True)

    def slope(self, F: Tensor) -> Tensor:
        """-2 weight y max(0, 1 - y f), (B, K, N)."""
        return self._short(F).mul_(self.signs).mul_(self.weight).mul_(-2)

    def curvature(self, F: Tensor) -> Tensor:
        """2 weight where the margin is not reached, (B, K, N)."""
        return (self.signs * F < 1) * (2 * self.weight)

    def bend(self, curvature: Tensor, U: Tensor) -> Tensor:
        """Curvature times U: rows and classes do not mix, (B, K, N)."""
        return curvature * U

    def diagonal(self, curvature: Tensor) -> Tensor:
        """The curvature itself, (B, K, N)."""
        return curvature


class CrossEntropy:
    """-weight log P(class); `targets` are (1, K, N) of 0 and 1; K = 1 means two classes, the first of response 0."""

    dims: ClassVar[tuple[int, ...]] = (-2, -1)
    bias_penalty: ClassVar[float] = 0.0
    gentle: ClassVar[float] = inf

    def __init__(self, targets: Tensor, weight: Tensor) -> None:
        self.targets, self.weight = targets, weight

    def value(self, F: Tensor) -> Tensor:
        """The cross-entropy of each problem, (B, 1, 1)."""
        each = logits(F).logsumexp(-2, keepdim=True) - (self.targets * F).sum(-2, keepdim=True)
        return (each * self.weight).sum(self.dims, keepdim=True)

    def slope(self, F: Tensor) -> Tensor:
        """P - target, weighted, (B, K, N)."""
        return (self.curvature(F) - self.targets).mul_(self.weight)

    def curvature(self, F: Tensor) -> Tensor:
        """The probabilities P of the classes that have a column, (B, K, N)."""
        return logits(F).softmax(-2)[..., -F.shape[-2] :, :]

    def bend(self, curvature: Tensor, U: Tensor) -> Tensor:
        """P (U - sum_k P_k U_k), weighted, (B, K, N)."""
        mean = (curvature * U).sum(-2, keepdim=True)
        return (U - mean).mul_(curvature).mul_(self.weight)

    def diagonal(self, curvature: Tensor) -> Tensor:
        """P (1 - P), weighted, (B, K, N)."""
        return (curvature - curvature.square()).mul_(self.weight)


def logits(F: Tensor) -> Tensor:
    """One response a class, (B, classes, N): a single column is that of the second of two classes."""
    return torch.cat([torch.zeros_like(F), F], -2) if F.shape[-2] == 1 else F
