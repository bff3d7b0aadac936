"""Two kinds of features, one beside the other."""

from __future__ import annotations

from typing import Any, Self

import torch
from sklearn.base import BaseEstimator, clone
from torch import Tensor


class Beside(BaseEstimator):  # type: ignore[misc]
    """What scikit-learn's FeatureUnion is, for features that stay on a GPU."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    def fit(self, X: Any) -> Self:
        """Learn both from the same images."""
        self.first_, self.second_ = clone(self.first).fit(X), clone(self.second).fit(X)
        return self

    def transform(self, X: Tensor) -> Tensor:
        """Features of the first kind and then of the second, (N, F)."""
        return torch.cat([self.first_.transform(X), self.second_.transform(X)], 1)

    def _check(self) -> None:
        self.first._check()
        self.second._check()
