"""What the classifiers minimise, and scikit-learn's as well."""

import numpy as np


def hinge(model, X, y, C):
    """The objective that LinearSVC and LinearSVM share, summed over classes."""
    W, b = np.float64(model.coef_), np.float64(model.intercept_)
    columns = model.classes_ if len(W) > 1 else model.classes_[1:]
    short = np.maximum(0, 1 - np.where(y[:, None] == columns, 1, -1) * (np.float64(X) @ W.T + b))
    return 0.5 * (W**2).sum() + 0.5 * (b**2).sum() + C * (short**2).sum()


def entropy(model, X, y, C):
    """The objective that LogisticRegression and SoftmaxRegression share."""
    F = np.float64(X) @ np.float64(model.coef_).T + np.float64(model.intercept_)
    F = np.hstack([np.zeros_like(F), F]) if F.shape[1] == 1 else F
    right = np.searchsorted(model.classes_, y)
    losses = np.logaddexp.reduce(F, 1) - F[np.arange(len(F)), right]
    return 0.5 * (np.float64(model.coef_) ** 2).sum() + C * losses.sum()
