from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.linear_model import orthogonal_mp

from orbitpool import TIOMP
from orbitpool import transforms as T
from orbitpool.learners.base import Session

SHIFTS = T.translations(8, 6)


@pytest.mark.parametrize("gamma", [1, 2, 5])
def test_an_orbit_of_one_is_orthogonal_matching_pursuit(digits, gamma):
    """Law 6: supports and coefficients of scikit-learn's orthogonal_mp."""
    model = TIOMP(50, gamma=gamma, n_iter=3, random_state=0).fit(digits)
    expected = orthogonal_mp(model.components_.T, digits[:300].T, n_nonzero_coefs=gamma).T
    code = model.code(digits[:300])
    assert_allclose(code, expected, atol=1e-8)
    assert ((code != 0).sum(1) == gamma).all()


@pytest.mark.parametrize("unit_norm", [False, True])
def test_codes_keep_to_the_constraints_of_eq_15(digits, unit_norm):
    model = TIOMP(20, SHIFTS, gamma=4, unit_norm=unit_norm, n_iter=3, random_state=0).fit(digits)
    code, pose = model.code(digits), model.pose(digits)
    assert ((code != 0).sum(1) <= 4).all()
    assert ((pose >= 0) == (code != 0)).mean() > 0.999
    assert ((pose >= -1) & (pose < 9)).all()
    assert (np.linalg.norm(model.components_, axis=1) <= 1 + 1e-6).all()


def test_the_reconstruction_is_the_sum_of_eq_14(digits):
    model = TIOMP(20, SHIFTS, gamma=3, unit_norm=False, n_iter=2, random_state=0).fit(digits)
    code, pose = model.code(digits), model.pose(digits)
    posed = SHIFTS.orbit(model.components_)
    expected = np.stack([c @ posed[np.arange(20), p.clip(0)] for c, p in zip(code, pose, strict=True)])
    assert_allclose(model.reconstruct(digits), expected, atol=1e-10)
    leftover = digits - expected
    for row, c, p in zip(leftover[:50], code[:50], pose[:50], strict=True):
        used = posed[c != 0, p[c != 0]]
        assert_allclose(used @ row, 0, atol=1e-8)  # least squares leaves nothing along what it used


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_filters_that_are_alike_do_no_harm(digits, dtype):
    model = TIOMP(4, gamma=4, n_iter=1, random_state=0).fit(digits.astype(dtype))
    model.components_[1:3] = model.components_[0]
    X = digits.astype(dtype)
    two = np.linalg.lstsq(model.components_[[0, 3]].T, X.T, rcond=None)[0]
    best = (X - (model.components_[[0, 3]].T @ two).T).var()
    assert np.isfinite(model.code(X)).all()
    assert (X - model.reconstruct(X)).var() < 1.001 * best
    assert (X - model.code(X) @ model.components_).var() < 1.001 * best


def test_one_filter_explains_a_pattern_in_every_place():
    """Inputs that are one pattern at nine places, in both signs, from a filter that is near it."""
    rng = np.random.default_rng(0)
    pattern = rng.normal(size=36)
    places = SHIFTS.orbit(pattern)
    X = places[rng.integers(9, size=500)] * rng.normal(size=(500, 1))
    model = TIOMP(1, SHIFTS, n_iter=1, random_state=0).fit(X)
    model._state.tensors["W"][0] = torch.from_numpy(pattern + rng.normal(size=36)) / 10
    for _ in range(20):
        model.partial_fit(X)
    assert model.history_["reconstruction_error"][-1] < 1e-6
    assert abs(np.corrcoef(model.components_[0], pattern)[0, 1]) > 0.999
    assert TIOMP(1, n_iter=20, random_state=0).fit(X).history_["reconstruction_error"][-1] > 0.1


@pytest.mark.parametrize("gamma", [1, 3])
@pytest.mark.parametrize("transforms", [None, SHIFTS, T.rotations(8, 6, 0.5)])
def test_every_epoch_brings_the_error_down(digits, gamma, transforms):
    errors = TIOMP(20, transforms, gamma=gamma, n_iter=15, random_state=0).fit(digits).history_["reconstruction_error"]
    assert errors[-1] < 0.9 * errors[0]
    assert all(later < 1.02 * earlier for earlier, later in pairwise(errors))


