from math import ceil, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from scipy import ndimage

from orbitpool import transforms as T

sides = st.integers(1, 9)


def patch(photographs, shape, n=3):
    """Real image patches of a shape, (n, rows * columns)."""
    rng = np.random.default_rng(0)
    corners = rng.integers(0, [photographs.shape[1] - shape[0], photographs.shape[2] - shape[1]], size=(n, 2))
    return np.stack([photographs[0, y : y + shape[0], x : x + shape[1]].ravel() for y, x in corners])


@given(st.tuples(sides, sides), st.tuples(sides, sides), st.integers(1, 4))
def test_translations_are_exact_crops(window, slack, stride):
    field = (window[0] + slack[0], window[1] + slack[1])
    image = np.random.default_rng(0).normal(size=field)
    crops = np.lib.stride_tricks.sliding_window_view(image, window)[::stride, ::stride]
    moved = T.translations(field, window, stride).apply(image.ravel())
    assert_array_equal(moved, crops.reshape(-1, window[0] * window[1]))


def test_time_shifts_crop_frames_and_keep_features_together():
    sequence = np.random.default_rng(0).normal(size=(11, 39))
    moved = T.time_shifts(11, 9).apply(sequence.ravel())
    assert_array_equal(moved, [sequence[s : s + 9].ravel() for s in range(3)])


@pytest.mark.parametrize(("border", "mode"), [("edge", "nearest"), ("zero", "grid-constant")])
@pytest.mark.parametrize("shape", [(28, 28), (13, 20)])
def test_rotations_equal_scipy(photographs, shape, border, mode):
    images = patch(photographs, shape)
    turns = T.rotations(shape, count=16, step=pi / 8, border=border)
    centre = (np.array(shape) - 1) / 2
    for s, angle in enumerate(pi / 8 * np.arange(-7, 9)):
        back = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        for image, moved in zip(images, turns.apply(images)[:, s], strict=True):
            expected = ndimage.affine_transform(
                image.reshape(shape), back, centre - back @ centre, order=1, mode=mode, prefilter=False
            )
            assert_allclose(moved.reshape(shape), expected, atol=1e-7)


def test_a_positive_turn_is_anticlockwise_as_in_pillow(photographs):
    image = photographs[0, 100:141, 200:241]
    (angle,) = T.rotations(41, count=3, step=pi / 6)[2].apply(image.ravel())
    expected = np.asarray(Image.fromarray(image.astype(np.float32)).rotate(30, Image.Resampling.BILINEAR))
    assert_allclose(angle.reshape(41, 41)[12:-12, 12:-12], expected[12:-12, 12:-12], atol=1e-3)


def test_a_window_turning_in_a_larger_field_takes_real_pixels(photographs):
    field = patch(photographs, (12, 12), 1)[0]
    inside = T.rotations(8, count=5, step=pi / 12, field=12).apply(field)
    whole = T.rotations(12, count=5, step=pi / 12).apply(field).reshape(5, 12, 12)
    assert_allclose(inside, whole[:, 2:10, 2:10].reshape(5, 64), atol=1e-12)
    assert_array_equal(
        T.rotations(8, count=5, step=pi / 12, field=12, border="zero").to_dense(),
        T.rotations(8, count=5, step=pi / 12, field=12).to_dense(),
    )


@pytest.mark.parametrize("count", [1, 2, 3, 5, 16])
def test_rotations_come_in_the_authors_order(count):
    steps = np.arange(1 - ceil(count / 2), count - ceil(count / 2) + 1)
    labels = T.rotations(4, count, pi / 36).labels
    assert [float(label.split()[1].rstrip("°")) for label in labels] == [5.0 * k for k in steps]


@pytest.mark.parametrize("size", [8, 11])
def test_quarter_turns_are_exact_permutations(size):
    T90 = T.rotations(size, count=4, step=pi / 2).to_dense().numpy()
    image = np.random.default_rng(0).normal(size=(size, size))
    for k, matrix in zip((-1, 0, 1, 2), T90, strict=True):
        assert_array_equal(matrix @ image.ravel(), np.rot90(image, k).ravel())


