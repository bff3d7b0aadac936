from math import pi, radians

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import orbitpool
from orbitpool import TIRBM
from orbitpool import transforms as T
from orbitpool.discovery import learn_transforms
from orbitpool.discovery.naming import name


@pytest.fixture(scope="module")
def patches(photographs):
    """3,000 real patches, (N, 14, 14), brightness taken out."""
    rng = np.random.default_rng(0)
    which, y, x = rng.integers(2, size=3000), rng.integers(400, size=3000), rng.integers(600, size=3000)
    cut = np.stack([photographs[i, a : a + 14, b : b + 14] for i, a, b in zip(which, y, x, strict=True)])
    return cut - cut.mean((1, 2), keepdims=True)


def pairs(images, true, seed=0):
    """Images, what one of the operators makes of each, and which one."""
    rng = np.random.default_rng(seed)
    X = images.reshape(len(images), -1)
    which = rng.integers(len(true), size=len(X))
    moved = true.apply(X)[np.arange(len(X)), which]
    return X, moved, which


def cosines(learned, true):
    """Between every learned and every true operator."""
    A, B = (S.to_dense().flatten(1) for S in (learned, true))
    return (A @ B.T / A.norm(dim=1)[:, None] / B.norm(dim=1)).numpy()


@pytest.mark.parametrize(
    ("true", "names"),
    [
        (T.rotations(14, 4, pi / 2), ["identity", "turn by -90", "turn by 90", "turn by 180"]),
        (T.translations(14, 12, 2), ["shift by 1 up and 1 left", "shift by 1 down and 1 left"]),
        (T.scalings(14, 10, 2), ["identity", "scale by 0.71", "scale by 0.83"]),
        (T.mirrors(14), ["identity", "mirror"]),
    ],
    ids=["turns", "shifts", "scales", "mirror"],
)
def test_operators_of_real_patches_are_found_and_named(patches, true, names):
    X, Y, _ = pairs(patches, true)
    learned = learn_transforms(X, Y, len(true), true.field_shape, true.window_shape, random_state=0)
    assert len(learned) == len(true)
    near = cosines(learned, true)
    assert sorted(near.argmax(1)) == list(range(len(true)))
    assert near.max(1).min() > 0.95
    for expected in names:
        assert any(label.startswith(expected) for label in learned.labels), (expected, learned.labels)


def test_unequal_turns_of_real_digits_are_found_to_three_degrees(turned_digits):
    angles = (-70, -33, 10, 55)
    true = T.union(*(T.rotations(16, 2, radians(a), border="zero")[1] for a in angles))
    X, Y, _ = pairs(np.concatenate([turned_digits.X_train] * 2).astype(float), true)
    learned = learn_transforms(X, Y, 4, 16, random_state=0)
    found = sorted(float(label.split()[2]) for label in learned.labels if label.startswith("turn"))
    assert_allclose(found, angles, atol=3)
    assert cosines(learned, true).max(1).min() > 0.95


def test_noise_and_pairs_without_a_law_are_borne(patches):
    true = T.rotations(14, 4, pi / 2)
    X, Y, _ = pairs(patches, true)
    rng = np.random.default_rng(1)
    Y = Y + 0.3 * Y.std() * rng.normal(size=Y.shape)
    lawless = rng.random(len(Y)) < 0.2
    Y[lawless] = Y[rng.permutation(len(Y))][lawless]
    learned = learn_transforms(X, Y, 4, 14, random_state=0)
    near = cosines(learned, true)
    assert sorted(near.argmax(1)) == [0, 1, 2, 3]
    assert near.max(1).min() > 0.95


def test_too_many_are_dropped_with_a_warning(patches):
    true = T.rotations(14, 2, pi / 2)
    X, Y, _ = pairs(patches, true)
    with pytest.warns(UserWarning, match="count is 5, but 2 different operators explain the pairs"):
        learned = learn_transforms(X, Y, 5, 14, random_state=0)
    assert learned.labels == ("identity", "turn by 90 degrees")


