"""The laws of the digit variations, and the data sets made by them or read from the official files."""

from math import pi

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from scipy import stats

from orbitpool import transforms as T
from orbitpool.datasets import (
    VARIATIONS,
    DataCorrupt,
    DataMissing,
    dataset,
    make_variation,
    mnist_variation,
    move_digits,
)
from orbitpool.datasets import written as module
from orbitpool.datasets.variations import largest_factors

AMAT = {
    "rot": "mnist_all_rotation_normalized_float",
    "rot-bgimg": "mnist_all_background_images_rotation_normalized",
}


def vary(name, digits, seed=0, backgrounds=None):
    return make_variation(name, digits, np.random.default_rng(seed), backgrounds)


@pytest.fixture(scope="module")
def varied(written, photographs):
    """Every variation of the same digits by the same seed."""
    return {name: vary(name, written[0], 0, list(photographs)) for name in VARIATIONS}


@pytest.mark.parametrize("name", ["rot", "scale", "trans"])
def test_digits_that_are_moved_by_what_was_drawn_are_the_variation(name, varied, written):
    images, parameters = varied[name]
    assert_array_equal(move_digits(name, written[0], *parameters.values()), images)
    with pytest.raises(ValueError, match="cannot be moved by 'tilt'; choose one of rot, scale, trans"):
        move_digits("tilt", written[0], *parameters.values())


@pytest.mark.parametrize("name", VARIATIONS)
def test_images_are_floats_between_zero_and_one(name, varied, written):
    images, parameters = varied[name]
    assert (images.shape, images.dtype) == (written[0].shape, np.float32)
    assert images.min() >= 0
    assert 0.99 < images.max() <= 1
    assert all(len(p) == len(images) for p in parameters.values())


def test_angles_are_uniform_over_the_circle(varied):
    angles = varied["rot"][1]["angle"]
    assert stats.kstest(angles, "uniform", (0, 2 * pi)).pvalue > 0.01


def test_digits_are_turned_as_the_transformations_turn(varied, written):
    images, parameters = varied["rot"]
    for i in range(5):
        turn = T.rotations(28, 2, parameters["angle"][i], border="zero")[1]
        expected = turn.apply(written[0][i].reshape(1, -1) / 255).ravel()
        assert_allclose(images[i].ravel(), np.where(expected < 0.5 / 255, 0, expected), atol=1e-4)


def test_scales_are_uniform_from_three_tenths_to_the_largest_that_fits(varied, written):
    levels = varied["scale"][1]["factor"] / largest_factors(written[0])
    assert levels.min() >= 0.3
    assert levels.max() <= 1
    assert stats.kstest(levels, "uniform", (0.3, 0.7)).pvalue > 0.01


def test_the_largest_scale_fills_the_image_and_truncates_nothing(written):
    digits = written[0][:50]
    factors = largest_factors(digits)
    assert factors.min() >= 1
    wide = np.pad(digits, ((0, 0), (14, 14), (14, 14)))
    for amount, truncates in ((factors, False), (1.1 * factors, True)):
        there, whole = move_digits("scale", digits, amount), move_digits("scale", wide, amount)
        assert_allclose(there, whole[:, 14:42, 14:42], atol=1e-6)
        lost = whole.sum((1, 2)) - there.sum((1, 2))
        assert (lost > 0.01).all() if truncates else (lost < 1e-3).all()


def test_a_scaled_digit_is_as_large_as_its_factor_says(varied, written):
    images, factors = varied["scale"][0].astype(float), varied["scale"][1]["factor"]
    pixels = written[0] / 255
    assert_allclose(images.sum((1, 2)), pixels.sum((1, 2)) * factors**2, rtol=0.04)
    about = np.arange(28) - 13.5
    for axis in (1, 2):  # its centre of mass moves with the scale about the middle of the image
        before, after = ((x.sum(axis) @ about) / x.sum((1, 2)) for x in (pixels, images))
        assert_allclose(after, before * factors, atol=0.15)


def test_scaling_agrees_with_pillow():
    digit = np.zeros((28, 28), np.float32)
    digit[6:22, 9:18], digit[10:14, 12:15] = 1, 0
    half = move_digits("scale", digit[None], np.array([0.5]))[0]
    shrunk = np.array(Image.fromarray(digit).resize((14, 14), Image.Resampling.BILINEAR))
    assert_allclose(half[7:21, 7:21], shrunk, atol=1e-6)
    assert not half[:7].any()
    assert_array_equal(move_digits("scale", digit[None], np.array([1.0]))[0], digit)


