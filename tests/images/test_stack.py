"""Features that keep their poses, and layers on layers."""

from math import tau

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import orbitpool
from orbitpool import TIOMP, TIRBM, ConvFeatures, LinearSVM, Stack, TIAutoencoder
from orbitpool import transforms as T

TURNS = T.rotations(5, 8, tau / 8)
FIRST = [
    TIOMP(3, TURNS, two_sided=False, n_iter=2),
    TIOMP(3, TURNS, n_iter=2),
    TIRBM(3, TURNS, visible="gaussian", sigma=0.5, two_sided=True, n_iter=1),
    TIAutoencoder(3, TURNS, decoder="linear", learning_rate=0.01, n_iter=1),
]


def first_layer(learner=FIRST[0], grid=6, **options):
    return ConvFeatures(learner, n_patches=3000, grid=grid, poses="keep", output="map", random_state=0, **options)


def second_layer(whiten: float | None = 1.0):
    learner = TIOMP(10, T.turned_maps(6, 8), alpha=1.0, two_sided=False, n_iter=2)
    return ConvFeatures(learner, n_patches=300, grid=1, contrast=1e-3, whiten=whiten, precision="full", random_state=0)


def stack(**options):
    return Stack(first_layer(), second_layer(), random_state=0, **options)


@pytest.fixture(scope="module")
def images(turned_digits):
    return turned_digits.X_train[:60].reshape(-1, 16, 16)


@pytest.fixture(scope="module")
def fitted(images):
    return stack().fit(images)


