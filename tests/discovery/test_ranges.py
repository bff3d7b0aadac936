"""From overlaps to ranges, and from ranges to sets."""

from math import pi

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbitpool import transforms as T
from orbitpool.discovery.ranges import BUDGET, Ranges, ranges, reach


def test_ranges_make_the_sets_that_one_would_choose_by_hand():
    """Shifts and sizes of digits are the paper's; its 16 turns are 32 here, as in the row of Table 1 beside them."""
    assert Ranges((28, 28), shift=(2, 2)).transforms() == T.translations(28, 24, stride=2)
    assert Ranges((28, 28), scale=1.4).transforms() == T.scalings(28, 20, step=2)
    turns = Ranges((28, 28), turn=180).transforms()
    assert turns == T.rotations(28, count=32, step=pi / 16)


def test_nothing_found_is_one_pose():
    assert Ranges((9, 12)).transforms().leaves_alone


def test_a_range_ends_where_the_line_crosses_the_threshold_and_does_not_begin_again():
    assert reach((1, 2, 3), (0.9, 0.7, 0.5), 0.8) == pytest.approx(1.5)
    assert reach((1, 2, 3), (0.9, 0.7, 1.0), 0.8) == pytest.approx(1.5)
    assert reach((1.1, 1.2), (0.6, 0.2), 0.8, start=1.0) == 1.0
    assert reach((1, 2, 3), (0.9, 0.9, 0.8), 0.8) == 3


def test_a_mixture_is_a_product_within_the_budget_and_a_union_beyond():
    product = Ranges((28, 28), turn=20, scale=1.4).transforms()
    assert len(product) == 5 * 5
    assert product.labels[0] == "scale 28→20, then rotate -20°"
    union = Ranges((28, 28), turn=180, shift=(2, 2)).transforms()
    kinds = {label.split()[0] for label in union.labels}
    assert kinds == {"shift", "rotate"}
    assert not any("then" in label for label in union.labels)


@given(
    st.tuples(st.integers(8, 40), st.integers(8, 40)),
    st.floats(0, 180),
    st.tuples(st.floats(0, 0.15), st.floats(0, 0.15)),
    st.floats(1, 2**0.5),
    st.booleans(),
    st.booleans(),
)
def test_any_ranges_make_a_set_within_the_budget(field, turn, shares, scale, mirror, patch):
    pixels = [share * min(field) for share in shares]
    found = {"turn": turn, "shift down": pixels[0], "shift right": pixels[1], "scale": scale}
    found |= {"mirror": 1.0} if mirror else {}
    within = ranges(found, field, rim=int(patch))
    assert all(whole <= p for whole, p in zip(within.shift, pixels, strict=True))
    assert within.turn <= turn
    assert within.scale <= scale**2 + 1e-9
    poses = within.transforms()
    assert 1 <= len(poses) <= BUDGET
    _check_families(within, poses)
    assert poses.field_shape == field
    assert min(poses.window_shape) > 0
    assert len(set(poses.labels)) == len(poses)


def _check_families(within, poses):
    """What has a range has poses, and nothing else has."""
    labels = " ".join(poses.labels)
    moved = any(label.startswith("shift") and "shift (0, 0)" not in label for label in poses.labels)
    assert ("scale" in labels) == (within.scale > 1)
    assert ("mirror" in labels) == within.mirror
    assert any(word.startswith(("-", "+")) for word in labels.split()) == (within.turn > 0)
    assert moved or not any(within.shift)


@pytest.mark.parametrize("scale", [1.12, 1.25, 1.4])
@pytest.mark.parametrize("field", [(8, 8), (16, 16), (28, 28), (32, 20)])
def test_a_union_drops_no_family(field, scale):
    within = ranges({"turn": 180.0, "shift down": 3.0, "shift right": 3.0, "scale": scale}, field)
    assert within.scale > 1 or scale**2 < min(field) / (min(field) - max(1, round(min(field) / 14)))
    _check_families(within, within.transforms())


def test_pixels_of_long_images_are_not_stretched():
    assert ranges({"shift down": 1.0, "shift right": 1.0}, (8, 40)).shift == (1, 1)


@pytest.mark.parametrize("most", [2.0, 3.0, 8.0])
def test_a_range_is_half_of_what_happened(most):
    """Uniform to either side, images that are moved by d overlap by 1 - d / 2A."""
    amounts = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
    assert reach(amounts, [1 - d / (2 * most) for d in amounts], 0.75) == pytest.approx(most / 2)


def test_what_is_kept_is_what_poses_reach():
    within = ranges({"turn": 10.9, "shift down": 3.1, "scale": 1.3, "mirror": 1.0}, (28, 28))
    assert not within.reaches("turn", 10.0)  # less than a step
    assert within.shift == (2, 0)
    assert [within.reaches("shift down", d) for d in (2.0, 3.0)] == [True, False]
    assert within.scale == pytest.approx(28 / 18)
    assert [within.reaches("scale", d) for d in (1.2, 1.3)] == [True, False]
    assert within.reaches("mirror", 1.0)
