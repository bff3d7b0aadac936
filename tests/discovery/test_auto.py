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
from orbitpool.discovery.picture import explained
from orbitpool.discovery.telling import overlaps
from orbitpool.together import seed_of


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
    assert explained(turned).startswith("Each row moves two of the images")
    assert explained(twin).startswith("Images were moved further and further; files keep none to show")


def test_what_cannot_be_judged_is_said(upright_digits):
    with pytest.raises(ValueError, match=r"20 images are too few .*; give 500 or more"):
        discover(upright_digits[:20])
    with pytest.raises(ValueError, match="rows of 120 numbers are no square images"):
        discover(np.zeros((400, 120)))
    with pytest.raises(ValueError, match=r"transforms is 'automatic'; give .*'auto'"):
        TIRBM(4, "automatic").fit(upright_digits)
    with pytest.raises(ValueError, match=r"transforms is 'automatic'; give .*'auto'"):
        ConvFeatures(TIRBM(4, "automatic")).fit(upright_digits)


def test_images_that_do_not_differ_have_no_transformations(upright_digits):
    """Though whatever is done to them cannot be told."""
    bright = np.linspace(0, 1, 600)[:, None, None]
    repeated = np.repeat(upright_digits[:1], 600, 0)
    for X in (np.zeros((600, 12, 12)), np.ones((600, 12, 12)), bright * np.ones((600, 12, 12)), repeated):
        with pytest.raises(ValueError, match=r"the 600 images differ by nothing but brightness .*; give images that"):
            discover(X)
    flat = np.ones((600, 12, 12), np.float32)
    for model in (TIRBM(4, "auto"), ConvFeatures(TIOMP(4, "auto"), n_patches=600)):
        with pytest.raises(ValueError, match="the 600 images differ by nothing but brightness"):
            model.fit(flat)


def test_numbers_that_hide_all_others_are_said(upright_digits):
    odd = upright_digits.copy()
    odd[3, 4, 5] = 1e30
    with pytest.raises(ValueError, match=r"go up to 1e\+30, and beside 18 of 1797 images .*; drop images with"):
        discover(odd)


@pytest.mark.parametrize("power", [-100, -40, 123])
def test_it_does_not_matter_how_large_numbers_are(brief, upright_digits, power):
    expected = discover(upright_digits, random_state=0).findings
    assert discover(upright_digits * np.float32(2.0**power), random_state=0).findings == expected


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
    assert resumed.discovery_.examples.shape == whole.discovery_.examples.shape
    assert_array_equal(resumed.components_, whole.components_)
    with pytest.raises(ValueError, match="its transforms is 'auto', here it is None"):
        TIRBM(4, None, n_iter=2, checkpoint=tmp_path / "run", **options).fit(upright_digits)


def test_a_checkpoint_of_patches_has_images_to_show_as_well(brief, upright_digits, tmp_path, monkeypatch):
    def fitted(epochs):
        learner = TIOMP(4, "auto", n_iter=epochs, checkpoint=tmp_path / "run")
        return ConvFeatures(learner, n_patches=500, random_state=0).fit(upright_digits)

    first = fitted(1).learner_.discovery_
    monkeypatch.setattr("orbitpool.discovery.auto.judge", None)
    assert_array_equal(fitted(2).learner_.discovery_.examples, first.examples)


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


def test_any_array_of_real_numbers_will_do(brief, upright_digits):
    X = (255 * upright_digits[:600]).astype(np.uint8)
    expected = discover(X.astype(np.float32), random_state=0).findings
    X.flags.writeable = False
    tensor = torch.tensor(X, dtype=torch.float32, requires_grad=True)
    for kind in (X, X[:, ::-1][:, ::-1], X.astype(">f8"), X.astype(np.longdouble), tensor, X.tolist()):
        assert discover(kind, random_state=0).findings == expected
    colour = np.repeat(X[..., None], 3, 3)
    found = TIOMP(4, "auto", n_iter=1, random_state=0).fit(colour.reshape(600, -1))
    assert found.transforms_.field_shape == (16, 16)
    assert found.discovery_.findings == discover(colour, random_state=seed_of(0)).findings


