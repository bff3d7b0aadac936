"""Linear classifiers against scikit-learn's, which solve the same problems one class after the other on a CPU."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from objectives import entropy, hinge
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from orbitpool.classifiers import LinearSVM, SoftmaxRegression
from orbitpool.kernels import full_precision
from orbitpool.kernels.precision import BACKENDS

CLASSIFIERS = [LinearSVM, SoftmaxRegression]
GRID = [0.001, 0.01, 0.1, 1.0]


@pytest.fixture(scope="module")
def noise():
    """Random features with labels that only partly follow from them: (400, 60), ten classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60))
    return X, (X[:, :10] + rng.normal(size=(400, 10))).argmax(1)


def reference(C):
    return LinearSVC(C=C, dual=False, tol=1e-8, max_iter=100_000)


@parametrize_with_checks(
    [
        LinearSVM(tol=1e-9),
        LinearSVM(standardize=True, tol=1e-9),
        LinearSVM([0.1, 1.0], cv=2, tol=1e-9),
        SoftmaxRegression(tol=1e-12),
        SoftmaxRegression([0.1, 1.0], cv=2, tol=1e-12),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks(estimator, check):
    """All of them, none expected to fail; `tol` is what lets weighted and repeated rows agree to 1e-7."""
    check(estimator)


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("data", ["digits", "noise"])
def test_the_svm_reaches_linear_svcs_minimum(data, n_classes, dtype, C, digits, labels, noise):
    X, y = (digits[:600], labels[:600]) if data == "digits" else noise
    X, y = X.astype(dtype), y if n_classes == 10 else y % 2
    model, other = LinearSVM(C).fit(X, y), reference(C).fit(X, y)
    assert_allclose(hinge(model, X, y, C), hinge(other, X, y, C), rtol=1e-3)
    assert model.coef_.shape == other.coef_.shape
    assert model.intercept_.shape == other.intercept_.shape
    assert model.decision_function(X).shape == other.decision_function(X).shape
    assert model.coef_.dtype == dtype


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_solver_that_is_cut_short_is_found_out(classifier, digits, labels):
    objective = hinge if classifier is LinearSVM else entropy
    with pytest.warns(ConvergenceWarning, match="did not converge: after max_iter=2 Newton steps"):
        short = classifier(10.0, max_iter=2).fit(digits, labels)
    full = classifier(10.0).fit(digits, labels)
    assert objective(short, digits, labels, 10.0) > 1.01 * objective(full, digits, labels, 10.0)
    assert short.n_iter_ == 2
    assert full.n_iter_ > 2


def test_ill_scaled_features_in_float32_reach_the_minimum(noise):
    """Scales from 0.01 to 100, and means that are far from zero."""
    X, y = noise
    X = ((X + 3) * np.logspace(-2, 2, X.shape[1])).astype(np.float32)
    for C in (0.01, 1.0):
        model = LinearSVM(C).fit(X, y)
        assert_allclose(hinge(model, X, y, C), hinge(reference(C).fit(np.float64(X), y), X, y, C), rtol=1e-3)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_weights_count_rows(classifier, noise):
    X, y = noise
    times = np.random.default_rng(1).integers(0, 3, len(y))
    weighted = classifier(0.1, tol=1e-9).fit(X, y, sample_weight=times)
    repeated = classifier(0.1, tol=1e-9).fit(np.repeat(X, times, 0), np.repeat(y, times))
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


def test_standardizing_equals_doing_it_before(digits, labels):
    mean, deviation = digits.mean(0), np.sqrt(digits.var(0) + 1e-3 * digits.var(0).mean())
    before = LinearSVM(0.1, tol=1e-9).fit((digits - mean) / deviation, labels)
    within = LinearSVM(0.1, standardize=True, tol=1e-9).fit(digits, labels)
    assert_allclose(
        within.decision_function(digits), before.decision_function((digits - mean) / deviation), rtol=1e-6, atol=1e-6
    )


def test_standardizing_in_float32_bears_means_far_from_zero(digits, labels):
    """At 150 deviations from zero rounding moves single responses by some 0.03, and the objective by 0.002 at most."""
    mean, deviation = digits.mean(0), np.sqrt(digits.var(0) + 1e-3 * digits.var(0).mean())
    scaled = (digits - mean) / deviation
    best = LinearSVM(0.1, tol=1e-9).fit(scaled, labels)
    model = LinearSVM(0.1, standardize=True).fit((digits + 50).astype(np.float32), labels)
    raw = np.float64(model.coef_)
    model.coef_, model.intercept_ = raw * deviation, model.intercept_ + raw @ (mean + 50)
    assert_allclose(hinge(model, scaled, labels, 0.1), hinge(best, scaled, labels, 0.1), rtol=5e-3)


@pytest.mark.parametrize("standardize", [False, True])
def test_cross_validation_scores_as_a_grid_search_does(standardize, digits, labels):
    """Folds are weights of 0 over the same rows, with their own statistics: the scores are those of separate fits."""
    X, y = digits[:500], labels[:500]
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    before = Standardizer() if standardize else FunctionTransformer()
    steps = make_pipeline(before, LinearSVC(dual=False, tol=1e-6, max_iter=10_000))
    search = GridSearchCV(steps, {"linearsvc__C": GRID}, cv=folds).fit(X, y)
    model = LinearSVM(GRID[::-1], cv=3, standardize=standardize, random_state=0).fit(X, y)
    assert_array_equal(model.cv_results_["C"], GRID)
    assert_allclose(model.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], atol=0.003)
    assert_allclose(model.cv_results_["std_test_score"], search.cv_results_["std_test_score"], atol=0.004)
    chosen = GRID.index(model.C_)
    assert search.cv_results_["mean_test_score"][chosen] >= search.best_score_ - 0.003
    again = LinearSVM(model.C_, standardize=standardize).fit(X, y)
    assert_allclose(model.decision_function(X), again.decision_function(X), atol=0.02)
    assert again.cv_results_ is None
    split = LinearSVM(GRID, cv=folds, standardize=standardize).fit(X, y)
    assert_array_equal(split.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"])


class Standardizer(StandardScaler):
    """Features divided by sqrt(variance + a thousandth of the mean variance)."""

    def transform(self, X):
        return (X - self.mean_) / np.sqrt(self.var_ + 1e-3 * self.var_.mean())


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_softmax_regression_reaches_logistic_regressions_minimum(n_classes, C, digits, labels):
    X, y = digits[:600], labels[:600] if n_classes == 10 else labels[:600] % 2
    other = LogisticRegression(C=C, tol=1e-8, max_iter=20_000).fit(X, y)
    for dtype in (np.float32, np.float64):
        model = SoftmaxRegression(C).fit(X.astype(dtype), y)
        assert_allclose(entropy(model, X, y, C), entropy(other, X, y, C), rtol=1e-4)
        assert model.coef_.shape == other.coef_.shape
    finer = SoftmaxRegression(C, tol=1e-6).fit(X, y)
    assert_allclose(finer.predict_proba(X), other.predict_proba(X), atol=1e-3)
    assert_allclose(np.exp(finer.predict_log_proba(X)), finer.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("classifier", [SoftmaxRegression(), LinearSVM(), LinearSVM(standardize=True)], ids=str)
def test_validation_data_choose(classifier, noise):
    X, y = noise
    grid = [1e-4, 1e-2, 1.0, 100.0]
    model = clone(classifier).set_params(C=grid).fit(X[:250], y[:250], X_valid=X[250:], y_valid=y[250:])
    scores = [clone(classifier).set_params(C=C).fit(X[:250], y[:250]).score(X[250:], y[250:]) for C in grid]
    assert_allclose(model.cv_results_["mean_test_score"], scores, atol=0.01)
    assert grid[int(np.argmax(model.cv_results_["mean_test_score"]))] == model.C_
    assert max(model.cv_results_["mean_test_score"]) == model.score(X[250:], y[250:])
    assert len(set(scores)) > 1


def test_softmax_cross_validation_scores_as_separate_fits_do(noise):
    X, y = noise
    model = SoftmaxRegression([0.01, 1.0], cv=4).fit(X, y)
    scores = [cross_val_score(LogisticRegression(C=C, max_iter=5000), X, y, cv=4).mean() for C in (0.01, 1.0)]
    assert_allclose(model.cv_results_["mean_test_score"], scores, atol=0.006)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_kinds_come_back_as_they_went_in(classifier, digits, labels):
    model = classifier(0.1).fit(digits, labels)
    for X, y in ((torch.from_numpy(digits), torch.from_numpy(labels)), (torch.from_numpy(digits), labels)):
        twin = clone(model).fit(X, y)
        assert_array_equal(twin.coef_, model.coef_)
        assert isinstance(twin.predict(X), torch.Tensor)
        assert isinstance(twin.decision_function(X), torch.Tensor)
        assert twin.score(X, y) == model.score(digits, labels) > 0.9
    assert isinstance(twin.predict(digits), np.ndarray)
    assert twin.decision_function(digits.astype(np.float32)).dtype == np.float32
    names = np.array(["nil", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])[labels]
    named = clone(model).fit(digits, names)
    assert list(named.classes_) == sorted(set(names))
    assert named.score(digits, names) == model.score(digits, labels)
    assert isinstance(named.predict(torch.from_numpy(digits)), np.ndarray)
    if classifier is SoftmaxRegression:
        assert isinstance(twin.predict_proba(torch.from_numpy(digits)), torch.Tensor)


def test_products_are_exact_whatever_the_process_allows(digits, labels):
    X = digits.astype(np.float32)
    expected = LinearSVM(0.1).fit(X, labels).coef_
    before, each = torch.get_float32_matmul_precision(), [backend.fp32_precision for backend in BACKENDS]
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", torch.bfloat16):
            assert_array_equal(LinearSVM(0.1).fit(X, labels).coef_, expected)
        with full_precision(torch.device("cpu")):
            assert {backend.fp32_precision for backend in BACKENDS} == {"ieee"}
        assert torch.get_float32_matmul_precision() == "medium"
        assert torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.set_float32_matmul_precision(before)
        for backend, precision in zip(BACKENDS, each, strict=True):  # not "ieee", which "highest" makes of "none"
            backend.fp32_precision = precision


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_nonsense_is_refused(classifier, digits, labels):
    X, y = digits[:100], labels[:100]
    for options, words in [
        ({"C": 0}, "C is 0; it must be a finite number greater than 0"),
        ({"C": [1.0, -1.0]}, r"C\[1\] is -1.0; it must be a finite number greater than 0"),
        ({"C": []}, r"C is \[\]; give a number greater than 0, or at least one"),
        ({"C": [1.0, 2.0], "cv": 1}, "cv is 1; it must be a whole number, 2 or more"),
        ({"C": [1.0, 2.0], "cv": 50}, "cv is 50 but the smallest class has 8 rows; .* lower cv"),
        ({"tol": 0.0}, "tol is 0.0; it must lie between 0 and 1"),
        ({"max_iter": 0}, "max_iter is 0; it must be a whole number, 1 or more"),
    ]:
        with pytest.raises(ValueError, match=words):
            classifier(**options).fit(X, y)
    model = classifier().fit(X, y)
    with pytest.raises(ValueError, match=r"y has only one class, .*3.*; give labels of at least 2"):
        classifier().fit(X, np.full(100, 3))
    with pytest.raises(ValueError, match=r"X has shape \(3,\) and torch.float32; give real \(N, features\)"):
        model.predict(torch.zeros(3))
    with pytest.raises(ValueError, match=r"X contains NaN or infinity; .* drop or fill"):
        model.predict(torch.full((3, 64), torch.nan))
    with pytest.raises(ValueError, match=r"X has 63 features, but .* is expecting 64"):
        model.predict(torch.zeros(3, 63))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier().fit(torch.from_numpy(X), y[:50])
    with pytest.raises(ValueError, match="sample_weight is zero for every row; give at least one"):
        classifier().fit(X, y, sample_weight=np.zeros(100))


def test_nonsense_of_their_own_is_refused(digits, labels):
    X, y = digits[:100], labels[:100]
    with pytest.raises(ValueError, match="standardize is 'yes'; choose one of False, True"):
        LinearSVM(standardize="yes").fit(X, y)
    with pytest.raises(ValueError, match="y_valid is None but X_valid is given; give both"):
        SoftmaxRegression().fit(X, y, X_valid=X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SoftmaxRegression().fit(X, y, X_valid=X, y_valid=y[:5])


def test_folds_may_be_any_splitter(noise):
    X, y = noise
    model = LinearSVM([0.01, 1.0], cv=KFold(3)).fit(X, y)
    scores = cross_val_score(LinearSVC(C=0.01, dual=False, tol=1e-6), X, y, cv=KFold(3))
    assert_allclose(model.cv_results_["mean_test_score"][0], scores.mean(), atol=0.006)


@pytest.mark.parametrize("Classifier", CLASSIFIERS)
def test_pieces_on_disk_give_what_they_give_together(Classifier, digits, labels, tmp_path):
    whole = Classifier(C=[0.01, 0.1], tol=1e-8).fit(digits, labels)
    for i, part in enumerate(np.array_split(digits, 5)):
        np.save(tmp_path / f"{i}.npy", part)
    pieces = [np.load(tmp_path / f"{i}.npy", mmap_mode="r") for i in range(5)]
    model = clone(whole).fit(pieces, labels)
    assert model.C_ == whole.C_
    assert_allclose(model.coef_, whole.coef_, rtol=1e-4, atol=1e-6)
    assert_array_equal(model.predict(pieces), whole.predict(digits))


def test_pieces_of_other_widths_are_refused(digits, labels):
    with pytest.raises(ValueError, match="every piece as many features"):
        LinearSVM().fit([digits[:900], digits[900:, :-1]], labels)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        LinearSVM().fit([digits[:900]], labels)
