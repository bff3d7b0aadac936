"""What a GPU computes is what a CPU computes, within what its precision and its own random numbers allow."""

from math import pi

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from orbitpool import TIOMP, TIRBM, ConvFeatures, LinearSVM, SoftmaxRegression, TIAutoencoder, load
from orbitpool import transforms as T

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: make test-gpu")
SHIFTS, TURNS = T.translations(8, 6, 2), T.rotations(8, 8, pi / 4)


@pytest.fixture(scope="module")
def X(digits):
    return digits.astype(np.float32)


@pytest.mark.parametrize("gamma", [1, 3, 20])
@pytest.mark.parametrize("precision", ["full", "auto"])
def test_pursuit_learns_as_on_a_cpu_recorded_or_not(X, gamma, precision, monkeypatch):
    options = {"gamma": gamma, "n_iter": 5, "random_state": 0, "batch_size": 100}
    expected = TIOMP(40, SHIFTS, device="cpu", **options).fit(X)
    for replays in (True, False):
        monkeypatch.setattr(TIOMP, "REPLAYS", replays)
        model = TIOMP(40, SHIFTS, device="cuda", precision=precision, **options).fit(X)
        errors, wanted = (m.history_["reconstruction_error"] for m in (model, expected))
        assert_allclose(errors, wanted, rtol=0.005 if precision == "full" else 0.03)
        assert_allclose(model.history_["sparsity"], expected.history_["sparsity"], atol=0.05)
        assert_allclose(model.score(X), expected.score(X), rtol=0.03)


@pytest.mark.parametrize("transforms", [None, TURNS])
@pytest.mark.parametrize("precision", ["full", "auto"])
@pytest.mark.parametrize("more", [{}, {"persistent": True}, {"cd_steps": 2}, {"visible": "gaussian"}], ids=str)
def test_the_rbm_learns_as_on_a_cpu_recorded_or_not(X, transforms, precision, more, monkeypatch):
    options = {"n_iter": 5, "random_state": 0, "batch_size": 100, "learning_rate": 0.01, **more}
    expected = TIRBM(30, transforms, device="cpu", **options).fit(X).history_
    for replays in (True, False):
        monkeypatch.setattr(TIRBM, "REPLAYS", replays)
        history = TIRBM(30, transforms, device="cuda", precision=precision, **options).fit(X).history_
        assert_allclose(history["reconstruction_error"], expected["reconstruction_error"], rtol=0.03)
        assert_allclose(history["sparsity"], expected["sparsity"], rtol=0.1)


@pytest.mark.parametrize("transforms", [None, TURNS])
def test_the_autoencoder_learns_the_same(X, transforms):
    options = {"n_iter": 3, "random_state": 0, "batch_size": 100}
    here, there = (TIAutoencoder(10, transforms, device=device, **options).fit(X) for device in ("cpu", "cuda"))
    assert_allclose(there.components_, here.components_, atol=1e-4)


@pytest.mark.parametrize("kind", [TIRBM, TIAutoencoder, TIOMP])
def test_features_are_the_same_wherever_they_are_computed(kind, X):
    model = kind(10, TURNS, n_iter=1, device="cuda", random_state=0).fit(X)
    expected = model.transform(X)
    assert_allclose(model.set_params(device="cpu").transform(X), expected, atol=1e-5)
    given = torch.from_numpy(X).cuda()
    features = model.set_params(device="auto").transform(given)
    assert features.device == given.device
    assert_allclose(features.cpu().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("kind", [TIRBM, TIAutoencoder])
def test_the_same_seed_gives_the_same_bits(kind, X):
    one, other = (kind(10, TURNS, n_iter=3, device="cuda", random_state=0).fit(X).components_ for _ in range(2))
    assert_array_equal(one, other)


@pytest.mark.parametrize("learner", [TIRBM(20, SHIFTS, visible="gaussian"), TIOMP(20, SHIFTS)], ids=str)
@pytest.mark.parametrize(("precision", "near"), [("full", 1e-4), ("auto", 0.01), ("bfloat16", 0.01)])
def test_dense_encoding_is_that_of_a_cpu(learner, precision, near, photographs):
    images = photographs[:, :40, :60].astype(np.float32)
    learner.set_params(n_iter=2)
    features = ConvFeatures(learner, n_patches=1000, device="cpu", random_state=0).fit(images)
    expected = features.transform(images)
    assert_allclose(features.set_params(device="cuda", precision=precision).transform(images), expected, atol=near)


@pytest.mark.parametrize("usual", [torch.float64, torch.bfloat16])
def test_what_torch_makes_of_plain_numbers_does_not_matter(usual, X, photographs):
    images = photographs[:, :40, :60].astype(np.float32)

    def made():
        options = {"n_iter": 1, "random_state": 0, "device": "cuda"}
        model = TIRBM(10, TURNS, **options).fit(X)
        machine = TIRBM(20, SHIFTS, visible="gaussian", **options)
        features = ConvFeatures(machine, n_patches=1000, device="cuda", random_state=0).fit(images)
        return model.components_, model.transform(X), features.transform(images)

    expected, before = made(), torch.get_default_dtype()
    torch.set_default_dtype(usual)
    try:
        found = made()
    finally:
        torch.set_default_dtype(before)
    for one, other in zip(found, expected, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("kind", [LinearSVM, SoftmaxRegression])
def test_classifiers_find_the_same_minimum_in_one_piece_or_several(kind, X):
    y = np.arange(len(X)) % 7 % 3
    here, there = (kind(C=0.1, device=device, tol=1e-6).fit(X, y) for device in ("cpu", "cuda"))
    parts = kind(C=0.1, device="cuda", tol=1e-6).fit(np.array_split(X, 3), y)
    for model in (there, parts):
        assert_allclose(model.coef_, here.coef_, atol=1e-3 * np.abs(here.coef_).max())


def test_poses_are_learned_and_a_model_goes_from_device_to_device(X, tmp_path):
    poses = T.learned(T.rotations(8, 4, pi / 16), every=2)
    model = TIRBM(10, poses, n_iter=5, device="cuda", random_state=0).fit(X)
    assert model.transforms_.labels != poses.labels
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model").set_params(device="cpu")
    assert_allclose(loaded.transform(X), model.transform(X), atol=1e-5)
