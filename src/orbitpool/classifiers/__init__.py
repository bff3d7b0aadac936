"""Linear classifiers that are solved to convergence, on the device of the data."""

from orbitpool.classifiers.softmax import SoftmaxRegression
from orbitpool.classifiers.svm import LinearSVM

__all__ = ["LinearSVM", "SoftmaxRegression"]
