from math import tau

import numpy as np
import pytest
from numpy.testing import assert_allclose

from orbitpool import transforms as T


def by_hand(maps, quarters):
    """Maps (N, rows, columns, poses, C) turned by quarters: places turn, and poses take what is so far on."""
    return np.roll(np.rot90(maps, quarters, (1, 2)), -quarters * maps.shape[3] // 4, axis=3)


@pytest.mark.parametrize(("side", "poses", "count"), [(5, 4, 4), (6, 8, 8), (5, 16, 8), (4, 8, 16)])
def test_quarter_turns_are_exact(side, poses, count):
    turned, maps = T.turned_maps(side, poses, count), np.random.default_rng(0).normal(size=(3, side, side, poses, 2))
    assert turned.field_shape == turned.window_shape == (side, side, poses)
    moved = dict(zip(turned.labels, np.moveaxis(turned.apply(maps.reshape(3, -1)), 1, 0), strict=True))
    for quarters, label in ((0, "rotate 0°"), (1, "rotate +90°"), (2, "rotate +180°"), (-1, "rotate -90°")):
        assert_allclose(moved[label].reshape(maps.shape), by_hand(maps, quarters), atol=1e-12)


def test_turns_between_poses_mix_the_two_that_are_near():
    maps = np.random.default_rng(0).normal(size=(1, 1, 1, 8, 1))
    turned = T.turned_maps(1, 8, 32)
    step = turned.apply(maps.reshape(1, -1))[0, turned.labels.index("rotate +11.25°")]
    assert_allclose(step, 0.75 * maps.ravel() + 0.25 * np.roll(maps.ravel(), -1))


def test_a_window_turns_inside_a_larger_map():
    turned, maps = T.turned_maps(3, 4, field=5), np.random.default_rng(0).normal(size=(2, 5, 5, 4, 3))
    assert (turned.field_shape, turned.window_shape) == ((5, 5, 4), (3, 3, 4))
    quarter = turned.apply(maps.reshape(2, -1))[:, turned.labels.index("rotate +90°")]
    assert_allclose(quarter.reshape(2, 3, 3, 4, 3), by_hand(maps, 1)[:, 1:4, 1:4], atol=1e-12)


def test_places_turn_as_images_do():
    turned, turns = T.turned_maps(7, 1, 12), T.rotations(7, 12, tau / 12, border="zero")
    assert turned.labels == turns.labels
    assert_allclose(turned.to_dense(), turns.to_dense())


@pytest.mark.parametrize(("given", "says"), [((5, 0), "poses is 0"), ((5, 4, 0.5), "count is 0.5"), ((0, 4), "window")])
def test_odd_sizes_are_refused(given, says):
    with pytest.raises(ValueError, match=says):
        T.turned_maps(*given)


def test_each_turn_is_there_at_each_scale():
    turned, maps = T.turned_maps(5, 4, zooms=(0.5, 1, 2)), np.random.default_rng(0).normal(size=(1, 5, 5, 4, 1))
    assert turned.labels[:3] == ("rotate -90°, zoom 0.5", "rotate -90°", "rotate -90°, zoom 2")
    moved = dict(zip(turned.labels, turned.apply(maps.reshape(1, -1))[0].reshape(-1, 5, 5, 4), strict=True))
    assert_allclose(moved["rotate 0°, zoom 2"][1:4, 1:4], maps[0, ::2, ::2, :, 0])
    assert_allclose(moved["rotate 0°, zoom 0.5"][::2, ::2], maps[0, 1:4, 1:4, :, 0])
    assert_allclose(
        moved["rotate +90°, zoom 0.5"], by_hand(moved["rotate 0°, zoom 0.5"][None, ..., None], 1)[0, ..., 0]
    )
    for zooms in ((), 0.5, (0.0,), (np.nan,), "x"):
        with pytest.raises(ValueError, match="give one or more scales, each greater than 0"):
            T.turned_maps(5, 4, zooms=zooms)


def test_each_turn_is_there_at_each_shift():
    maps = np.random.default_rng(0).normal(size=(5, 5, 4))
    turned = T.turned_maps(3, 4, field=5, shifts=((0, 0), (1, 0), (0, -0.5)))
    assert turned.labels[3:6] == ("rotate 0°", "rotate 0°, shift (1, 0)", "rotate 0°, shift (0, -0.5)")
    still, down, left = turned.apply(maps.reshape(1, -1))[0].reshape(-1, 3, 3, 4)[3:6]
    assert_allclose(still, maps[1:4, 1:4])
    assert_allclose(down, maps[2:5, 1:4])
    assert_allclose(left, (maps[1:4, 1:4] + maps[1:4, 0:3]) / 2)
    for shifts in ((), (0, 1), ((0, np.inf),), None):
        with pytest.raises(ValueError, match="give one or more pairs of numbers"):
            T.turned_maps(5, 4, shifts=shifts)