def test_the_result_does_not_depend_on_the_batches(digits):
    wholes = TIOMP(20, SHIFTS, n_iter=1, batch_size=len(digits), random_state=0).fit(digits)
    parts = TIOMP(20, SHIFTS, n_iter=1, batch_size=100, random_state=0).fit(digits)
    used = np.abs(wholes.code(digits)).sum(0) > 0
    assert_allclose(parts.components_[used], wholes.components_[used], atol=1e-6)


def test_unused_filters_are_restarted_from_the_data(digits):
    model = TIOMP(10, n_iter=1, random_state=0, device="cpu")
    state = model._start(model._source(digits, reset=True), 0)
    model._session = Session(torch.from_numpy(digits))
    state.tensors["W"][3] = 0.0
    model._begin_epoch(state, torch.from_numpy(digits))
    model._update(state, torch.from_numpy(digits))
    model._end_epoch(state)
    restarted = state.tensors["W"][3].numpy()
    assert_allclose(np.linalg.norm(restarted), 1)
    similarity = digits @ restarted / np.linalg.norm(digits, axis=1)
    assert similarity.max() > 1 - 1e-9


def test_features_are_the_two_sided_soft_threshold(digits):
    X = digits - digits.mean(0)
    model = TIOMP(15, SHIFTS, alpha=0.3, n_iter=2, random_state=0, unit_norm=False).fit(X)
    a = np.einsum("nd,ksd->nks", X, SHIFTS.orbit(model.components_))
    above, below = np.maximum(a - 0.3, 0).max(-1), np.maximum(-a - 0.3, 0).max(-1)
    assert_allclose(model.transform(X), np.hstack([above, below]), atol=1e-12)
    one_sided = TIOMP(15, SHIFTS, alpha=0.3, n_iter=2, random_state=0, unit_norm=False, two_sided=False).fit(X)
    assert_allclose(one_sided.transform(X), above, atol=1e-12)


def test_unit_norm_makes_transformed_filters_equally_long(digits):
    turns = T.rotations(8, 6, 0.5)
    model = TIOMP(10, turns, n_iter=2, random_state=0).fit(digits)
    posed = turns.orbit(model.components_)
    unit = posed / np.linalg.norm(posed, axis=-1, keepdims=True)
    expected = np.maximum(np.einsum("nd,ksd->nks", digits, unit).max(-1) - 0.25, 0)
    assert_allclose(model.transform(digits)[:, :10], expected, atol=1e-10)


def test_more_filters_to_an_input_than_there_are_is_refused(digits):
    with pytest.raises(ValueError, match="gamma is 9 but there are 8 filters; gamma <= n_components"):
        TIOMP(8, gamma=9).fit(digits)


@pytest.mark.parametrize("gamma", [1, 3])
def test_learning_with_the_fused_search_is_learning(digits, gamma, monkeypatch):
    """On a GPU the kernel chooses among bfloat16 numbers; its interpreter has none, so here it is given float32."""
    best = pytest.importorskip("orbitpool.kernels.best", reason="needs triton").best
    X, options = digits[:300].astype(np.float32), {"gamma": gamma, "n_iter": 3, "random_state": 0, "batch_size": 150}
    model = TIOMP(20, SHIFTS, **options).fit(X)
    monkeypatch.setattr(TIOMP, "_best", lambda self, v, W, gain, _, used: best(SHIFTS.apply(v), W, gain, used))
    twin = TIOMP(20, SHIFTS, **options).fit(X)
    assert_allclose(twin.components_, model.components_, atol=1e-5)


@pytest.mark.parametrize("gamma", [1, 3])
def test_short_products_choose_nearly_as_well(digits, gamma):
    X, options = digits.astype(np.float32), {"gamma": gamma, "n_iter": 5, "random_state": 0}
    full, short = (TIOMP(20, SHIFTS, precision=p, **options).fit(X).history_ for p in ("full", "bfloat16"))
    assert_allclose(short["reconstruction_error"], full["reconstruction_error"], rtol=0.02)


def test_learning_goes_on_in_the_same_tensors(digits):
    """What was recorded on a GPU is replayed on them."""
    model = TIOMP(20, SHIFTS, n_iter=2, random_state=0).fit(digits)
    places = {name: t.data_ptr() for name, t in model._state.tensors.items()}
    model.partial_fit(digits)
    assert places == {name: t.data_ptr() for name, t in model._state.tensors.items()}