def test_a_shift_moves_every_foreground_pixel_and_loses_none(varied, written):
    images, shifts = varied["trans"][0], varied["trans"][1]["shift"]
    for digit, image, (down, right) in zip(written[0], images, shifts, strict=True):
        y, x = np.nonzero(digit)
        assert_array_equal(image[y + down, x + right], np.float32(digit[y, x]) / np.float32(255))
        assert np.count_nonzero(image) == len(y)


def test_every_shift_without_truncation_is_as_likely():
    digit = np.zeros((28, 28), np.uint8)
    digit[5:26, 3:27] = 9  # 21x24 pixels: 8 places down, 5 across
    _, parameters = vary("trans", np.repeat(digit[None], 8000, 0))
    shifts, counts = np.unique(parameters["shift"], axis=0, return_counts=True)
    assert_array_equal(shifts, [(y, x) for y in range(-5, 3) for x in range(-3, 2)])
    assert stats.chisquare(counts).pvalue > 0.01


def test_a_photograph_shows_where_it_is_brighter_than_the_digit(varied):
    plain, image = varied["rot"][0], varied["rot-bgimg"][0]
    assert (image >= plain).all()
    assert_array_equal(image[plain == 1], plain[plain == 1])
    assert (image[plain == 0] > 0).mean() > 0.9
    faint = (plain > 0) & (plain < 0.1)
    assert (image[faint] > plain[faint]).mean() > 0.5  # no dark outline


@pytest.mark.parametrize("kind", ["scale", "trans"])
def test_a_random_background_is_uniform_noise_in_pixels_that_are_black(kind, varied):
    plain, noisy = varied[kind][0], varied[f"{kind}-bgrand"][0]
    assert_array_equal(noisy[plain > 0], plain[plain > 0])
    noise = noisy[plain == 0]
    assert stats.kstest(noise[:20_000], "uniform").pvalue > 0.01
    assert_allclose(noise.mean(), 0.5, atol=0.01)


def test_an_image_background_is_a_patch_with_texture():
    rng = np.random.default_rng(0)
    half_flat = np.full((80, 60), 0.5, np.float32)
    half_flat[40:] = rng.random((40, 60))
    patches, _ = vary("rot-bgimg", np.zeros((300, 28, 28), np.uint8), 0, [half_flat])
    every = np.lib.stride_tricks.sliding_window_view(half_flat, (28, 28)).reshape(-1, 784)
    known = {row.tobytes() for row in every}
    assert all(patch.tobytes() in known for patch in patches)
    assert len({patch.tobytes() for patch in patches}) > 200
    assert patches.std((1, 2)).min() > 0.25 * half_flat.std()


@pytest.mark.parametrize(
    ("photographs", "told"),
    [
        (None, "0 background photographs"),
        ([np.zeros((20, 90))], "at least 28x28"),
        ([np.ones((90, 90))], "not all alike"),
        ([np.tile(np.linspace(0, 1, 2000), (28, 1))], "too little texture"),
    ],
)
def test_photographs_that_give_no_patch_are_refused(photographs, told, written):
    with pytest.raises(ValueError, match=told):
        vary("rot-bgimg", written[0][:3], 0, photographs)


def test_unknown_names_and_shapes_are_refused(written):
    with pytest.raises(ValueError, match=r"'turn'; choose one of rot, rot-bgimg"):
        vary("turn", written[0])
    with pytest.raises(ValueError, match="no variation 'x'"):
        mnist_variation("x")
    with pytest.raises(ValueError, match=r"shape \(5, 784\)"):
        vary("rot", np.zeros((5, 784)))


