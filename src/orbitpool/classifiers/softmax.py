"""Multinomial logistic regression."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor

from orbitpool.classifiers.base import LinearClassifier, _like
from orbitpool.classifiers.losses import CrossEntropy, Loss, logits


class SoftmaxRegression(LinearClassifier):
    """Linear classifier that minimises 0.5 |W|^2 + C sum_n -log P(y_n), with P the softmax of the responses.

    The intercept is not regularised, and two classes share one column, so that the minimum is scikit-learn's
    LogisticRegression's. Solved as `LinearSVM` is.

    Parameters
    ----------
    C : float or sequence of floats
        Weight of the loss; from a sequence, that of the best accuracy on validation data given to `fit`, or of the best
        mean accuracy in cross-validation; the smallest of equals.
    cv, tol, max_iter, device, random_state
        As in `LinearSVM`.

    Attributes
    ----------
    classes_, coef_, intercept_, C_, cv_results_, n_iter_
        As in `LinearSVM`.
    """

    def __init__(
        self,
        C: Any = 1.0,
        *,
        cv: Any = 5,
        tol: float = 1e-4,
        max_iter: int = 200,
        device: str | torch.device = "auto",
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.random_state = random_state

    def _loss(self, member: Tensor, weight: Tensor) -> Loss:
        return CrossEntropy(member, weight)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_valid: Any = None, y_valid: Any = None) -> Self:
        """Learn to tell classes apart.

        Parameters
        ----------
        X : array or tensor (N, D), or a list of such with N rows in all, which need not fit into memory together
        y : N labels, numbers or strings
        sample_weight : N weights of the loss, 0 or more, or None for 1
        X_valid, y_valid : inputs and labels to choose C by instead of cross-validation; they are not learned from

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, X_valid, y_valid)

    def predict_log_proba(self, X: Any) -> Any:
        """The log probability of each class, (N, classes)."""
        return _like(X, logits(self._respond(X).T).log_softmax(0).T)

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, (N, classes)."""
        return _like(X, logits(self._respond(X).T).softmax(0).T)
