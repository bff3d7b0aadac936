"""From overlaps to ranges, and from ranges to sets."""

from math import pi

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbitpool import transforms as T
from orbitpool.discovery.ranges import BUDGET, Ranges, ranges, reach


def test_the_sets_that_the_paper_chose_by_hand_come_out_of_their_ranges():
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
    poses = ranges(found, field, field, rim=int(patch)).transforms()
    assert 1 <= len(poses) <= BUDGET
    assert poses.field_shape == field
    assert min(poses.window_shape) > 0
    assert len(set(poses.labels)) == len(poses)
