"""Learners that are given no transformations, and find them."""

from math import pi

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from orbitpool import TIOMP, TIRBM, ConvFeatures, TIAutoencoder, load
from orbitpool import transforms as T


@pytest.mark.parametrize("learner", [TIRBM, TIAutoencoder, TIOMP])
def test_learners_take_what_was_found_and_files_keep_it(learner, brief, upright_digits, tmp_path):
    model = learner(6, "auto", n_iter=1, random_state=0).fit(upright_digits)
    assert model.transforms == "auto"
    assert model.transforms_ == model.discovery_.transforms
    assert model.transforms_.field_shape == (16, 16)
    model.save(tmp_path / "model")
    twin = load(tmp_path / "model")
    assert twin.get_params() == model.get_params()
    assert twin.transforms_ == model.transforms_
    assert twin.discovery_.words() == model.discovery_.words()
    assert_array_equal(twin.transform(upright_digits), model.transform(upright_digits))
    assert_array_equal(twin.partial_fit(upright_digits).components_, model.partial_fit(upright_digits).components_)


def test_the_choice_depends_on_the_random_state_alone(brief, upright_digits):
    first, second = (TIOMP(4, "auto", n_iter=1, random_state=3).fit(upright_digits) for _ in range(2))
    assert first.transforms_ == second.transforms_
    assert_array_equal(first.components_, second.components_)
    given = TIOMP(4, T.rotations(16, 4, pi / 2), n_iter=1).fit(upright_digits)
    assert (given.transforms_, given.discovery_) == (given.transforms, None)


def test_a_checkpoint_goes_on_with_the_poses_it_began_with(brief, upright_digits, tmp_path, monkeypatch):
    options = {"random_state": 0, "batch_size": 300}
    whole = TIRBM(4, "auto", n_iter=2, **options).fit(upright_digits)
    TIRBM(4, "auto", n_iter=1, checkpoint=tmp_path / "run", **options).fit(upright_digits)
    monkeypatch.setattr("orbitpool.learners.finding.discover", None)
    resumed = TIRBM(4, "auto", n_iter=2, checkpoint=tmp_path / "run", **options).fit(upright_digits)
    assert resumed.transforms_ == whole.transforms_
    assert resumed.discovery_.examples.shape == whole.discovery_.examples.shape
    assert_array_equal(resumed.components_, whole.components_)
    with pytest.raises(ValueError, match="its transforms is 'auto', here it is None"):
        TIRBM(4, None, n_iter=2, checkpoint=tmp_path / "run", **options).fit(upright_digits)


def test_streams_and_partial_fits_are_looked_at_too(brief, upright_digits):
    model = TIOMP(4, "auto", random_state=0).partial_fit(upright_digits)
    poses = model.transforms_
    assert model.partial_fit(upright_digits[:100]).transforms_ == poses
    streamed = TIOMP(4, "auto", n_iter=1, random_state=0).fit(iter([upright_digits[:900].reshape(900, -1)]))
    assert streamed.transforms_.field_shape == (16, 16)


def test_small_batches_of_a_stream_are_gathered_and_keep_their_shape(brief, upright_digits):
    """And are learned from afterwards, each of them once."""
    images = upright_digits[:, 2:14]
    model = TIOMP(4, "auto", n_iter=1, random_state=0).fit(iter(np.array_split(images, 20)))
    assert model.discovery_.n_images == len(images)
    assert model.transforms_.field_shape == (12, 16)
    given = TIOMP(4, model.transforms_, n_iter=1, random_state=0).fit(iter(np.array_split(images, 20)))
    assert_array_equal(model.components_, given.components_)
    with pytest.raises(ValueError, match="300 images are too few"):
        TIOMP(4, "auto", n_iter=1).fit(iter(np.array_split(images[:300], 20)))


