from math import pi

import numpy as np
import pytest
from PIL import Image

from orbitpool import transforms as T
from orbitpool.discovery import draw_operators


def test_operators_are_drawn_with_their_grids_and_what_they_see(turned_digits, tmp_path):
    """Tiles are the digit itself, and the digit as each operator sees it, to the shade."""
    image, turns = turned_digits.X_train[3], T.rotations(16, 2, pi / 2)
    path = draw_operators(turns, image, tmp_path / "sheet.png")
    sheet = np.asarray(Image.open(path).convert("RGB")).astype(int)
    drawn = (np.abs(sheet - (0xD9, 0x5F, 0x02)).sum(2) == 0).sum()
    assert drawn > 2 * 100  # lines of two grids
    tall, left, top = 112 + 2 * 10 + 12 + 6, 2 * 10 + 112, 3 * 10 + 2 * 12 + 6
    for s, seen in enumerate((image, np.rot90(image.reshape(16, 16)))):
        tile = sheet[top + s * tall :, left:][:112, :112, 0]
        expected = np.kron(seen.reshape(16, 16), np.ones((7, 7)))
        assert np.abs(tile - 255 * (expected - image.min()) / np.ptp(image)).max() <= 1


def test_no_half_picture_is_left(tmp_path):
    with pytest.raises(OSError, match="there"):
        draw_operators(T.mirrors(4), np.eye(4), tmp_path / "not" / "there" / "sheet.png")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("transforms", "image", "error", "message"),
    [
        (np.eye(4), np.eye(2), TypeError, "is a ndarray; give a set of operators"),
        (T.mirrors(4), np.eye(5), ValueError, r"the image has shape \(5, 5\); these operators act on grey images of 4"),
        (T.time_shifts(4, 3), np.ones(4), ValueError, "these operators act on grey images"),
    ],
)
def test_what_cannot_be_drawn_is_refused(transforms, image, error, message, tmp_path):
    with pytest.raises(error, match=message):
        draw_operators(transforms, image, tmp_path / "sheet.png")