@pytest.mark.parametrize("learner", FIRST, ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize("whiten", [0.1, None])
def test_the_map_of_a_turned_image_is_the_turned_map(whiten, learner, images):
    """The law that a second layer builds on: exact for quarter turns."""
    layer, turns = first_layer(learner, whiten=whiten).fit(images), T.turned_maps(6, 8)
    if hasattr(layer.learner_, "intercept_hidden_"):  # poses that data shows more often have learned larger biases
        bias = layer.learner_.intercept_hidden_
        bias[:] = bias.mean(1, keepdims=True)
    maps = layer.transform(images)
    assert maps.shape == (60, 6, 6, 8 * layer.learner_._n_features_out)
    for quarters, label in ((1, "rotate +90°"), (2, "rotate +180°")):
        turned = layer.transform(np.rot90(images, quarters, (1, 2)).copy())
        expected = turns.apply(maps.reshape(60, -1))[:, turns.labels.index(label)]
        assert_allclose(turned.reshape(60, -1), expected, atol=1e-4 * maps.max())
        assert np.abs(turned - maps).max() > 0.2 * maps.max()


@pytest.mark.parametrize("learner", FIRST, ids=lambda learner: type(learner).__name__)
def test_poses_apart_are_pooled_to_the_features(learner, images):
    """With a cell for each patch: the maximum over poses of what is above a threshold, or the sum of probabilities."""
    apart = first_layer(learner, grid=12).fit(images)
    pooled = clone(apart).set_params(poses="pool").fit(images).transform(images)
    poses = apart.transform(images).reshape(*pooled.shape[:3], 8, -1)
    assert_allclose(poses.max(3) if isinstance(learner, TIOMP) else poses.sum(3), pooled, atol=1e-5)


def test_maps_turn_only_if_cells_do(images):
    """Twelve places in five cells are three in the first and two in the last: these do not turn into each other."""
    layer, turns = first_layer(grid=5).fit(images), T.turned_maps(5, 8)
    turned = layer.transform(np.rot90(images, 1, (1, 2)).copy()).reshape(60, -1)
    expected = turns.apply(layer.transform(images).reshape(60, -1))[:, turns.labels.index("rotate +90°")]
    assert np.abs(turned - expected).max() > 0.1 * expected.max()


def test_features_of_a_stack_stay_when_images_are_turned(fitted, images):
    features = fitted.transform(images)
    assert features.shape == (60, 10)
    assert np.abs(features).max() > 1
    for quarters in (1, 2, 3):
        assert_allclose(fitted.transform(np.rot90(images, quarters, (1, 2)).copy()), features, atol=1e-3)
    assert fitted.second_.whitening_.shape == (6 * 6 * 24,) * 2
    by_one_layer = fitted.first_.transform(images) - fitted.first_.transform(np.rot90(images, 1, (1, 2)).copy())
    assert np.abs(by_one_layer).max() > 1


def test_layers_learn_one_after_the_other(fitted, images):
    first = first_layer().fit(images)
    second = second_layer().fit(first.transform(images))
    assert_array_equal(fitted.first_.learner_.components_, first.learner_.components_)
    assert_allclose(fitted.second_.learner_.components_, second.learner_.components_, atol=1e-6)
    assert_allclose(fitted.transform(images), second.transform(first.transform(images)), atol=1e-4)
    assert fitted.layers() == [fitted.first_, fitted.second_]
    few = stack(n_images=20).fit(images)
    assert_array_equal(few.first_.learner_.components_, first.learner_.components_)
    assert np.abs(few.second_.learner_.components_ - second.learner_.components_).max() > 1e-3


def test_kinds_of_images(fitted, images, monkeypatch):
    features = fitted.transform(images)
    assert_allclose(fitted.transform(list(images)), features, atol=1e-4)
    assert_allclose(fitted.transform(torch.from_numpy(images)), features, atol=1e-4)
    monkeypatch.setattr("orbitpool.images.stack.MAPS", 7 * 6 * 6 * 24)  # maps of seven images at a time
    assert_allclose(fitted.transform(images), features, atol=1e-4)
    assert_allclose(fitted.transform(list(images)), features, atol=1e-4)
    assert len(fitted.get_feature_names_out()) == 10


def test_a_list_may_hold_images_of_different_types(fitted, images):
    small, large = images[0].astype(np.float32), np.pad(images[1], ((2, 2), (1, 1))).astype(np.float64)
    each = np.concatenate([fitted.transform(image[None]) for image in (small, large)])
    for order in ([0, 1], [1, 0]):
        assert_allclose(fitted.transform([(small, large)[i] for i in order]), each[order], atol=1e-4)


def test_both_layers_give_features(fitted, images, tmp_path):
    both = stack(both=True).fit(images)
    below, above = np.split(both.transform(images), [24], axis=1)
    assert_allclose(above, fitted.transform(images), atol=1e-4)
    assert_allclose(below, fitted.first_.transform(images).mean((1, 2)), atol=1e-4)
    assert len(both.get_feature_names_out()) == 34
    both.save(tmp_path / "both")
    assert orbitpool.load(tmp_path / "both", "cpu").transform(images).shape == (60, 34)


def middle_layer(poses=8, **options):
    learner = TIOMP(4, T.turned_maps(3, poses), alpha=1.0, two_sided=False, n_iter=2)
    options = {"poses": "keep", "output": "map", "contrast": 1e-3, "whiten": None, "random_state": 0, **options}
    return ConvFeatures(learner, n_patches=500, grid=2, **options)


def last_layer():
    return ConvFeatures(TIOMP(5, T.turned_maps(2, 8), alpha=0.1, n_iter=2), n_patches=100, grid=1, whiten=None)


@pytest.mark.parametrize("both", [False, True])
def test_a_stack_can_be_the_first_layer_of_another(both, images, tmp_path):
    """Maps of both layers keep their poses, too."""
    below = Stack(first_layer(), middle_layer(), both=both)
    deep = Stack(below, last_layer(), random_state=0).fit(images)
    assert deep.first_.transform(images).shape == (60, 2, 2, 8 * (7 if both else 4))
    features = deep.transform(images)
    assert features.shape == (60, 10)
    assert_allclose(deep.transform(np.rot90(images, 1, (1, 2)).copy()), features, atol=1e-3)
    assert len(deep.layers()) == 3
    deep.save(tmp_path / "deep")
    assert_array_equal(orbitpool.load(tmp_path / "deep", "cpu").transform(images), features)


def test_a_place_of_a_map_of_both_layers_has_their_features_pose_by_pose(images):
    both = Stack(first_layer(), middle_layer(), both=True, random_state=0).fit(images)
    places = both.transform(images).reshape(60, 2, 2, 8, 7)
    first = both.first_.transform(images)
    below = first.reshape(60, 2, 3, 2, 3, 8, 3).mean((2, 4))
    assert_allclose(places[..., :3], below, atol=1e-5)
    assert_allclose(places[..., 3:], both.second_.transform(first).reshape(60, 2, 2, 8, 4), atol=1e-5)


def test_mirror_images_have_the_same_features(images, tmp_path):
    layers = Stack(first_layer(), second_layer(), mirror=True, random_state=0).fit(images)
    flipped, plain = images[:, :, ::-1], stack().fit(images)
    features = layers.transform(images)
    assert_allclose(layers.transform(flipped), features, atol=1e-4)
    assert_allclose(layers.transform(list(flipped)), features, atol=1e-4)
    assert_allclose((plain.transform(images) + plain.transform(flipped)) / 2, features, atol=1e-4)
    layers.save(tmp_path / "model")
    assert orbitpool.load(tmp_path / "model", "cpu").mirror


def test_maps_of_lists_go_to_where_the_second_layer_works(fitted, images, monkeypatch):
    monkeypatch.setattr("orbitpool.images.stack.choose_device", lambda wish, X: torch.device("meta"))
    assert fitted._map(list(images[:2])).device.type == "meta"


@pytest.mark.parametrize("nothing", [[], np.zeros((0, 16, 16))])
def test_no_images_are_refused(nothing, fitted):
    with pytest.raises(ValueError, match=r"X holds 0 images|none of them 0"):
        fitted.transform(nothing)


def test_a_loaded_stack_is_the_saved_one(fitted, images, tmp_path):
    fitted.save(tmp_path / "model")
    twin = orbitpool.load(tmp_path / "model", "cpu")
    assert isinstance(twin, Stack)
    assert_array_equal(twin.transform(images), fitted.transform(images))
    assert clone(twin).fit(images).transform(images).shape == (60, 10)


def test_two_layers_know_turned_digits_better_than_one(turned_digits):
    """With labels for the last, linear, classifier alone; both give 100 invariant features."""
    one = TIOMP(100, T.rotations(16, 16, tau / 16), two_sided=False, random_state=0)
    first = first_layer(TIOMP(4, TURNS, two_sided=False), grid=4, contrast=0.1, whiten=0.1)
    second = second_layer(whiten=1.0).set_params(
        learner=TIOMP(100, T.turned_maps(4, 8, 16), alpha=0.5, two_sided=False), n_patches=1300
    )
    errors = {}
    for name, features in (("one layer", one), ("two layers", Stack(first, second, random_state=0))):
        model = make_pipeline(features, LinearSVM(C=0.1, standardize=True))
        model.fit(turned_digits.X_train.reshape(-1, 16, 16), turned_digits.y_train)
        errors[name] = 100 - 100 * model.score(turned_digits.X_test.reshape(-1, 16, 16), turned_digits.y_test)
    print(", ".join(f"{name}: {error:.1f} % error" for name, error in errors.items()))
    assert errors["two layers"] < 0.75 * errors["one layer"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Stack(FIRST[0], second_layer()), "give ConvFeatures, or a Stack first"),
        (lambda: Stack(first_layer().set_params(output="flat"), second_layer()), "output is 'flat'"),
        (lambda: stack(n_images=0), "n_images is 0"),
        (lambda: first_layer().set_params(poses="some"), "poses is 'some'; choose one of 'pool', 'keep'"),
        (lambda: first_layer().set_params(output="rows"), "output is 'rows'; choose one of 'flat', 'map'"),
        (lambda: Stack(first_layer().set_params(stride=0), second_layer()), "stride is 0"),
        (lambda: Stack(first_layer(), second_layer().set_params(grid=0)), "grid is 0"),
        (lambda: stack(mirror="no"), "mirror is 'no'"),
        (lambda: Stack(first_layer(), middle_layer(), mirror=True), "a mirror image has other poses"),
        (lambda: first_layer(mirror=True), "a mirror image has other poses"),
        (lambda: first_layer(mirror="no"), "mirror is 'no'; choose one of False, True"),
        (lambda: Stack(first_layer().set_params(poses="pool"), second_layer()), "maps of 8 poses, .* have 1; give"),
        (lambda: Stack(first_layer(), middle_layer(16)), "moves maps of 16 poses, but those of the first one have 8"),
        (
            lambda: Stack(
                first_layer(), middle_layer().set_params(learner=TIOMP(4, T.turned_maps(3, 8, 16))), both=True
            ),
            "the layers have 8 and 16 poses",
        ),
        (lambda: Stack(first_layer(TIOMP(3, "auto")), second_layer()), "have as many as it finds; give"),
        (lambda: Stack(first_layer(grid=5), second_layer()), "patches of 6×6 do not fit into images of 5×5"),
    ],
)
def test_bad_stacks_are_refused(make, says, images):
    with pytest.raises(ValueError, match=says):
        make().fit(images)


def test_a_module_is_not_made_of_maps(fitted):
    with pytest.raises(ValueError, match="poses is 'keep' and output 'map'; a module pools"):
        fitted.first_.to_module()
