"""Settings chosen from images."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from orbitpool import TIRBM, ConvFeatures
from orbitpool import transforms as T
from orbitpool.userdata.choosing import Look, choose_poses, make_model


def images(*sizes, grey=True, drawn=True):
    rng = np.random.default_rng(0)
    grains = [rng.integers(0, 2, (*size, 1)) * 255 if drawn else rng.integers(60, 200, (*size, 1)) for size in sizes]
    return [g.repeat(3, 2).astype(np.uint8) if grey else (g * [1, 0.5, 0.3]).astype(np.uint8) for g in grains]


def choose(*sizes, K=10, **options):
    return make_model(Look.at(images(*sizes, **options)), "combined", {"n_components": K, "n_iter": 3}, 0, "cpu")


def test_small_drawings_of_one_size_are_learned_whole():
    model, words = choose(*[(28, 20)] * 3000)
    assert isinstance(model, TIRBM)
    assert (model.visible, model.transforms.field_shape, model.batch_size) == ("binary", (28, 20), 30)
    assert words.startswith("learning them whole, with binary units; 10 filters in ")


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ([(28, 28), (28, 30)], {}),
        ([(41, 41)], {}),
        ([(28, 28)], {"grey": False}),
        ([(28, 28)], {"drawn": False}),
    ],
)
def test_all_others_by_patches(sizes, options):
    model, words = choose(*sizes, **options)
    assert isinstance(model, ConvFeatures)
    assert (model.learner.visible, model.learner.transforms.field_shape, model.stride) == ("gaussian", (8, 8), 1)
    assert ("in grey, with Gaussian units" if options.get("grey", True) else "in colour") in words


def test_large_images_are_encoded_at_fewer_places_and_many_poses_in_small_batches():
    assert choose((64, 64))[0].stride == 2
    assert choose((64, 64), K=100_000)[0].learner.batch_size == 33


def test_what_is_seen_is_said():
    seen = Look.at(images((20, 20), (30, 64)) + images((25, 25), grey=False))
    assert seen.in_words() == "3 images of 20×20 to 30×64 pixels, 1 of them in colour"


def test_transformations_by_name_and_out_of_a_file(tmp_path):
    counts = {"combined": 15, "rotation": 16, "translation": 9, "scaling": 3, "none": 1}
    assert {name: len(choose_poses(name, (28, 28), True)) for name in counts} == counts
    assert len(choose_poses("rotation", (8, 8), False)) == 5
    turns = T.rotations(6, 3, 0.2, field=8)
    np.save(tmp_path / "turns.npy", turns.to_dense())
    poses = choose_poses(str(tmp_path / "turns.npy"), (8, 8), False)
    assert (poses.field_shape, poses.window_shape) == ((8, 8), (6, 6))
    assert_allclose(poses.to_dense(), turns.to_dense())
    with pytest.raises(ValueError, match=r"has shape \(3, 36, 64\); give \(S, D2, D1\), where D1 is 9×9 = 81"):
        choose_poses(str(tmp_path / "turns.npy"), (9, 9), False)
    with pytest.raises(ValueError, match=r"'turns'; choose one of 'auto', 'combined', .*or give a \.npy file"):
        choose_poses("turns", (8, 8), False)
