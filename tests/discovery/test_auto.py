"""Which transformations data has, on data where that is known."""

import json
from math import pi

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from PIL import Image
from scipy import ndimage
from sklearn.datasets import load_digits

from orbitpool import TIOMP, TIRBM, ConvFeatures
from orbitpool.discovery import Discovery, discover
from orbitpool.discovery.auto import conclude
from orbitpool.discovery.candidates import Move
from orbitpool.discovery.picture import explained
from orbitpool.discovery.telling import overlaps
from orbitpool.together import seed_of


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


def test_what_torch_makes_of_plain_numbers_does_not_matter(brief, upright_digits):
    expected, before = discover(upright_digits, random_state=0).findings, torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert discover(upright_digits, random_state=0).findings == expected
    finally:
        torch.set_default_dtype(before)


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


def test_a_discovery_is_shown_in_words(turned):
    assert repr(turned) == f"<Discovery: {turned.words()}>"


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
