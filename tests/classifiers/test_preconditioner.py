"""Matrices that spare steps: the same minimum by fewer products, and only where they pay."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from objectives import entropy, hinge
from sklearn.datasets import load_iris

from orbitpool import together
from orbitpool.classifiers import LinearSVM, SoftmaxRegression, base
from orbitpool.classifiers.design import Design, Rows
from orbitpool.classifiers.preconditioner import Kind, Preconditioner


def rows(X):
    """All of X, for one process."""
    return Rows.of(X, X.device, X.dtype, together.alone(len(X)))


@pytest.fixture
def solved(monkeypatch):
    """Every solution that a fit comes by, with the kind of preconditioner that was used last."""
    found, minimise = [], base.minimise

    def noted(design, loss, preconditioner, *options):
        found.append((minimise(design, loss, preconditioner, *options), preconditioner.kind))
        return found[-1][0]

    monkeypatch.setattr(base, "minimise", noted)
    return found


def products(solved):
    """How many products with X there have been since the last call."""
    total = sum(solution.n_products for solution, _ in solved)
    solved.clear()
    return total


@pytest.fixture(scope="module")
def correlated():
    """Features (800, 250) of variances from 1 to 1e-4 in directions that no feature has to itself; four classes."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(250, 250)))[0]
    X = 20 * rng.normal(size=(800, 250)) * np.logspace(0, -2, 250) @ directions + rng.normal(size=250)
    return X, (X[:, :4] + 5 * rng.normal(size=(800, 4))).argmax(1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classifier", [LinearSVM, SoftmaxRegression])
def test_a_matrix_spares_steps_and_leads_to_the_same_minimum(classifier, dtype, correlated, solved, monkeypatch):
    X, y = correlated[0].astype(dtype), correlated[1]
    objective = hinge if classifier is LinearSVM else entropy
    model = classifier([0.001, 0.01]).fit(X, y)
    assert all(kind is not Kind.DIAGONAL for _, kind in solved)
    few = products(solved)
    monkeypatch.setattr(Preconditioner, "_pays", lambda *_: False)
    plain = classifier([0.001, 0.01]).fit(X, y)
    assert all(kind is Kind.DIAGONAL for _, kind in solved)
    assert few < products(solved) / 3
    assert model.C_ == plain.C_
    assert_allclose(objective(model, X, y, model.C_), objective(plain, X, y, model.C_), rtol=1e-4)
    assert_allclose(model.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=0.003)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("kind", [Kind.SHARED, Kind.OWN])
def test_inverses_are_those_of_the_second_derivative(kind, standardize, correlated):
    """Of the mean one at a mass that has changed little, or of each problem's at its own weights."""
    X = torch.from_numpy(correlated[0])
    rng = torch.Generator().manual_seed(0)
    weights = torch.rand(2, 800, generator=rng, dtype=X.dtype)
    curvature = weights[:, None] * (torch.rand(2, 3, 800, generator=rng) < 0.7)
    penalty, V = torch.ones(1, 1, 251, dtype=X.dtype), torch.rand(2, 3, 251, generator=rng, dtype=X.dtype)
    design, whole = Design.of(rows(X), weights, standardize), Design.of(rows(X), weights[:1], standardize)
    preconditioner = Preconditioner(whole, weights[0])
    preconditioner.last = 10**6 if kind is Kind.OWN else 0
    inverse = preconditioner.at(design, penalty, curvature, torch.ones(2, 3, 1, dtype=torch.bool))
    assert preconditioner.kind is kind
    if kind is Kind.SHARED:
        design, share = whole, weights[:1] / weights[0].sum()
        curvature = share[:, None] * curvature.sum(-1).mean()
        again = preconditioner.at(design, penalty, 1.9 * curvature, torch.ones(1, 1, 1, dtype=torch.bool))
        assert again is inverse
        assert preconditioner.at(design, penalty, 2.1 * curvature, torch.ones(1, 1, 1, dtype=torch.bool)) is not inverse
        V = V.flatten(0, 1)[None]
    assert_allclose(inverse(design.collect(curvature * design.respond(V)) + penalty * V), V, rtol=1e-6)


def test_the_shared_matrix_is_made_once(correlated, monkeypatch):
    X, y = correlated
    made, gram = [], Design.gram
    monkeypatch.setattr(Design, "gram", lambda *a: made.append(a) or gram(*a))
    LinearSVM([0.0001, 0.001, 0.01], cv=4, standardize=True).fit(X, y)
    assert len(made) == 1


def test_a_matrix_without_a_root_is_done_without(correlated, solved, monkeypatch):
    X, y = correlated
    expected = LinearSVM(0.01, tol=1e-6).fit(X, y)
    solved.clear()
    monkeypatch.setattr(torch.linalg, "cholesky_ex", lambda M: (M, torch.ones(len(M))))
    model = LinearSVM(0.01, tol=1e-6).fit(X, y)
    assert all(kind is Kind.DIAGONAL for _, kind in solved)
    assert_allclose(model.coef_, expected.coef_, atol=1e-4)


def test_hard_problems_get_matrices_of_their_own(digits, labels, solved):
    """Raw pixels at a large C, where the rows that matter to one class are few and not those of another."""
    X = (255 * digits / digits.max()).astype(np.float32)
    model = LinearSVM(0.1).fit(X, labels)
    assert solved[-1][1] is Kind.OWN
    assert products(solved) < 200
    best = LinearSVM(0.1, tol=1e-9).fit(np.float64(X), labels)
    assert_allclose(hinge(model, X, labels, 0.1), hinge(best, X, labels, 0.1), rtol=1e-3)


def test_matrices_are_made_only_where_they_pay():
    iris = load_iris()
    small = Design.of(rows(torch.from_numpy(iris.data)), torch.ones(1, 150, dtype=torch.float64), False)
    wide = Design.of(rows(torch.zeros(100, 12_800)), torch.ones(1, 100), False)
    tall = Design.of(rows(torch.zeros(4000, 1600)), torch.ones(1, 4000), False)
    for design, steps, pays in [(small, 50, False), (wide, 10**9, False), (tall, 50, True), (tall, 5, False)]:
        n = design.X.part.n
        assert Preconditioner(design, torch.ones(n))._pays(torch.zeros(1, 10, n), 1, n, steps) is pays
