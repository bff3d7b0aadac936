"""Images that are moved."""

from math import radians, sqrt

import pytest
import torch
from numpy.testing import assert_allclose

from orbitpool import transforms as T
from orbitpool.discovery.candidates import STILL, Move, candidates, moved, window_of

SIDE = 12


def images(generator, channels=1):
    return torch.rand(5, channels, 16, 16, generator=generator, dtype=torch.float64)


def through(x, poses):
    """The same by a transformation set of one."""
    return poses.apply(x[:, 0].flatten(1)).view(len(x), 1, SIDE, SIDE)


def test_moves_are_those_of_transformation_sets(generator):
    """In the same sense: what the network is taught is what filters do."""
    x = images(generator)
    moves = [STILL, Move("turn", 30.0), Move("shift down", 2.0), Move("shift right", 1.0), Move("mirror", 1.0)]
    middle = T.translations(16, SIDE)
    expected = [
        through(x, T.rotations(SIDE, 1, 0.0, field=16)),
        through(x, T.rotations(SIDE, 2, radians(30), field=16)[1]),
        through(x, middle[[middle.labels.index("shift (0, 2)")]]),
        through(x, middle[[middle.labels.index("shift (2, 1)")]]),
        through(x, T.rotations(SIDE, 1, 0.0, field=16)).flip(3),
    ]
    for number, result in enumerate(expected):
        which = torch.full((len(x),), number)
        assert_allclose(moved(x, which, moves, SIDE, None), result, atol=1e-12)


def test_scaling_shrinks_about_the_centre(generator):
    """A linear picture is known between its pixels."""
    y, x = torch.meshgrid(*(torch.arange(16, dtype=torch.float64) - 7.5,) * 2, indexing="ij")
    slope = (2 * x - 3 * y)[None, None]
    small = moved(slope, torch.tensor([0]), [Move("scale", 1.25)], 8, None)
    assert_allclose(small[0, 0], 1.25 * slope[0, 0, 4:12, 4:12], atol=1e-12)


def test_trifles_move_by_less_than_what_is_judged(generator):
    x = images(generator, channels=3)
    which = torch.zeros(5, dtype=torch.int64)
    still, trifle = (moved(x, which, [STILL], SIDE, g) for g in (None, generator))
    assert trifle.shape == (5, 3, SIDE, SIDE)
    assert not torch.equal(still, trifle)
    assert (still - trifle).abs().mean() < 0.5 * (still - still.flip(3)).abs().mean()


@pytest.mark.parametrize("field", [(28, 28), (16, 16), (32, 32), (20, 28), (8, 8)])
def test_no_candidate_needs_a_pixel_from_outside(field):
    half = (window_of(field) - 1) / 2
    corners = torch.tensor([[x, y, 1] for x in (-half, half) for y in (-half, half)], dtype=torch.float64)
    for move in candidates(field, ("turn", "shift down", "shift right", "scale", "mirror")):
        places = corners @ torch.tensor(move.matrix(), dtype=torch.float64).T
        assert places.abs().max() <= (min(field) - 1) / 2 + sqrt(2) / 2  # to less than a pixel


def test_tiny_images_are_refused():
    with pytest.raises(ValueError, match="4×5 pixels; it takes 6 a side"):
        candidates((4, 5), ("turn",))
