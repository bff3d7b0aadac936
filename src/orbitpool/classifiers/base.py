"""What the linear classifiers share: data and labels at the edge, the choice of C, and scikit-learn's conventions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, validate_data
from torch import Tensor

from orbitpool import together
from orbitpool.classifiers.design import CHUNK, Design, Rows, chunk_rows
from orbitpool.classifiers.losses import Loss, logits
from orbitpool.classifiers.newton import Solution, minimise
from orbitpool.classifiers.preconditioner import Preconditioner
from orbitpool.kernels import choose_device, full_precision
from orbitpool.learners import checks
from orbitpool.learners.sources import shared, working_dtype

ON_THE_WAY = 0.1  # tolerance for the values of C that only lead to the one asked for
SMALLEST_SHARE = 2.0**-20  # of C, to lead to it from


class LinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear responses to the features of each row, one a class; a subclass brings the loss."""

    classes_: Any
    n_features_in_: int
    cv_results_: dict[str, Any] | None

    def _loss(self, member: Tensor, weight: Tensor) -> Loss:
        """The loss of responses, from membership (1, K, N) in each class that has a column, and weights (B, 1, N)."""
        raise AssertionError("a subclass has its own loss")

    @property
    def _standardizes(self) -> bool:
        return False

    def _check(self) -> None:
        """Raise ValueError for parameters that make no sense."""
        if np.ndim(self.C) == 0:
            checks.above("C", self.C, 0)
        elif len(self.C) == 0:
            raise ValueError(f"C is {self.C!r}; give a number greater than 0, or at least one to choose from")
        for i, value in enumerate(self.C if np.ndim(self.C) else ()):
            checks.above(f"C[{i}]", value, 0)
        if isinstance(self.cv, str) or not (hasattr(self.cv, "split") or isinstance(self.cv, Iterable)):
            checks.whole("cv", self.cv, 2)
        checks.within("tol", self.tol, 0, 1)
        checks.whole("max_iter", self.max_iter)

    def _fit(self, X: Any, y: Any, sample_weight: Any, X_valid: Any, y_valid: Any) -> Self:
        """Learn from (N, D) inputs and N labels; C is chosen on other inputs and labels, or by cross-validation."""
        self._check()
        if (X_valid is None) != (y_valid is None):
            given, missing = ("X_valid", "y_valid") if y_valid is None else ("y_valid", "X_valid")
            raise ValueError(f"{missing} is None but {given} is given; give both to choose C by, or neither")
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None; give N labels")
        X, y = self._inputs(X, _numpy(y))
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]!r}; give labels of at least 2 classes")
        device, dtype = self._place(X)
        weight = np.ones(len(y)) if sample_weight is None else _weights(sample_weight, y)
        judged = None if X_valid is None else (self._inputs(X_valid), _numpy(y_valid))
        part = _share(X, codes)
        with torch.no_grad(), full_precision(device):
            rows = Rows.of(_tensor(X), device, dtype, part).resident()
            weights = torch.as_tensor(weight[part.own], device=device)[None].to(dtype)
            task = _Task(self, rows, torch.as_tensor(codes[part.own], device=device), len(self.classes_), weights)
            if judged is not None:
                self._adopt(*self._choose_on(task, _tensor(judged[0]), judged[1]))
                return self
            C, W = float(self.C) if np.ndim(self.C) == 0 else None, None
            self.cv_results_ = None
            if C is None:
                C, W = self._choose(task, weights, y)
            self._adopt(C, task.whole.design, task.whole.solve(C, W))
        return self

    def _adopt(self, C: float, design: Design, solution: Solution) -> None:
        """Make a solution the fitted model, and warn if it is none."""
        coefficients, intercept = design.raw(solution.W)
        together.same_(coefficients, intercept)
        self.C_, self.n_iter_ = C, solution.n_iter
        self.coef_, self.intercept_ = coefficients[0].cpu().numpy(), intercept[0, :, 0].cpu().numpy()
        if not solution.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge: after max_iter={self.max_iter} Newton steps at C={C:g} a "
                f"gradient is at {solution.remaining:.1e} of its start (tol={self.tol:g}); raise max_iter or tol, or "
                "scale the features alike",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _choose(self, task: _Task, weights: Tensor, y: Any) -> tuple[float, Tensor]:
        """The C of the best mean accuracy on held-out folds, the smallest of equals, and a start (1, K, D + 1)."""
        part = task.X.part
        train, test = (part.same_(fold)[:, part.own] for fold in self._folds(y, weights))
        judged, tiny = test * weights, torch.finfo(weights.dtype).tiny
        problem, W, best, scores = task.weighted(train * weights), None, None, []
        for C in self._grid():
            solution = problem.solve(C, W)
            W = solution.W
            right = (_winners(solution.F) == task.codes) * judged
            scores.append((task.X.total(right) / task.X.total(judged).clamp_min(tiny))[:, 0].cpu().numpy())
            better = np.mean(scores[-1]) > max((np.mean(s) for s in scores[:-1]), default=-1.0)
            if part.same_(torch.tensor(better)):
                best = (C, W.mean(0, keepdim=True))
        self._record(scores)
        assert best is not None
        return best

    def _choose_on(self, task: _Task, X: Any, y: Any) -> tuple[float, Design, Solution]:
        """The C of the best accuracy on other rows, the smallest of equals, with the design and solution there."""
        check_consistent_length(range(sum(map(len, X)) if isinstance(X, list) else len(X)), y)
        problem, W, best, scores = task.whole, None, None, []
        part = _share(X, np.unique(y, return_inverse=True)[1], "X_valid, or y_valid,")
        unseen, own = problem.design.on(X, part), np.asarray(y)[part.own]
        for C in self._grid():
            solution = problem.solve(C, W)
            W = solution.W
            labels = self.classes_[_winners(unseen.respond(W))[0].cpu().numpy()]
            right = torch.tensor([np.sum(labels == own)])
            part.sum_(right)
            scores.append(right.numpy() / part.n)
            if best is None or scores[-1] > best[0]:
                best = (scores[-1], C, solution)
        self._record(scores)
        assert best is not None
        return best[1], problem.design, best[2]

    def _grid(self) -> list[float]:
        return sorted(float(value) for value in np.ravel(self.C))

    def _record(self, scores: Sequence[Any]) -> None:
        self.cv_results_ = {
            "C": np.array(self._grid()),
            "mean_test_score": np.array([np.mean(s) for s in scores]),
            "std_test_score": np.array([np.std(s) for s in scores]),
        }

    def _folds(self, y: Any, like: Tensor) -> tuple[Tensor, Tensor]:
        """Which rows each fold learns from and which it is judged on, (folds, N) each: 0 and 1, False and True."""
        cv = self.cv
        if isinstance(cv, Integral):
            cv = int(cv)
            smallest = int(np.unique(y, return_counts=True)[1].min())
            if smallest < cv:
                raise ValueError(
                    f"cv is {cv} but the smallest class has {smallest} rows; a fold needs a row of each class: "
                    "lower cv or give C as one number"
                )
            shuffle = self.random_state is not None
            cv = StratifiedKFold(cv, shuffle=shuffle, random_state=self.random_state)
        splits = list(check_cv(cv, y, classifier=True).split(np.zeros(len(y)), y))
        parts = np.zeros((2, len(splits), len(y)), bool)
        for fold, (train, test) in enumerate(splits):
            parts[0, fold, train] = parts[1, fold, test] = True
        train, test = torch.as_tensor(parts, device=like.device)
        return train.to(like.dtype), test

    def _place(self, X: Any) -> tuple[torch.device, torch.dtype]:
        """The device and the float type to work with on checked inputs."""
        pieces = X if isinstance(X, list) else [X]
        dtypes = {working_dtype(x) for x in pieces}
        wish = None if isinstance(X, list) else X  # pieces are brought to a GPU one after the other
        return choose_device(self.device, wish), torch.float64 if torch.float64 in dtypes else torch.float32

    def _inputs(self, X: Any, y: Any = None) -> Any:
        """X as (N, D), a NumPy array, a tensor or a list of tensors, checked but not converted; with y, (X, y)."""
        if _in_pieces(X):
            return self._checked_pieces([_tensor(x) for x in X], y)
        if not isinstance(X, Tensor):
            if y is None:
                return validate_data(self, X, reset=False, dtype="numeric")
            X, y = validate_data(self, X, y, dtype="numeric")
            check_classification_targets(y)
            return X, y
        found = self._checked_pieces([X], y)
        return found[0] if y is None else (found[0][0], found[1])

    def _checked_pieces(self, pieces: list[Tensor], y: Any = None) -> Any:
        """Tensors (n, D) that follow each other, and labels of all their rows, if there are."""
        for X in pieces:
            if X.ndim != 2 or 0 in X.shape or X.is_complex() or X.shape[1] != pieces[0].shape[1]:
                raise ValueError(
                    f"X has shape {tuple(X.shape)} and {X.dtype}; give real (N, features), none of them 0, and in "
                    "every piece as many features"
                )
            if not bool(torch.stack([x.isfinite().all() for x in torch.split(X, chunk_rows(X))]).all()):
                raise ValueError(
                    "X contains NaN or infinity; every value must be finite: drop or fill those rows first"
                )
        width, rows = int(pieces[0].shape[1]), sum(map(len, pieces))
        if y is None:
            if width != self.n_features_in_:
                raise ValueError(
                    f"X has {width} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
            return pieces
        y = column_or_1d(y, warn=True)
        check_consistent_length(range(rows), y)
        check_classification_targets(y)
        self.n_features_in_ = width
        return pieces, y

    def _respond(self, X: Any) -> Tensor:
        """The response to each row, (N, K), where X is or where it is worked on."""
        check_is_fitted(self)
        X = self._inputs(X)
        device, dtype = self._place(X)
        rows = _tensor(X)
        coefficients, intercept = (torch.as_tensor(a).to(device, dtype) for a in (self.coef_, self.intercept_))
        with torch.no_grad(), full_precision(device):
            pieces = [rows] if isinstance(rows, Tensor) else rows
            together.check_rows("X", *pieces)
            part = together.part(sum(map(len, pieces)))
            parts = [x @ coefficients.T for x in Rows.of(pieces, device, dtype, part, CHUNK)]
            return part.gather(torch.cat(parts).add_(intercept)).to(pieces[0].device)

    def decision_function(self, X: Any) -> Any:
        """The response to each row, (N, classes), or (N,) for two classes: that of the second."""
        F = self._respond(X)
        return _like(X, F[:, 0] if F.shape[1] == 1 else F)

    def predict(self, X: Any) -> Any:
        """The label of each row, (N,): a tensor for a tensor, if labels are numbers."""
        winners = _winners(self._respond(X).T[None])[0]
        if isinstance(X, Tensor) and self.classes_.dtype.kind in "biuf":
            return torch.as_tensor(self.classes_).to(winners.device)[winners]
        return self.classes_[winners.cpu().numpy()]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows with the right label."""
        weight = None if sample_weight is None else _numpy(sample_weight)
        return float(accuracy_score(_numpy(y), _numpy(self.predict(X)), sample_weight=weight))


class _Task:
    """Rows on their device with the number of each row's class, and their weights (1, N)."""

    def __init__(self, model: LinearClassifier, X: Rows, codes: Tensor, n_classes: int, weights: Tensor) -> None:
        self.model, self.X, self.codes = model, X, codes
        columns = torch.arange(n_classes, device=codes.device)[1 if n_classes == 2 else 0 :]
        self.member = (columns[:, None] == codes)[None]
        self.whole = self.weighted(weights)
        self.preconditioner = Preconditioner(self.whole.design, weights[0])

    def weighted(self, weights: Tensor) -> _Weighted:
        """The problems of each row of (B, N) weights."""
        return _Weighted(self, weights, Design.of(self.X, weights, self.model._standardizes))


class _Weighted:
    """One problem for each of B weightings of the same rows; what does not depend on C is worked out once."""

    def __init__(self, task: _Task, weights: Tensor, design: Design) -> None:
        self.task, self.weights, self.design = task, weights, design

    def solve(self, C: float, W: Tensor | None) -> Solution:
        """The solution at C, from a start W (B, K, D + 1), or from zero by way of smaller values of C."""
        model, weights, preconditioner = self.task.model, self.weights[:, None], self.task.preconditioner
        member = self.task.member.to(weights.dtype)
        loss, share, steps = model._loss(member, C * weights), 1.0, 0
        if W is None:
            W = weights.new_zeros(len(weights), member.shape[1], self.task.X.width + 1)
            strength = C * float((self.task.X.total(weights)[..., 0] * self.design.moment.sum(-1)).max())
            share = max(loss.gentle / strength, SMALLEST_SHARE)
        while share < 1 and steps < model.max_iter:
            smaller, most = model._loss(member, share * C * weights), min(2, model.max_iter - steps)
            near = minimise(self.design, smaller, preconditioner, W, ON_THE_WAY, most)
            W, share, steps = near.W, share * 2, steps + near.n_iter
        solution = minimise(self.design, loss, preconditioner, W, model.tol, int(model.max_iter) - steps)
        return replace(solution, n_iter=steps + solution.n_iter)


def _winners(F: Tensor) -> Tensor:
    """The number of the class of each row, (B, N), from responses (B, K, N)."""
    return logits(F).argmax(-2)


def _numpy(a: Any) -> Any:
    return a.detach().cpu().numpy() if isinstance(a, Tensor) else a


def _in_pieces(X: Any) -> bool:
    """Whether X is a list of arrays or tensors (n, D), such as mapped files, that follow each other."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(getattr(x, "ndim", 0) == 2 for x in X)


def _share(X: Any, codes: Any, what: str = "X, or y,") -> together.Part:
    """The rows that are this process's, if all processes were given the same."""
    pieces, n = X if isinstance(X, list) else [X], len(codes)
    if together.processes() == 1:
        return together.alone(n)
    together.check_rows(what, *pieces, labels=int((codes * np.arange(1, n + 1)).sum()))
    part = together.part(n)
    return together.alone(n) if part.whole else part


def _tensor(X: Any) -> Any:
    """X, or each piece of it, as a tensor that shares its memory where it can."""
    if isinstance(X, list):
        return [_tensor(x) for x in X]
    if isinstance(X, Tensor):
        return X.detach()
    return shared(X)


def _like(X: Any, result: Tensor) -> Any:
    return result if isinstance(X, Tensor) else result.cpu().numpy()


def _weights(sample_weight: Any, y: Any) -> Any:
    """Checked weights of the rows, (N,)."""
    weight = _check_sample_weight(
        _numpy(sample_weight), y, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=True
    )
    if not weight.any():
        raise ValueError("sample_weight is zero for every row; give at least one row a weight greater than 0")
    return weight
