from math import cos, log, pi, radians, sin

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from orbitpool import transforms as T
from orbitpool.transforms.motions import in_words, matrices, motion_of, reach, read, weigh

F64 = torch.float64
NOT = torch.tensor([False])
MOVED = {"turn": 0.37, "scale": 0.21, "stretch": 0.1, "shear": 0.2, "down": 0.4, "right": -0.7}


def motions(**numbers):
    names = ("turn", "scale", "stretch", "shear", "down", "right")
    return torch.tensor([[numbers.get(name, 0.0) for name in names]], dtype=F64)


def test_motions_are_the_families_at_the_same_numbers():
    turns = T.rotations((9, 12), 16, pi / 8)
    made = [matrices(motions(turn=pi / 8 * k), NOT, (9, 12), (9, 12))[0] for k in range(-7, 9)]
    assert_close(torch.stack(made), turns.to_dense())
    inside = T.rotations(6, 5, 0.3, field=9, border="zero")
    made = [matrices(motions(turn=0.3 * k), NOT, (9, 9), (6, 6), clamp=False)[0] for k in range(-2, 3)]
    assert_close(torch.stack(made), inside.to_dense())
    made = [matrices(motions(scale=log(20 / size)), NOT, (28, 28), (20, 20))[0] for size in (28, 26, 24, 22, 20)]
    assert_close(torch.stack(made), T.scalings(28, 20, 2).to_dense())
    made = [matrices(motions(down=1 - y, right=1.5 - x), NOT, (7, 8), (5, 5))[0] for y in range(3) for x in range(4)]
    assert_close(torch.stack(made), T.translations((7, 8), 5).to_dense())
    assert_close(matrices(motions(), ~NOT, (4, 5), (4, 5)), T.mirrors((4, 5))[1].to_dense())


def test_quarter_turns_are_exact_permutations():
    made = matrices(motions(turn=pi / 2), NOT, (28, 28), (28, 28))
    assert set(made.unique().tolist()) == {0.0, 1.0}


def test_a_shift_goes_where_its_name_says_and_a_shear_leans_to_the_right_at_the_top():
    image = torch.zeros(9, 9, dtype=F64)
    image[4, 4] = 1
    moved = (matrices(motions(down=1, right=2), NOT, (9, 9), (9, 9), clamp=False)[0] @ image.flatten()).view(9, 9)
    assert moved.argmax() == 5 * 9 + 6
    post = torch.zeros(9, 9, dtype=F64)
    post[:, 4] = 1
    leaning = (matrices(motions(shear=0.5), NOT, (9, 9), (9, 9), clamp=False)[0] @ post.flatten()).view(9, 9)
    assert [int(row.argmax()) for row in leaning[[0, 4, 8]]] == [6, 4, 2]


@pytest.mark.parametrize("clamp", [True, False])
def test_slopes_are_small_where_antialiasing_begins_and_nothing_is_outside(clamp):
    """Pixels of a turned window lie outside the field; none of them should come or go by growing a little."""
    _, _, slopes = weigh(motions(turn=0.3), NOT, (16, 16), (16, 16), clamp, free=range(6))
    assert max(float(slope.abs().max()) for slope in slopes) < 20


def test_a_motion_that_shrinks_all_away_needs_no_more_than_the_field():
    for clamp in (True, False):
        pixels, weights, _ = weigh(motions(scale=-9.0), NOT, (6, 6), (4, 4), clamp)
        assert pixels.shape[2] <= 13**2
        assert weights.isfinite().all()


@pytest.mark.parametrize("at", [MOVED, {}])
@pytest.mark.parametrize("clamp", [True, False])
def test_slopes_are_finite_differences(at, clamp):
    """Also at no motion at all, where interpolation has a corner at every pixel."""
    start, shapes = motions(**at), ((7, 8), (5, 6))
    pixels, _, found = weigh(start, NOT, *shapes, clamp, free=range(6))
    for slope, step in zip(found, 1e-5 * torch.eye(6, dtype=F64), strict=True):
        high, low = (matrices(start + way * step, NOT, *shapes, clamp) for way in (1, -1))
        dense = torch.zeros_like(high).scatter_add_(2, pixels, slope)
        assert_close(dense, (high - low) / 2e-5, rtol=1e-3, atol=1e-3)


