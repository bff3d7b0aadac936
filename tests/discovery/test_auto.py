"""Which transformations data has, on data where that is known."""

import json
from math import pi

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from scipy import ndimage
from sklearn.datasets import load_digits

from orbitpool import TIOMP, TIRBM, ConvFeatures, TIAutoencoder, load
from orbitpool import transforms as T
from orbitpool.discovery import Discovery, discover
from orbitpool.discovery.auto import conclude
from orbitpool.discovery.candidates import Move
from orbitpool.discovery.telling import overlaps


@pytest.fixture(scope="module")
def upright_digits():
    """Real digits, upsampled to 16x16, as they were written."""
    return np.stack([np.pad(ndimage.zoom(i / 16, 1.5, order=1), 2) for i in load_digits().images]).astype(np.float32)


@pytest.fixture(scope="module")
def turned(turned_digits):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orbitpool.discovery.auto.STEPS", 400)  # digits of 16x16 pixels are learned soon
        return discover(turned_digits.X_train.reshape(-1, 16, 16), random_state=0)


def blobs(rng, count, room, size=16, broad=1.5):
    """Round spots whose middle is anywhere within so many pixels of the centre, (count, 1, size, size)."""
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    at = rng.uniform(-room, room, (2, count, 1, 1))
    spots = np.exp(-((y - at[0]) ** 2 + (x - at[1]) ** 2) / (2 * broad**2))
    return torch.from_numpy(spots[:, None].astype(np.float32))


def test_overlaps_are_what_they_are_known_to_be():
    """Spots that are uniform over six pixels, shifted by d, overlap by 1 - d/6, and have every turn."""
    x = blobs(np.random.default_rng(0), 3000, 3.0)
    shifts = (1.0, 2.0, 3.0)
    moves = [*(Move("shift down", d) for d in shifts), Move("turn", 90.0), Move("mirror", 1.0), Move("scale", 1.3)]
    found = overlaps(x, moves, 11, 300, 0)
    assert_allclose(found[:3], [1 - d / 6 for d in shifts], atol=0.12)
    assert min(found[3:5]) > 0.9
    assert found[5] < 0.2


def test_turned_digits_have_turns_alone(turned):
    assert turned.ranges.turn == 180
    assert turned.ranges.shift == (0, 0)
    assert not turned.ranges.mirror
    assert turned.words().startswith("turns by any angle, no shifts, ")


def test_upright_digits_have_few(upright_digits, monkeypatch):
    monkeypatch.setattr("orbitpool.discovery.auto.STEPS", 400)
    found = discover(upright_digits, random_state=0)
    assert found.ranges.turn < 30
    assert max(found.ranges.shift) <= 1
    assert not found.ranges.mirror


def test_rows_are_square_images_and_a_discovery_is_repeatable(brief, upright_digits):
    rows, images = (discover(X, random_state=0) for X in (upright_digits.reshape(-1, 256), upright_digits))
    assert rows.findings == images.findings
    assert rows.transforms == images.transforms


def test_a_discovery_travels_as_json(turned):
    twin = Discovery.from_json(json.loads(json.dumps(turned.to_json())))
    assert (twin.findings, twin.ranges, twin.transforms) == (turned.findings, turned.ranges, turned.transforms)
    assert twin.words() == turned.words()


def test_the_picture_shows_what_was_found(turned, tmp_path):
    with Image.open(turned.picture(tmp_path / "with.png")) as picture:
        assert picture.width > 800
        height = picture.height
    twin = Discovery.from_json(turned.to_json())  # from a file, without examples
    with Image.open(twin.picture(tmp_path / "without.png")) as picture:
        assert picture.height < height


def test_what_cannot_be_judged_is_said(upright_digits):
    with pytest.raises(ValueError, match=r"20 images are too few .*; give 500 or more"):
        discover(upright_digits[:20])
    with pytest.raises(ValueError, match="rows of 120 numbers are no square images"):
        discover(np.zeros((400, 120)))
    with pytest.raises(ValueError, match=r"transforms is 'automatic'; give .*'auto'"):
        TIRBM(4, "automatic").fit(upright_digits)
    with pytest.raises(ValueError, match=r"transforms is 'automatic'; give .*'auto'"):
        ConvFeatures(TIRBM(4, "automatic")).fit(upright_digits)


@pytest.fixture
def brief(monkeypatch):
    """A discovery that takes no time, and whose findings are not to be relied upon."""
    monkeypatch.setattr("orbitpool.discovery.auto.STEPS", 2)


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
    assert_array_equal(resumed.components_, whole.components_)
    with pytest.raises(ValueError, match="its transforms is 'auto', here it is None"):
        TIRBM(4, None, n_iter=2, checkpoint=tmp_path / "run", **options).fit(upright_digits)


def test_streams_and_partial_fits_are_looked_at_too(brief, upright_digits):
    model = TIOMP(4, "auto", random_state=0).partial_fit(upright_digits)
    poses = model.transforms_
    assert model.partial_fit(upright_digits[:100]).transforms_ == poses
    streamed = TIOMP(4, "auto", n_iter=1, random_state=0).fit(iter([upright_digits[:900].reshape(900, -1)]))
    assert streamed.transforms_.field_shape == (16, 16)


def test_patches_are_judged_by_images(brief, photographs, tmp_path):
    """Of different sizes; neither shifts nor mirrors are offered, and filters see patches."""
    rng = np.random.default_rng(0)
    corners = [(rng.integers(0, 380), rng.integers(0, 590), rng.integers(24, 44)) for _ in range(520)]
    images = [photographs[i % 2, y : y + s, x : x + s] for i, (y, x, s) in enumerate(corners)]
    model = ConvFeatures(TIOMP(5, "auto", n_iter=1), n_patches=1000, random_state=0).fit(images)
    found = model.learner_.discovery_
    assert {f.family for f in found.findings} == {"turn", "scale"}
    assert found.judged == (24, 24)
    assert model.learner_.transforms_.field_shape == (8, 8)
    model.save(tmp_path / "model")
    twin = load(tmp_path / "model")
    assert twin.learner_.discovery_.words() == found.words()
    assert_allclose(twin.transform(images[:9]), model.transform(images[:9]), atol=1e-6)


def test_mirror_images_take_the_larger_of_both_thresholds():
    moves = [Move("turn", 30.0), Move("mirror", 1.0)]
    for threshold, mirrored in ((0.75, True), (0.97, False)):
        found = conclude(moves, [0.98, 0.95], (16, 16), None, threshold, torch.zeros(1, 1, 16, 16))
        assert found.ranges.mirror == found.findings[1].kept == mirrored
        assert ("no mirror images" in found.words()) != mirrored


def test_words_of_patches_say_what_was_not_asked():
    found = conclude([Move("turn", 30.0)], [0.9], (32, 32), (8, 8), 0.75, torch.zeros(1, 1, 32, 32))
    assert "neither shifts nor mirror images asked for" in found.words()
    assert found.words().endswith("which go as far as moved images pass for others")