@pytest.mark.parametrize(
    ("field", "window", "step"), [(28, 20, 2), (8, 6, 2), (8, 6, 1), (9, 4, 3), ((10, 14), (6, 8), 2)]
)
def test_scalings_equal_pillow(photographs, field, window, step):
    around, to = T.scalings(field, window, step).field_shape, T.scalings(field, window, step).window_shape
    image = patch(photographs, around, 1)[0]
    moved = T.scalings(field, window, step).apply(image)
    for level, small in enumerate(moved):
        top, left = level * step / 2, level * step / 2
        expected = Image.fromarray(image.reshape(around).astype(np.float32)).resize(
            to[::-1], Image.Resampling.BILINEAR, box=(left, top, around[1] - left, around[0] - top)
        )
        assert_allclose(small.reshape(to), expected, atol=1e-6)
    assert len(moved) == min(r - w for r, w in zip(around, to, strict=True)) // step + 1


@given(st.integers(1, 7), st.integers(0, 5), st.integers(1, 3), st.floats(-4, 4))
def test_rows_of_scalings_and_edge_rotations_sum_to_one(window, slack, step, angle):
    field = window + slack
    for transforms in (T.scalings(field, window, step), T.rotations(window, 3, angle, field=field)):
        weights = transforms.to_dense().numpy()
        assert_allclose(weights.sum(-1), 1)
        assert weights.min() >= 0


def test_zero_padded_square_operators_shift_in_zeros():
    square = T.compose(T.translations(7, 5), T.pad(5, 7))
    image = np.arange(1.0, 26).reshape(5, 5)
    assert square.field_shape == square.window_shape == (5, 5)
    for (dy, dx), moved in zip(np.ndindex(3, 3), square.apply(image.ravel()), strict=True):
        assert_array_equal(moved.reshape(5, 5), ndimage.shift(image, (1 - dy, 1 - dx), order=0))


def test_mirrors_and_identity():
    image = np.arange(12.0).reshape(3, 4)
    assert_array_equal(T.mirrors((3, 4)).apply(image.ravel()), [image.ravel(), image[:, ::-1].ravel()])
    assert_array_equal(T.identity((3, 4)).apply(image.ravel()), [image.ravel()])


def test_sets_stay_small():
    assert T.rotations(64, count=36, step=pi / 18).nbytes < 10e6


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: T.translations(6, 8), "window 8×8 does not fit into 6×6; translations need window <= field"),
        (lambda: T.scalings((6, 9), (6, 10), 1), "window 6×10 does not fit into 6×9; scalings need"),
        (lambda: T.rotations(8, 4, 0.1, field=6), "window 8×8 does not fit into 6×6; rotations need"),
        (lambda: T.time_shifts(9, 11), "window 11 does not fit into 9; time shifts need window <= frames"),
        (lambda: T.rotations(8, 0, 0.1), "count is 0; it must be a whole number, 1 or more"),
        (lambda: T.rotations(8, 2.5, 0.1), "count is 2.5"),
        (lambda: T.rotations(8, 4, float("nan")), "step is nan"),
        (lambda: T.rotations(8, 4, None), "step is None"),
        (lambda: T.identity(2.5), "field is 2.5; it must be a whole number"),
        (lambda: T.identity("28"), "field is '28'; it must be"),
        (lambda: T.identity(None), "field is None"),
        (lambda: T.rotations(8, 4, 0.1, border="wrap"), "border is 'wrap'; choose 'edge'"),
        (lambda: T.translations(8, 6, 0), "stride is 0"),
        (lambda: T.scalings(8, 6, -1), "step is -1"),
        (lambda: T.identity(0), "field is 0"),
        (lambda: T.identity((2, 3, 4)), r"field is \(2, 3, 4\); give one number or \(frames,\) or \(rows, columns\)"),
        (lambda: T.translations((9,), 6), r"field is \(9,\); give one number or \(rows, columns\)"),
        (lambda: T.pad(8, 6), "window 6×6 is smaller than field 8×8; padding needs window >= field"),
    ],
)
def test_bad_sizes_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()
