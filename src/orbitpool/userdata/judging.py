"""How well a linear classifier tells classes apart by their features, judged on rows that it has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedKFold

from orbitpool.classifiers import LinearSVM
from orbitpool.learners.checks import whole
from orbitpool.progress import say, task

STRENGTHS = (0.0003, 0.003, 0.03)  # values of C, chosen among inside each training set
FILTERS = "learned without labels from all that fit was given: the folds judge the classifier, not the filters"
MANY = 20  # classes whose confusion does not fit on a screen


@dataclass(frozen=True)
class Judgement:
    """Accuracy on each held-out fold, the C chosen for it, and what was taken for what, (K, K), the truth in rows."""

    classes: list[str]
    accuracies: list[float]
    chosen: list[float]
    confusion: NDArray[np.int64]

    def in_words(self) -> list[str]:
        """Accuracy, what it is of, and what was taken for what: all of it, or the commonest where classes are many."""
        mean, spread = 100 * np.mean(self.accuracies), 100 * np.std(self.accuracies)
        rows, many = int(self.confusion.sum()), len(self.classes) > MANY
        first = (
            f"accuracy {mean:.1f} ± {spread:.1f} % over {len(self.accuracies)} folds of {rows:,} rows "
            f"in {len(self.classes)} classes"
        )
        return [first, f"the filters were {FILTERS}", *(self._commonest() if many else self._matrix())]

    def _matrix(self) -> list[str]:
        width = max(map(len, self.classes))
        cell = max(6, min(width, 12) + 1)
        head = " " * width + "".join(f"{name[: cell - 1]:>{cell}}" for name in self.classes)
        lines = [
            f"{name:<{width}}" + "".join(f"{count:>{cell}}" for count in row)
            for name, row in zip(self.classes, self.confusion.tolist(), strict=True)
        ]
        return ["rows are the classes, columns what they were taken for", head, *lines]

    def _commonest(self) -> list[str]:
        wrong = self.confusion - np.diag(np.diag(self.confusion))
        true, taken = np.unravel_index(np.argsort(-wrong, axis=None, kind="stable")[:MANY], wrong.shape)
        pairs = zip(true.tolist(), taken.tolist(), strict=True)
        lines = [f"{wrong[i, j]:>6}  {self.classes[i]} taken for {self.classes[j]}" for i, j in pairs if wrong[i, j]]
        return ["the commonest mistakes", *lines]

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "accuracy": float(np.mean(self.accuracies)),
            "std": float(np.std(self.accuracies)),
            "folds": self.accuracies,
            "C": self.chosen,
            "classes": self.classes,
            "confusion": self.confusion.tolist(),
            "filters": FILTERS,
        }


def judge(Z: NDArray[Any] | list[NDArray[Any]], labels: list[str], folds: int, seed: int, device: str) -> Judgement:
    """Cross-validate a linear SVM on features (N, F), or on pieces of them, with N labels, "" where none is known.

    No rows are copied, so that pieces may be mapped files: rows that are not to be learned from have no weight.
    """
    whole("folds", folds, 2)
    y = np.array(labels)
    known = np.flatnonzero(y != "")
    classes, counts = np.unique(y[known], return_counts=True)
    _check_classes(classes, counts, folds)
    if len(known) < len(y):
        say(f"{len(y) - len(known):,} of {len(y):,} rows have no label and are left out")
    y[y == ""] = classes[0]  # as good as any
    accuracies, chosen, guessed = [], [], np.empty_like(y)
    with task("classify", folds) as progress:
        for train, test in _split(known, y, folds, seed):
            progress.step(f"{len(train):,} rows to learn from, {len(test):,} to judge by")
            within = list(_split(train, y, min(3, _fewest(y[train])), seed))
            svm = LinearSVM(STRENGTHS, cv=within, standardize=True, tol=1e-3, device=device)
            svm.fit(Z, y, sample_weight=np.isin(np.arange(len(y)), train).astype(float))
            guessed[test] = svm.predict(Z)[test]
            accuracies.append(float((guessed[test] == y[test]).mean()))
            chosen.append(float(svm.C_))
    confusion = confusion_matrix(y[known], guessed[known], labels=classes)
    return Judgement(classes.tolist(), accuracies, chosen, confusion)


def _split(rows: NDArray[Any], y: NDArray[Any], folds: int, seed: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Those of some rows to learn from and those to judge by, for every fold."""
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(rows, y[rows]):
        yield rows[train], rows[test]


def _fewest(y: NDArray[Any]) -> int:
    return int(np.unique(y, return_counts=True)[1].min())


def _check_classes(classes: NDArray[Any], counts: NDArray[Any], folds: int) -> None:
    """Raise ValueError unless there are classes to tell apart, with enough rows for every fold."""
    if len(classes) < 2:
        raise ValueError(
            f"there are {len(classes)} classes; two are needed: put images into class folders, or give a column label"
        )
    least = max(folds, 4)  # so that two are left to choose C by
    if counts.min() < least:
        name = str(classes[counts.argmin()])
        raise ValueError(
            f"class {name!r} has {counts.min()} rows, but {folds} folds need {least}, of which two are to choose C by: "
            f"give more of it, leave it out{', or take fewer folds' if folds > 4 else ''}"
        )
