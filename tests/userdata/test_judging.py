"""Linear classifiers on features, judged on rows that they have not seen."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from orbitpool import LinearSVM
from orbitpool.userdata import judging
from orbitpool.userdata.judging import FILTERS, Judgement, judge


def test_classes_that_differ_are_told_apart_and_noise_is_not(said):
    y = np.repeat(["one", "two", ""], 40)
    rng = np.random.default_rng(0)
    apart, noise = rng.normal(size=(120, 4)) + 10 * (y == "two")[:, None], rng.normal(size=(120, 4))
    good = judge(apart, y.tolist(), 4, 0, "cpu")
    assert said[:2] == [
        "40 of 120 rows have no label and are left out",
        "[1/4] 60 rows to learn from, 20 to judge by",
    ]
    assert good.in_words() == [
        "accuracy 100.0 ± 0.0 % over 4 folds of 80 rows in 2 classes",
        f"the filters were {FILTERS}",
        "rows are the classes, columns what they were taken for",
        "      one   two",
        "one    40     0",
        "two     0    40",
    ]
    poor = judge(noise, y.tolist(), 4, 0, "cpu").as_json()
    assert poor["accuracy"] < 0.8
    assert poor["accuracy"] == pytest.approx(np.trace(poor["confusion"]) / 80)


def test_pieces_are_judged_as_the_whole_is():
    rng = np.random.default_rng(1)
    y = np.repeat(["one", "two", "three", ""], 30)
    Z = rng.normal(size=(120, 5)) + (y == "two")[:, None]
    order = rng.permutation(120)
    whole = judge(Z[order], y[order].tolist(), 3, 0, "cpu")
    pieces = judge(np.split(Z[order], [7, 50]), y[order].tolist(), 3, 0, "cpu")
    assert pieces.as_json() == whole.as_json()


@pytest.mark.parametrize("cut", [lambda Z: Z, lambda Z: np.split(Z, [7, 50])], ids=["whole", "pieces"])
def test_rows_without_weight_stay_out_of_what_is_learned(cut, monkeypatch):
    """Neither rows that are judged by nor those without a label move the scale, the choice of C or the coefficients."""
    fits = []

    class Watched(LinearSVM):
        def fit(self, X, y, sample_weight):
            fits.append((super().fit(X, y, sample_weight), sample_weight))
            return self

    monkeypatch.setattr(judging, "LinearSVM", Watched)
    rng = np.random.default_rng(2)
    y = rng.permutation(np.repeat(["one", "two", "three", ""], 30))
    Z = rng.normal(size=(120, 5)) + (y == "two")[:, None]
    judge(cut(Z), y.tolist(), 3, 0, "cpu")
    for fold, (expected, weight) in enumerate(fits[:3]):
        assert (weight == 0).sum() == 60  # a third of 90 with labels, and 30 without
        judge(cut(np.where(weight[:, None] == 0, 1000 * Z, Z)), y.tolist(), 3, 0, "cpu")
        found, same = fits[-3:][fold]
        assert_array_equal(same, weight)
        assert found.C_ == expected.C_
        assert_array_equal(found.coef_, expected.coef_)
        assert_array_equal(found.intercept_, expected.intercept_)


def test_of_many_classes_the_commonest_mistakes_are_named():
    confusion = 9 * np.eye(30, dtype=int)
    confusion[3, 7], confusion[29, 0] = 2, 5
    judged = Judgement([f"c{i}" for i in range(30)], [0.9, 0.8], [0.1, 0.1], confusion)
    assert judged.in_words() == [
        "accuracy 85.0 ± 5.0 % over 2 folds of 277 rows in 30 classes",
        f"the filters were {FILTERS}",
        "the commonest mistakes",
        "     5  c29 taken for c0",
        "     2  c3 taken for c7",
    ]


@pytest.mark.parametrize(
    ("labels", "folds", "says"),
    [
        (["a"] * 8, 2, "there are 1 classes; two are needed"),
        ([""] * 8, 2, "there are 0 classes"),
        (["a"] * 4 + ["b"] * 4, 5, "class 'a' has 4 rows, but 5 folds need 5, of which two are to choose C by"),
        (["a"] * 4 + ["b"] * 4, 1, "folds is 1; it must be a whole number, 2 or more"),
    ],
)
def test_too_little_to_judge_is_refused(labels, folds, says):
    with pytest.raises(ValueError, match=says):
        judge(np.zeros((8, 2)), labels, folds, 0, "cpu")