def test_a_fit_that_fails_leaves_the_model_as_it_was(brief, upright_digits):
    model = TIRBM(4, "auto", n_iter=1, random_state=0).fit(upright_digits)
    before = model.transform(upright_digits)
    with pytest.raises(ValueError, match="20 images are too few"):
        model.fit(upright_digits[:20, :12, :12])
    assert_array_equal(model.transform(upright_digits), before)
    model.partial_fit(upright_digits[:50])


def test_rows_that_are_held_out_are_not_looked_at(brief, upright_digits):
    model = TIRBM(4, "auto", n_iter=1, random_state=0, early_stopping=True, validation_fraction=0.5)
    assert model.fit(upright_digits[:1200]).discovery_.n_images == 600


def test_poses_that_were_found_can_be_kept(brief, monkeypatch, upright_digits):
    """Features of each pose, as many as there are, not as many as "auto" has letters."""
    monkeypatch.setattr("orbitpool.discovery.auto.overlaps", lambda x, moves, *_: [1.0] * len(moves))
    model = ConvFeatures(TIOMP(5, "auto", n_iter=1), n_patches=500, grid=1, poses="keep", random_state=0)
    poses = len(model.fit(upright_digits).learner_.transforms_)
    assert poses > 4
    assert model.transform(upright_digits[:3]).shape == (3, poses * model.learner_._n_features_out)
    assert len(model.get_feature_names_out()) == poses * model.learner_._n_features_out


def test_one_small_image_does_not_decide_for_all(brief, photographs):
    rng = np.random.default_rng(0)
    corners = rng.integers(0, 380, (510, 2))
    images = [photographs[i % 2, y : y + 36, x : x + 36] for i, (y, x) in enumerate(corners)]
    images.append(photographs[0, :12, :12])
    model = ConvFeatures(TIOMP(5, "auto", n_iter=1), n_patches=1000, random_state=0).fit(images)
    found = model.learner_.discovery_
    assert (found.judged, found.n_images) == ((32, 32), 510)
    larger = ConvFeatures(TIOMP(5, "auto", n_iter=1), n_patches=300, patch_size=33, grid=1, random_state=0)
    assert larger.fit(images[:-1]).learner_.transforms_.field_shape == (33, 33)  # larger than thumbnails


def test_a_resumed_run_of_patches_does_not_look_again(brief, upright_digits, tmp_path, monkeypatch):
    def model(n_iter, **where):
        learner = TIOMP(5, "auto", n_iter=n_iter, batch_size=300, **where)
        return ConvFeatures(learner, n_patches=900, random_state=0)

    whole = model(2).fit(upright_digits)
    model(1, checkpoint=tmp_path / "run").fit(upright_digits)
    monkeypatch.setattr("orbitpool.discovery.auto.judge", None)
    resumed = model(2, checkpoint=tmp_path / "run").fit(upright_digits)
    assert_array_equal(resumed.learner_.components_, whole.learner_.components_)
    assert_array_equal(resumed.learner_.discovery_.examples, whole.learner_.discovery_.examples)


def test_patches_are_judged_by_images(brief, photographs, tmp_path):
    """Of different sizes; neither shifts nor mirrors are offered, and filters see patches."""
    rng = np.random.default_rng(0)
    corners = [(rng.integers(0, 380), rng.integers(0, 590), rng.integers(24, 44)) for _ in range(520)]
    images = [photographs[i % 2, y : y + s, x : x + s] for i, (y, x, s) in enumerate(corners)]
    model = ConvFeatures(TIOMP(5, "auto", n_iter=1), n_patches=1000, random_state=0).fit(images)
    found = model.learner_.discovery_
    assert {f.family for f in found.findings} == {"turn", "scale"}
    sides = sorted(image.shape[0] for image in images)
    assert found.judged == (sides[20],) * 2  # the smallest 20 of 520 are left out
    assert model.learner_.transforms_.field_shape == (8, 8)
    model.save(tmp_path / "model")
    twin = load(tmp_path / "model")
    assert twin.learner_.discovery_.words() == found.words()
    assert_allclose(twin.transform(images[:9]), model.transform(images[:9]), atol=1e-6)