def test_an_empty_digit_stays_empty():
    for name in ("rot", "scale", "trans"):
        assert not vary(name, np.zeros((2, 28, 28), np.uint8))[0].any()


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(module, "SIZES", (300, 60, 140))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", VARIATIONS)
def test_the_same_seed_gives_the_same_data(name, mnist_folder):
    first, again, other = (mnist_variation(name, seed, mnist_folder) for seed in (1, 1, 2))
    for part, n in (("train", 300), ("valid", 60), ("test", 140)):
        X, y = getattr(first, f"X_{part}"), getattr(first, f"y_{part}")
        assert (X.shape, X.dtype, y.shape, y.dtype) == ((n, 28, 28), np.float32, (n,), np.int64)
        assert_array_equal(X, getattr(again, f"X_{part}"))
        assert_array_equal(y, getattr(again, f"y_{part}"))
        assert not np.array_equal(X, getattr(other, f"X_{part}"))


@pytest.mark.usefixtures("small")
def test_splits_are_disjoint_digits_with_their_own_labels(mnist_folder, written):
    images, labels = written
    label_of = {_crop(image): label for image, label in zip(images, labels, strict=True)}
    assert len(label_of) == len(images)  # a digit is known by its bounding box, wherever it is shifted
    data = mnist_variation("trans", 0, mnist_folder)
    X = np.concatenate([data.X_train, data.X_valid, data.X_test])
    seen = [_crop((x * 255).round().astype(np.uint8)) for x in X]
    assert len(set(seen)) == 500
    assert [label_of[s] for s in seen] == [*data.y_train, *data.y_valid, *data.y_test]


def _crop(image):
    y, x = np.nonzero(image)
    box = image[y.min() : y.max() + 1, x.min() : x.max() + 1]
    return box.shape, box.tobytes()


@pytest.mark.usefixtures("small")
def test_what_is_made_says_of_what(mnist_folder, monkeypatch):
    data = mnist_variation("rot-bgimg", 5, mnist_folder)
    assert data.provenance == "stand-in"  # the small digits are not the published ones
    assert all(part in data.source for part in ("seed 5", str(mnist_folder), "scikit-learn"))
    monkeypatch.setattr(dataset, "fingerprint", lambda *_: dataset.OFFICIAL["mnist"])
    assert mnist_variation("scale", 0, mnist_folder).provenance == "rebuilt"


def test_too_few_digits_are_refused(mnist_folder):
    with pytest.raises(DataCorrupt, match=r"hold 1,797 digits and a variation takes 62,000"):
        mnist_variation("scale", 0, mnist_folder)


@pytest.fixture
def amat_folder(written, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SIZES", (20, 10, 25))
    images, labels = written
    rows = np.column_stack([images[:55].reshape(55, -1) / 255, labels[:55]])
    for name in AMAT.values():
        np.savetxt(tmp_path / f"{name}_train_valid.amat", rows[:30], "%.9g")
        np.savetxt(tmp_path / f"{name}_test.amat", rows[30:], "%.9g")
    return tmp_path


@pytest.mark.parametrize("name", AMAT)
def test_official_files_are_read_as_they_are(name, amat_folder, written):
    data = mnist_variation(name, 7, amat_folder)
    X = np.concatenate([data.X_train, data.X_valid, data.X_test])
    assert_allclose(X, written[0][:55] / 255, atol=1e-7)
    assert_array_equal([*data.y_train, *data.y_valid, *data.y_test], written[1][:55])
    assert (len(data.X_train), len(data.X_valid), data.provenance) == (20, 10, "official")
    assert "Larochelle" in data.source


def test_half_of_the_official_files_is_not_enough(amat_folder):
    (amat_folder / f"{AMAT['rot']}_test.amat").unlink()
    with pytest.raises(DataMissing, match=f"needs {AMAT['rot']}_test.amat beside"):
        mnist_variation("rot", 0, amat_folder)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda t: t[:-400], "is damaged"),
        (lambda t: t[: t.rindex("\n", 0, -1) + 1], "holds 29 lines of 785"),
        (lambda t: "\n".join("9 " + line for line in t.splitlines()), "of 786 numbers"),
        (lambda t: "7" + t[1:], "pixels from 0 to 7"),
        (lambda t: "<html>", "is damaged"),
    ],
)
def test_damaged_official_files_are_refused_by_name(damage, told, amat_folder):
    path = amat_folder / f"{AMAT['rot']}_train_valid.amat"
    path.write_text(damage(path.read_text()))
    with pytest.raises(DataCorrupt, match=told) as caught:
        mnist_variation("rot", 0, amat_folder)
    assert str(path) in str(caught.value)
