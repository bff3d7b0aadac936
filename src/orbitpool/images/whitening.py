"""Contrast normalisation and ZCA whitening of patches, as scikit-learn transformers and as torch functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from orbitpool import together
from orbitpool.learners.checks import at_least

CONTRAST = 10 / 255**2  # authors' published code: variance + 10 for pixels of 0-255
FLOOR = 0.1  # authors' published code: added to the eigenvalues


def normalize_contrast(x: Tensor, eps: float) -> Tensor:
    """Each row less its mean, over sqrt(its variance + eps), (N, D)."""
    centred = x - x.mean(1, keepdim=True)
    return centred / centred.square().mean(1, keepdim=True).add_(eps).sqrt_()


def whitening(x: Tensor, eps: float, orders: Sequence[Tensor] = ()) -> tuple[Tensor, Tensor]:
    """Mean (D,) and symmetric whitening matrix (D, D) of rows; eps is added to the eigenvalues of the covariance.

    With orders (D,), they are those of the rows in all these orders of their columns. If the orders are quarter turns,
    a patch that is turned and whitened is the same as one that is whitened and turned.
    """
    together.check_rows("X", x)
    part = together.part(len(x))
    x = x[part.own]
    mean = part.mean(x.mean(0))
    if orders:
        mean = torch.stack([mean[order] for order in orders]).mean(0)
    centred = (x - mean).double()
    covariance = part.mean(centred.T @ centred / len(x))
    if orders:
        covariance = sum((covariance[o][:, o] for o in orders), torch.zeros_like(covariance)) / len(orders)
    values, vectors = torch.linalg.eigh(covariance)
    P = (vectors / (values.clamp_min(0) + eps).sqrt()) @ vectors.T
    together.same_(P)
    return mean, P.to(x.dtype)


class ContrastNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Take each row's mean away and divide by its standard deviation.

    Parameters
    ----------
    eps : float
        Added to the variance, so that flat patches stay small; for pixels of 0-1.
    """

    def __init__(self, eps: float = CONTRAST) -> None:
        self.eps = eps

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the input; there is nothing to learn."""
        at_least("eps", self.eps, 0)
        validate_data(self, X, dtype=[np.float64, np.float32])
        return self

    def transform(self, X: Any) -> Any:
        """Rows of mean 0 and variance near 1, (N, D)."""
        check_is_fitted(self, "n_features_in_")
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return normalize_contrast(torch.from_numpy(np.array(X)), self.eps).numpy()


class ZCA(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Whiten: no two features correlated, all of unit variance, as near to the original as that can be.

    Parameters
    ----------
    eps : float
        Added to the eigenvalues of the covariance, so that noise is not blown up.

    Attributes
    ----------
    mean_ : array (D,)
    whitening_ : array (D, D)
    """

    def __init__(self, eps: float = FLOOR) -> None:
        self.eps = eps

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn mean and covariance."""
        at_least("eps", self.eps, 0)
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        mean, P = whitening(torch.from_numpy(np.array(X)), self.eps)
        self.mean_, self.whitening_ = mean.numpy(), P.numpy()
        return self

    def transform(self, X: Any) -> Any:
        """Whitened rows, (N, D)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return (X - self.mean_) @ self.whitening_
