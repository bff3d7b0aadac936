from math import pi

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage

from orbitpool import transforms as T


def test_combined_set_of_the_paper_has_ten_distinct_operators():
    combined = T.union(T.translations(8, 6, 2), T.scalings(8, 6, 2), T.rotations(6, count=5, step=pi / 12, field=8))
    assert len(combined) == 10
    assert combined.labels[4:7] == ("scale 8→6", "scale 6→6", "rotate -30°")
    assert "rotate 0°" not in combined.labels  # the same operator as scale 6→6, which came first


def test_union_drops_what_a_set_repeats():
    full_circle_twice = T.rotations(5, count=8, step=pi / 2)
    assert T.union(full_circle_twice).labels == full_circle_twice.labels[:4]


def test_union_of_large_sets_and_of_rounded_ones():
    shifts = T.translations(32, 16)
    assert T.union(shifts, shifts) == shifts
    turns = T.rotations(5, 16, pi / 8)
    assert len(T.union(turns, turns.to(dtype=torch.float32))) == 16


def test_compose_is_every_product():
    outer, inner = T.rotations(5, 3, 0.2), T.translations(7, 5)
    both = T.compose(outer, inner)
    expected = [o @ i for i in inner.to_dense() for o in outer.to_dense()]
    assert_allclose(both.to_dense(), np.stack(expected), atol=1e-12)
    assert both.labels[2] == "shift (0, 0), then rotate +11.46°"
    assert T.compose(T.mirrors(5), T.identity(5)).labels == ("identity", "mirror")


def test_from_matrices_keeps_the_numbers():
    matrices = np.random.default_rng(0).normal(size=(3, 4, 6))
    given = T.from_matrices(matrices, field=(2, 3), window=2)
    assert_array_equal(given.to_dense(), matrices)
    assert (given.field_shape, given.window_shape, given.labels[2]) == ((2, 3), (2, 2), "matrix 2")
    assert T.from_matrices(matrices[0]).field_shape == (6,)


def test_from_function_takes_any_linear_function(photographs):
    buffer = np.empty((7, 8))

    def blur(image):
        buffer[:] = ndimage.gaussian_filter(image, 1.0)[1:-1, 2:-2]
        return buffer

    blurred = T.from_function(blur, (9, 12), (7, 8))
    image = photographs[1, 50:59, 60:72]
    assert blurred.labels == ("blur",)
    assert_allclose(blurred.apply(image.ravel())[0], blur(image).ravel(), atol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + 1,
        lambda x: np.clip(x, 0, 1),
        lambda x: x - x**2 / 1e3,
        lambda x: np.abs(x),
        lambda x: 1e-7 * np.abs(x),
        lambda x: np.clip(x, -60, 60),
        lambda x: x * 1j,
        lambda x: x / (x.max() + 1e-9),
        lambda x: np.full_like(x, np.nan),
    ],
)
def test_from_function_refuses_what_is_not_linear(f):
    with pytest.raises(ValueError, match=r"not linear: it is off by .* leave out clipping|returned shape \(\)"):
        T.from_function(f, 4, 4)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: T.union(), "union got 0 sets"),
        (lambda: T.union(T.identity(8), T.translations(8, 6)), "a set of 8×8 → 6×6 cannot join one of 8×8 → 8×8"),
        (lambda: T.compose(T.identity(8), T.translations(8, 6)), "inner set ends in 6×6 but the outer one starts"),
        (lambda: T.from_matrices(np.array([[np.nan]])), "matrix 0 holds NaN or infinity"),
        (lambda: T.from_matrices(np.zeros(3)), r"matrices have shape \(3,\)"),
        (lambda: T.from_matrices(np.zeros((0, 2, 2))), r"matrices have shape \(0, 2, 2\)"),
        (lambda: T.from_matrices(np.eye(4), field=3), "field 3×3 has 9 pixels but the matrices have 4"),
        (lambda: T.from_matrices(np.eye(4), labels=["a", "b"]), "2 labels for 1 matrices"),
        (lambda: T.from_matrices(np.eye(4), labels="a"), "give a list"),
        (lambda: T.from_matrices(np.eye(4) * 1j), "matrices are complex"),
        (lambda: T.from_function(lambda x: x[1:], 4, 4), r"returned shape \(3, 4\); a window of 4×4 needs \(4, 4\)"),
    ],
)
def test_what_does_not_fit_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()