def test_channels_are_moved_alike_and_may_be_images(photographs):
    from sklearn.datasets import load_sample_images

    colour = np.stack(load_sample_images().images) / 255.0
    rng = np.random.default_rng(0)
    cut = np.stack(
        [colour[i % 2, y : y + 10, x : x + 10] for i, (y, x) in enumerate(rng.integers(400, size=(1500, 2)))]
    )
    cut -= cut.mean((1, 2), keepdims=True)
    moved = np.where(rng.random(1500)[:, None, None, None] < 0.5, cut, np.rot90(cut, axes=(1, 2)))
    learned = learn_transforms(cut, moved, 2, 10, random_state=0)
    assert learned.labels == ("identity", "turn by 90 degrees")
    same = learn_transforms(torch.from_numpy(cut), torch.from_numpy(moved), 2, 10, random_state=0)
    assert_allclose(same.to_dense(), learned.to_dense(), atol=1e-6)


def test_frames_that_come_later_are_found():
    """Features of sound are the channels; an operator on frames moves all of them alike."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(600, 13, 5)).cumsum(1)
    steps -= steps.mean(1, keepdims=True)
    start = rng.integers(3, size=600)
    Y = np.stack([s[a : a + 9] for s, a in zip(steps, start * 2, strict=True)])
    learned = learn_transforms(steps.reshape(600, -1), Y.reshape(600, -1), 3, (13,), (9,), random_state=0)
    assert set(learned.labels) == {"identity", "shift by 2 later", "shift by 2 earlier"}
    assert cosines(learned, T.time_shifts(13, 9, 2)).max(1).min() > 0.99


def test_pixels_that_never_vary_follow_the_flow_or_are_zero():
    """Digits leave the corners black: there the operator is interpolation at the continued flow."""
    rng = np.random.default_rng(0)
    images = np.zeros((1200, 14, 14))
    images[:, 4:10, 4:10] = rng.random((1200, 6, 6))
    X = images.reshape(1200, -1)
    true = T.rotations(14, 2, 0.5, border="zero")[1]
    learned = learn_transforms(X, true.apply(X)[:, 0], 1, 14, random_state=0)
    assert cosines(learned, true).item() > 0.97
    shifted = np.zeros_like(images)
    shifted[:, :, 3:] = images[:, :, :-3]
    shift = learn_transforms(images, shifted, 1, 14, random_state=0)
    assert shift.labels == ("shift by 3 right",)
    assert not shift.to_dense()[0].view(14, 14, -1)[:, :2].any()


def test_learned_operators_work_in_a_model_and_its_file(turned_digits, tmp_path):
    X, Y, _ = pairs(turned_digits.X_train.astype(float), T.rotations(16, 4, pi / 2))
    learned = learn_transforms(X, Y, 4, 16, random_state=0)
    model = TIRBM(20, learned, n_iter=2, batch_size=50, random_state=0).fit(X)
    model.save(tmp_path / "model.safetensors")
    again = orbitpool.load(tmp_path / "model.safetensors")
    assert again.transforms == learned
    assert_allclose(again.transform(X[:9]), model.transform(X[:9]))


def test_the_same_seed_gives_the_same_set(patches):
    X, Y, _ = pairs(patches[:400], T.mirrors(14))
    assert learn_transforms(X, Y, 2, 14, random_state=3) == learn_transforms(X, Y, 2, 14, random_state=3)


def test_what_is_no_motion_is_called_operator():
    rows = torch.from_numpy(np.random.default_rng(0).permutation(np.eye(36)))
    assert name(rows, (6, 6), (6, 6))[0] == "operator"
    assert name(-torch.eye(36, dtype=torch.float64), (6, 6), (6, 6))[0] == "operator"
    assert name(torch.eye(9, dtype=torch.float64).flip(0), (9,), (9,))[0] == "operator"


def test_brightness_is_no_motion(patches):
    """Half as bright is as large as before."""
    learned = learn_transforms(patches, 0.5 * patches, 1, 14, random_state=0)
    assert learned.labels == ("identity, times 0.5",)
    turned = T.rotations(14, 2, pi / 6)[1].to_dense()[0]
    for gain, said in ((0.3, ", times 0.3"), (1, ""), (1.1, ""), (7, ", times 7")):
        assert name(gain * turned, (14, 14), (14, 14))[0] == f"turn by 30 degrees{said}"
    later = T.time_shifts(9, 5, 2)[0].to_dense()[0]
    assert name(3 * later, (9,), (5,))[0] == "shift by 2 later, times 3"


def test_operators_without_a_name_are_numbered_by_their_place(patches):
    rng = np.random.default_rng(0)
    scrambled = rng.permutation(196)
    X, Y, which = pairs(patches, T.mirrors(14))
    Y[which == 1] = X[which == 1][:, scrambled]
    learned = learn_transforms(X, Y, 2, 14, random_state=0)
    assert learned.labels == ("identity", "operator 1")


def test_noise_has_no_name():
    rng = np.random.default_rng(0)
    for scale in (0.01, 1, 100):
        for _ in range(20):
            noise = torch.from_numpy(scale * rng.normal(size=(64, 64)))
            assert name(noise, (8, 8), (8, 8))[0] == "operator"
            assert name(noise.abs(), (8, 8), (8, 8))[0] == "operator"
    corner = torch.zeros(64, 64, dtype=torch.float64)
    corner[:, 27] = 1  # all pixels take from one, as if it were made endlessly large
    assert name(corner, (8, 8), (8, 8))[0] == "operator"


UNRELATED = (
    r"pairs that were left out are nearer to their own input, moved, than to another in \d+% of cases, where 70%"
)


def test_pairs_that_have_nothing_in_common_are_refused():
    X, Y = np.random.default_rng(0).normal(size=(2, 300, 64))
    with pytest.raises(ValueError, match=UNRELATED + ".* check that row i of Y"):
        learn_transforms(X, Y, 2, 8, random_state=0)


@pytest.mark.parametrize(("pairs", "count"), [(1300, 2), (1300, 8), (200, 2)])
def test_images_that_are_alike_but_no_partners_are_refused(turned_digits, pairs, count):
    """Digits are bright in the middle, so that what operators make of any digit explains most of any other."""
    X = turned_digits.X_train[:pairs]
    with pytest.raises(ValueError, match=UNRELATED):
        learn_transforms(X, np.random.default_rng(0).permutation(X), count, 16, random_state=0)


def test_few_pairs_and_partners_in_noise_are_related(turned_digits):
    X, Y, _ = pairs(turned_digits.X_train.astype(float), T.rotations(16, 2, pi / 2, border="zero"))
    noisy = Y + Y.std() * np.random.default_rng(0).normal(size=Y.shape)
    assert len(learn_transforms(X, noisy, 2, 16, random_state=0)) == 2
    assert learn_transforms(X[:60], Y[:60], 2, 16, random_state=0).labels == ("identity", "turn by 90 degrees")


@pytest.mark.parametrize("scale", [1e-30, 1e20, 1e35])
def test_it_does_not_matter_how_large_numbers_are(patches, scale):
    X, Y, _ = pairs(patches[:400], T.mirrors(14))
    expected = learn_transforms(X, Y, 2, 14, random_state=0)
    found = learn_transforms(X * scale, Y * scale, 2, 14, random_state=0)
    assert_allclose(found.to_dense(), expected.to_dense(), atol=1e-4)


def test_inputs_that_do_not_vary_are_refused(patches):
    same, bright = np.ones((100, 14, 14)), np.random.default_rng(0).random((100, 1, 1))
    for X, Y, what in ((same, same, "inputs"), (bright * same, same, "inputs"), (patches[:100], same, "partners")):
        with pytest.raises(ValueError, match=f"all {what} are the same but for their brightness.*: give others"):
            learn_transforms(X, Y, 2, 14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Y": np.ones((60, 35))}, r"Y has shape \(60, 35\); a window of 6×6 needs \(N, 36 x channels\)"),
        ({"X": np.ones((60, 3, 6, 6))}, r"X has shape \(60, 3, 6, 6\), but the field is 6×6; give \(N, 6, 6\[, chan"),
        ({"X": np.ones((60, 4, 9))}, r"X has shape \(60, 4, 9\), but the field is 6×6"),
        ({"Y": np.ones((50, 36))}, "X has 60 rows of 1 channels and Y has 50 of 1"),
        ({"count": 4}, "60 pairs are too few for 4 operators; give at least 80"),
        ({"count": 0}, "count is 0; it must be a whole number, 1 or more"),
        ({"X": np.full((60, 36), np.nan)}, "X contains NaN or infinity"),
        ({"X": np.zeros((60, 36))}, "all of X is zero; give images before and after a change"),
        ({"field": 100}, "field 100×100 has 10000 pixels; operators are learned for 4096 at most"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(arguments, message):
    given = {"X": np.ones((60, 36)), "Y": np.ones((60, 36)), "count": 1, "field": 6} | arguments
    with pytest.raises(ValueError, match=message):
        learn_transforms(**given)
