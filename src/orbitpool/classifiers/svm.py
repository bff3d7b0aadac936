"""The linear support vector machine with squared hinge loss, each class against the rest."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor

from orbitpool.classifiers.base import LinearClassifier
from orbitpool.classifiers.losses import Loss, SquaredHinge
from orbitpool.learners import checks


class LinearSVM(LinearClassifier):
    """One-vs-rest linear classifier that minimises 0.5 |w|^2 + C sum_n max(0, 1 - y_n f(x_n))^2 for each class.

    The bias is the weight of a constant feature, and regularised, so that the minimum is scikit-learn's LinearSVC's.
    All classes, and all folds of a cross-validation, are solved at once by Newton's method with conjugate gradients, in
    the full precision of X's float type, and no copy of X is made on its own device; where it pays, they are
    preconditioned by matrices that have no more values than X, or than 2**26.

    Parameters
    ----------
    C : float or sequence of floats
        Weight of the loss; from a sequence, that of the best mean accuracy in cross-validation, the smallest of equals.
    cv : int, scikit-learn splitter or iterable of (train, test) rows
        Folds to choose C by; an int means stratified ones, shuffled if there is a `random_state`.
    standardize : bool
        Work on (x - mean) / sqrt(variance + 0.001 m) of each feature, where m is the mean variance of all; `coef_` and
        `intercept_` are for x as it is.
    tol : float
        Stop when each gradient's norm is below this share of that at zero, and the last full step was to
        gain less than this share of the objective.
    max_iter : int
        Newton steps at most, in all; a ConvergenceWarning says when they were too few.
    device : str or torch.device
        "auto" stays with a tensor, and takes a GPU for other data if there is one.
    random_state : int, RandomState or None
        Shuffles the folds.

    Attributes
    ----------
    classes_ : array (classes,)
    coef_ : array (classes, D), or (1, D) for two classes
    intercept_ : array (classes,), or (1,)
    C_ : float
    cv_results_ : dict of arrays 'C', 'mean_test_score' and 'std_test_score', or None if C was one number
    n_iter_ : int
        Newton steps of the last solution.
    """

    def __init__(
        self,
        C: Any = 1.0,
        *,
        cv: Any = 5,
        standardize: bool = False,
        tol: float = 1e-4,
        max_iter: int = 200,
        device: str | torch.device = "auto",
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.cv = cv
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        checks.one_of("standardize", self.standardize, (False, True))

    @property
    def _standardizes(self) -> bool:
        return bool(self.standardize)

    def _loss(self, member: Tensor, weight: Tensor) -> Loss:
        return SquaredHinge(2 * member - 1, weight)

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