@given(
    st.floats(-3.1, 3.1), st.floats(-0.3, 0.3), st.floats(-0.2, 0.2), st.floats(-0.3, 0.3),
    st.floats(-2, 2), st.floats(-2, 2), st.booleans(),
)  # fmt: skip
def test_a_motion_is_read_back_from_its_operator(turn, scale, stretch, shear, down, right, mirrored):
    true = torch.tensor([[turn, scale, stretch, shear, down, right]], dtype=F64)
    T_s = matrices(true, torch.tensor([mirrored]), (14, 14), (10, 10))[0]
    found, flipped, misfit = read(T_s, (14, 14), (10, 10))
    assert flipped == mirrored
    assert misfit < 1e-6
    assert_close(found, true[0], atol=1e-3, rtol=0)


def test_an_affine_map_is_a_motion():
    a = 0.4
    line = torch.tensor([[cos(a), -sin(a)], [sin(a), cos(a)], [0.0, 0.0]], dtype=F64)
    middle = torch.tensor([3.0, 3.0], dtype=F64)
    line[2] = middle - middle @ line[:2]
    motion, mirrored = motion_of(line, (7, 7), (7, 7))
    assert not mirrored
    assert_close(motion, motions(turn=a)[0])


def test_words():
    assert in_words(motions()[0], False) == "identity"
    assert in_words(motions(turn=radians(45.01))[0], False) == "turn by 45 degrees"
    assert in_words(motions(turn=-pi)[0], False) == "turn by 180 degrees"
    assert in_words(motions(turn=0.3, scale=log(0.8))[0], True) == "mirror, turn by 17.2 degrees, scale by 0.8"
    assert in_words(motions(down=-1.5, right=2)[0], False) == "shift by 1.5 up and 2 right"


def test_reach_is_how_far_a_window_is_moved():
    places = np.stack(np.meshgrid(np.arange(28.0), np.arange(28.0)), -1).reshape(-1, 2) - 13.5
    assert reach((28, 28))[0] == pytest.approx(np.sqrt((places**2).sum(1).mean()))


def test_a_learned_set_is_its_start_until_it_is_told_otherwise():
    start = T.union(T.rotations(10, 5, 0.3, field=12), T.scalings(12, 10, 1), T.translations(12, 10, 2))
    learned = T.learned(start)
    assert learned.families == ("turn", "scale", "shift")
    assert (learned.labels, len(learned)) == (start.labels, len(start))
    assert_close(learned.at(learned.start).to_dense(), start.to_dense(), atol=1e-6, rtol=0)
    assert "turn by -34.4 degrees" in learned.at(learned.start).labels
    assert learned != start
    assert learned == T.learned(start)
    assert learned != T.learned(start, learning_rate=0.5)
    assert "learns turn, scale, shift" in repr(learned)


def test_learned_sets_do_not_lose_their_learning_in_other_sets():
    turns, mirrors = T.rotations(6, 3, 0.3), T.mirrors(6)
    for combine in (T.union, T.compose):
        for sets in ((T.learned(turns), mirrors), (mirrors, T.learned(turns))):
            with pytest.raises(TypeError, match=r"learns its poses; make one set .* first, then `learned`"):
                combine(*sets)
        assert len(T.learned(combine(turns, mirrors))) in (4, 6)


def test_sets_that_cannot_be_learned_are_refused():
    with pytest.raises(ValueError, match=r"'matrix 0' is off by .* from every turn"):
        T.learned(T.from_matrices(np.random.default_rng(0).normal(size=(36, 36)), 6, 6))
    with pytest.raises(ValueError, match="give a set of transformations of images"):
        T.learned(T.time_shifts(11, 9))
    with pytest.raises(ValueError, match="families is 'spin'; give some of 'turn'"):
        T.learned(T.rotations(6, 3, 0.1), families="spin")
    with pytest.raises(ValueError, match="learning_rate is -1; give a number of pixels"):
        T.learned(T.rotations(6, 3, 0.1), learning_rate=-1)
    with pytest.raises(ValueError, match="every is 0; it must be"):
        T.learned(T.rotations(6, 3, 0.1), every=0)
