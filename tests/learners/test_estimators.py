"""Every learner as a scikit-learn estimator and a PyTorch citizen."""

import pickle
from math import pi

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from orbitpool import TIOMP, TIRBM, TIAutoencoder
from orbitpool import transforms as T

LEARNERS = [TIRBM, TIAutoencoder, TIOMP]
TURNS = T.rotations(8, count=4, step=pi / 2)


@parametrize_with_checks([TIRBM(4), TIRBM(4, visible="gaussian", learning_rate=1e-4), TIAutoencoder(4), TIOMP(4)])
@pytest.mark.filterwarnings("ignore:inputs range from", "ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks(estimator, check):
    """All of them, none expected to fail: learning is random by seed alone, and every method is deterministic.

    Gaussian units get a small rate because the checks give inputs of any scale, which the model is not made for.
    """
    check(estimator)


@pytest.mark.parametrize("learner", LEARNERS)
def test_poses_make_turned_digits_easier_to_tell_apart(learner, turned_digits, capsys):
    """With a linear classifier: the plain model's error is at least halved, by far for each learner."""
    data, options = turned_digits, {"n_components": 100, "n_iter": 20, "random_state": 0}
    options |= {} if learner is TIOMP else {"batch_size": 20}
    errors = []
    for transforms in (None, T.rotations(16, count=16, step=pi / 8)):
        classifier = make_pipeline(
            learner(transforms=transforms, **options), StandardScaler(), LogisticRegression(C=0.1, max_iter=2000)
        )
        errors.append(1 - classifier.fit(data.X_train, data.y_train).score(data.X_test, data.y_test))
    with capsys.disabled():
        print(f"\n{learner.__name__}: error on turned digits {errors[0]:.1%} with one pose, {errors[1]:.1%} with 16")
    assert errors[1] < errors[0] / 2
    assert errors[1] < 0.1


@pytest.mark.parametrize("learner", LEARNERS)
def test_it_works_in_scikit_learns_tools(learner, digits):
    y = load_digits().target
    model = learner(8, TURNS, n_iter=1, random_state=0)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    search = GridSearchCV(
        make_pipeline(model, LogisticRegression(max_iter=5000)),
        {f"{learner.__name__.lower()}__n_components": [4, 8]},
        cv=2,
    )
    assert search.fit(digits[:200], y[:200]).best_score_ > 0.2
    unsupervised = GridSearchCV(model, {"n_iter": [1, 4]}, cv=2).fit(digits[:400])
    assert unsupervised.best_params_ == {"n_iter": 4}
    frame = model.set_output(transform="pandas").fit_transform(digits[:50])
    assert list(frame.columns) == [f"{learner.__name__.lower()}{i}" for i in range(frame.shape[1])]
    assert list(model.get_feature_names_out()) == list(frame.columns)
    thawed = pickle.loads(pickle.dumps(model))
    assert_array_equal(thawed.transform(digits[:50]), frame)
    assert_array_equal(thawed.partial_fit(digits[:50]).components_, model.partial_fit(digits[:50]).components_)


@pytest.mark.parametrize("learner", LEARNERS)
def test_arrays_come_back_as_they_went_in(learner, digits):
    model = learner(6, TURNS, n_iter=1, random_state=0).fit(digits)
    expected = model.transform(digits)
    assert expected.dtype == np.float64
    assert model.transform(digits.astype(np.float32)).dtype == np.float32
    tensor = model.transform(torch.from_numpy(digits))
    assert isinstance(tensor, torch.Tensor)
    assert_array_equal(tensor, expected)
    assert_array_equal(model.transform(digits.reshape(-1, 8, 8)), expected)
    assert_array_equal(model.transform(digits.reshape(-1, 8, 8, 1)), expected)
    bytes_in = (digits * 16).astype(np.uint8)
    assert_allclose(model.transform(bytes_in), model.transform(bytes_in.astype(np.float32)))


@pytest.mark.parametrize("learner", LEARNERS)
def test_channels_share_their_poses(learner):
    """Colour images: one filter covers all channels, which are transformed alike."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 4, 4, 3)).astype(np.float32)
    model = learner(5, T.rotations(4, count=4, step=pi / 2), n_iter=2, random_state=0).fit(X)
    assert model.components_.shape == (5, 48)
    if learner is not TIOMP:
        model.intercept_hidden_[:] = model.intercept_hidden_.mean(1, keepdims=True)
    assert_allclose(model.transform(np.rot90(X, 1, (1, 2))), model.transform(X), atol=1e-5)


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_same_seed_gives_the_same_bits(learner, digits):
    first, second = (learner(8, TURNS, n_iter=2, random_state=3).fit(digits) for _ in range(2))
    assert_array_equal(first.components_, second.components_)
    assert np.abs(first.components_ - learner(8, TURNS, n_iter=2, random_state=4).fit(digits).components_).max() > 1e-3


@pytest.mark.parametrize("learner", LEARNERS)
def test_bad_inputs_are_refused(learner, digits):
    model = learner(4, n_iter=1, random_state=0).fit(digits)
    with pytest.raises(ValueError, match=r"X has shape \(3,\); give \(N, features\)"):
        model.fit(torch.zeros(3))
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.fit(torch.full((3, 64), torch.nan))
    with pytest.raises(ValueError, match=r"X has 63 features, but .* is expecting 64"):
        model.transform(torch.zeros(3, 63))
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.transform(torch.full((3, 64), torch.inf))
    with pytest.raises(
        ValueError, match=r"images have shape \(3, 8, 8\), but the transformations act on fields of 8×8"
    ):
        learner(4, TURNS).fit(np.zeros((5, 3, 8, 8)))
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.transform(torch.zeros(3, 64, dtype=torch.complex64))


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_list_is_an_array_and_batches_come_from_a_generator(learner, digits):
    """Even or uneven, rows or images, of arrays or of tensors."""
    images = digits.reshape(-1, 8, 8)
    model = learner(4, n_iter=1, random_state=0)
    for whole in (digits, images, torch.from_numpy(digits)):
        for batches in ([whole[:600], whole[600:1200]], (whole[:600], whole[600:1100])):
            with pytest.raises(ValueError, match=r"X is a .* of 2 that holds an array of shape \(600, .*a generator"):
                model.fit(batches)
        model.fit(iter(batches))
    expected = model.fit(digits[:50]).components_
    assert_allclose(model.fit(list(digits[:50])).components_, expected)


@pytest.mark.parametrize("learner", LEARNERS)
def test_any_real_numbers_will_do(learner, digits):
    model = learner(4, n_iter=1, random_state=0).fit(digits)
    expected = model.transform(digits)
    for X in (digits.astype(">f8"), digits.astype(np.longdouble), np.asfortranarray(digits), digits[::-1][::-1]):
        assert_allclose(model.transform(X), expected)
        assert_array_equal(learner(4, n_iter=1, random_state=0).fit(iter([X])).n_features_in_, 64)
    whole = (digits * 16).astype(int)
    for kind in (np.uint8, np.int16, np.int64, np.float16):
        assert_allclose(model.transform(whole.astype(kind)), model.transform(whole.astype(np.float32)))
    assert model.transform(torch.from_numpy(digits).requires_grad_()).requires_grad is False


def test_a_refit_forgets_the_names_of_columns(digits):
    import pandas as pd

    model = TIRBM(4, n_iter=1, random_state=0).fit(pd.DataFrame(digits, columns=[str(i) for i in range(64)]))
    assert model.sample(3, steps=1).shape == (3, 64)
    assert not hasattr(model.fit(torch.from_numpy(digits[:, :32])), "feature_names_in_")


@pytest.mark.parametrize("none", [np.zeros((0, 64)), np.zeros((0, 8, 8)), torch.zeros(0, 8, 8)], ids=lambda X: X.shape)
def test_no_inputs_are_refused_in_words(none, digits):
    model = TIRBM(4, n_iter=1, random_state=0).fit(digits)
    for work in (TIRBM(4).fit, model.transform):
        with pytest.raises(ValueError, match=r"Found array with 0 sample|give \(N, features\) or images"):
            work(none)