@pytest.mark.parametrize("X", [None, ["a", "b"], np.zeros((600, 8, 8), complex), torch.zeros(600, 64).to(torch.cfloat)])
def test_what_are_no_real_numbers_is_refused(X):
    with pytest.raises(ValueError, match=r"X is of type .*; give images of real numbers"):
        discover(X)


def test_a_list_that_is_no_array_is_refused(upright_digits):
    for X in ([upright_digits[:600], upright_digits[600:1100]], [*upright_digits[:600], upright_digits[0, 1:]]):
        with pytest.raises(ValueError, match=rf"X is a list of {len(X)} that makes no array .*; give images of one"):
            discover(X)


@pytest.mark.parametrize("patch", [1, 2, 3, 17])
def test_patches_that_have_no_poses_are_refused(patch, upright_digits):
    with pytest.raises(ValueError, match=f"{patch}×{patch} pixels"):
        discover(upright_digits, patch=patch)


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


def test_a_discovery_is_shown_in_words(turned):
    assert repr(turned) == f"<Discovery: {turned.words()}>"


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


@pytest.mark.parametrize("kind", ["shifted", "scaled"])
def test_shifts_and_sizes_of_digits_are_found(kind, monkeypatch):
    """Shifts by up to 3 pixels pass for data up to about half of that; sizes differ by up to 2.7 times."""
    monkeypatch.setattr("orbitpool.discovery.auto.STEPS", 400)
    rng, X = np.random.default_rng(0), np.zeros((700, 16, 16), np.float32)
    for canvas, digit in zip(X, load_digits().images, strict=False):
        size = 10 if kind == "shifted" else int(rng.integers(6, 17))
        top, left = rng.integers(0, 7, 2) if kind == "shifted" else [(16 - size) // 2] * 2
        canvas[top : top + size, left : left + size] = ndimage.zoom(digit / 16, size / 8, order=1)
    found = discover(X, random_state=0)
    assert found.ranges.turn == 0
    assert not found.ranges.mirror
    if kind == "shifted":
        assert found.ranges.shift in {(1, 1), (2, 2), (1, 2), (2, 1)}
        assert found.ranges.scale == 1
    else:
        assert found.ranges.shift == (0, 0)
        assert 1 < found.ranges.scale < 2.7


def hard_shapes(rng, count, size=28):
    """Triangles, bars and corners in black and white, at any angle: a pixel is in or out."""
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    a = rng.uniform(0, 2 * pi, (count, 1, 1))
    u, v = x * np.cos(a) + y * np.sin(a), y * np.cos(a) - x * np.sin(a)
    triangle = (v > -5) & (v < 9 - 1.75 * abs(u))
    bar = (abs(u) < 9) & (abs(v) < 3)
    corner = (u > -7) & (u < 7) & (abs(v) < 8) & ((u < -2) | (v > 3))
    which = np.arange(count)[:, None, None] % 3
    return np.where(which == 0, triangle, np.where(which == 1, bar, corner)).astype(np.float32)


def test_hard_edges_do_not_hide_turns():
    assert discover(hard_shapes(np.random.default_rng(0), 3000), random_state=0).ranges.turn == 180


def test_quarter_turns_alone_are_said(monkeypatch):
    def some(x, moves, *_):
        return [1.0 if m.family == "turn" and m.amount % 90 == 0 else 0.3 for m in moves]

    monkeypatch.setattr("orbitpool.discovery.auto.overlaps", some)
    with pytest.warns(UserWarning, match="turned by 90 degrees, but not by angles between"):
        found = discover(np.random.default_rng(0).random((500, 8, 8)), random_state=0)
    assert found.ranges.turn == 0
