"""The paper's baselines that have no poses: k-means with the triangle encoding (VQ), and sparse coding (SC)."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, Self

import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn.functional import softshrink

from orbitpool.kernels import choose_device

ROWS = 8192  # inputs that are compared with all filters at a time


class Baseline(BaseEstimator):  # type: ignore[misc]
    """Filters for `ConvFeatures`: K of them, found by a number of passes over the inputs."""

    transforms: ClassVar[None] = None
    components_: Tensor

    def fit(self, X: Tensor) -> Self:
        """Learn filters from inputs (N, D)."""
        X = X.to(choose_device(self.device, X))
        if len(X) < self.n_components:
            raise ValueError(f"{len(X)} inputs are too few for n_components={self.n_components}; give as many or more")
        generator = torch.Generator().manual_seed(self.random_state or 0)
        start = X[torch.randperm(len(X), generator=generator)[: self.n_components].to(X.device)]
        self.components_, self.n_features_in_ = self._learn(X, start), X.shape[1]
        return self

    def encoder(self, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32) -> Self:
        """The same with its filters there."""
        there = copy(self)
        there.components_ = self.components_.to(device, dtype)
        return there

    def folded(self, P: Tensor | None) -> Callable[[Tensor], Tensor]:
        """The features of P v as a function of v."""
        return lambda v: torch.cat([self._encode(part if P is None else part @ P.T) for part in torch.split(v, ROWS)])

    def _learn(self, X: Tensor, W: Tensor) -> Tensor:
        raise AssertionError("a subclass has its own way to learn")

    def _encode(self, v: Tensor) -> Tensor:
        raise AssertionError("a subclass has its own encoding")


class KMeans(Baseline):
    """k-means, with features max(0, mean_j |v - w_j| - |v - w_k|): Coates, Lee & Ng (AISTATS 2011)."""

    def __init__(
        self, n_components: int = 1600, *, n_iter: int = 10, device: str = "auto", random_state: int | None = None
    ) -> None:
        self.n_components = n_components
        self.n_iter = n_iter
        self.device = device
        self.random_state = random_state

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _learn(self, X: Tensor, W: Tensor) -> Tensor:
        for _ in range(self.n_iter):
            nearest = torch.cat([torch.cdist(part, W).argmin(1) for part in torch.split(X, ROWS)])
            counts = torch.bincount(nearest, minlength=len(W))[:, None]
            W = torch.where(counts > 0, torch.zeros_like(W).index_add_(0, nearest, X) / counts.clamp_min(1), W)
        return W

    def _encode(self, v: Tensor) -> Tensor:
        distance = torch.cdist(v, self.components_)
        return (distance.mean(1, keepdim=True) - distance).clamp_(min=0)


class SparseCoding(Baseline):
    """Filters of unit norm and codes that minimise |v - s W|^2 / 2 + penalty |s|_1; features max(±s, 0).

    Penalty and split are those of Coates & Ng (ICML 2011), whose objective is twice this one.
    """

    def __init__(
        self,
        n_components: int = 1600,
        *,
        penalty: float = 0.5,
        n_iter: int = 10,
        steps: int = 30,
        device: str = "auto",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.penalty = penalty
        self.n_iter = n_iter
        self.steps = steps
        self.device = device
        self.random_state = random_state

    @property
    def _n_features_out(self) -> int:
        return 2 * len(self.components_)

    def _learn(self, X: Tensor, W: Tensor) -> Tensor:
        W = _unit(W)
        for _ in range(self.n_iter):
            A, B = W.new_zeros(len(W), len(W)), torch.zeros_like(W)
            for part in torch.split(X, ROWS):
                s = sparse_codes(part, W, self.penalty, self.steps)
                A.addmm_(s.T, s)
                B.addmm_(s.T, part)
            W = _refit(W, A, B)
        return W

    def _encode(self, v: Tensor) -> Tensor:
        s = sparse_codes(v, self.components_, self.penalty, self.steps)
        return torch.cat([s.clamp(min=0), s.neg_().clamp_(min=0)], 1)


def sparse_codes(v: Tensor, W: Tensor, penalty: float, steps: int) -> Tensor:
    """Codes s close to the minimum of |v - s W|^2 / 2 + penalty |s|_1, (N, K), by accelerated proximal steps."""
    size = 1 / float(torch.linalg.eigvalsh(W.T @ W)[-1])
    s = ahead = v.new_zeros(len(v), len(W))
    t = 1.0
    for _ in range(steps):
        before, t, t_before = s, (1 + (1 + 4 * t * t) ** 0.5) / 2, t
        s = softshrink(torch.addmm(ahead, v - ahead @ W, W.T, alpha=size), size * penalty)
        ahead = torch.lerp(before, s, 1 + (t_before - 1) / t)
    return s


def _refit(W: Tensor, A: Tensor, B: Tensor) -> Tensor:
    """Each filter in turn to its minimum of the squared error given the others, on the unit ball; unused ones stay."""
    W, used = W.clone(), (A.diagonal() > 1e-6).nonzero().flatten().tolist()
    for j in used:
        W[j] += (B[j] - A[j] @ W) / A[j, j]
        W[j] /= W[j].norm().clamp_min(1)
    return _unit(W)


def _unit(W: Tensor) -> Tensor:
    return W.div(W.norm(dim=1, keepdim=True).clamp_min(1e-8))


BASELINES: dict[str, Any] = {"KMeans": KMeans, "SparseCoding": SparseCoding}
