from math import pi

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import orbitpool
from orbitpool import TIOMP, TIRBM, TIAutoencoder
from orbitpool import transforms as T
from orbitpool.images import ZCA, ContrastNormalizer, ConvFeatures, dense_patches, encoding, random_patches
from orbitpool.learners.training import seed_of

COMBINED = T.union(T.translations(8, 6, 2), T.rotations(6, count=3, step=pi / 12, field=8))
LEARNERS = [
    TIRBM(7, COMBINED, visible="gaussian", sigma=0.8, n_iter=1),
    TIRBM(7, COMBINED, visible="gaussian", sigma="learned", two_sided=True, n_iter=1),
    TIAutoencoder(7, COMBINED, decoder="linear", learning_rate=0.01, n_iter=1),
    TIOMP(7, COMBINED, n_iter=2),
    TIOMP(7, COMBINED, n_iter=2, two_sided=False, unit_norm=False),
]


@pytest.fixture(scope="module")
def colour_images():
    """Sixty real 32x32 colour images, cut out of photographs, uint8."""
    from sklearn.datasets import load_sample_images

    china = load_sample_images().images[0]
    return np.stack([china[y : y + 32, x : x + 32] for y in range(0, 192, 32) for x in range(0, 320, 32)])


@parametrize_with_checks([ContrastNormalizer(), ZCA()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_contrast_normalisation_and_whitening(photographs):
    X = np.stack([photographs[0, y : y + 6, x : x + 6].ravel() for y in range(0, 400, 6) for x in range(0, 600, 6)])
    normal = ContrastNormalizer().fit_transform(X)
    assert_allclose(normal.mean(1), 0, atol=1e-12)
    assert_allclose(normal, (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 10 / 255**2), atol=1e-12)
    whitener = ZCA(eps=1e-9).fit(X)
    assert_allclose(np.cov(whitener.transform(X).T, bias=True), np.eye(36), atol=1e-3)
    assert_allclose(whitener.whitening_, whitener.whitening_.T)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    assert_allclose(ZCA().fit(X).whitening_, vectors @ np.diag((values + 0.1) ** -0.5) @ vectors.T, atol=1e-9)


@pytest.mark.parametrize("transforms", [T.rotations(6, 8, pi / 4), T.rotations(6, 3, pi / 12)])
def test_whitening_turns_with_patches_if_there_are_quarter_turns(transforms, colour_images):
    """Then it is that of patches turned by every quarter; otherwise that of patches as they are."""
    model = ConvFeatures(TIOMP(3, transforms, n_iter=1), n_patches=400, random_state=0).fit(colour_images)
    generator = torch.Generator().manual_seed(seed_of(0))
    patches = random_patches(torch.from_numpy(colour_images), 400, (6, 6), generator).numpy()
    turned = [np.rot90(patches, quarters, (1, 2)) for quarters in (range(4) if len(transforms) == 8 else [0])]
    rows = ContrastNormalizer().fit_transform(np.concatenate(turned).reshape(-1, 108) / 255)
    expected = ZCA().fit(rows)
    assert_allclose(model.mean_, expected.mean_, atol=1e-5)
    assert_allclose(model.whitening_, expected.whitening_, atol=1e-4)


def test_patches_are_where_they_should_be(colour_images, generator):
    images = torch.from_numpy(colour_images)
    dense = dense_patches(images, (5, 6), 3)
    assert dense.shape == (60, 10, 9, 5, 6, 3)
    assert_array_equal(dense[7, 2, 4], colour_images[7, 6:11, 12:18])
    patches = random_patches(images, 500, (5, 6), generator)
    every = {patch.numpy().tobytes() for patch in dense_patches(images, (5, 6)).reshape(-1, 5, 6, 3)}
    assert all(patch.numpy().tobytes() in every for patch in patches)
    assert len({patch.numpy().tobytes() for patch in patches}) > 450


@pytest.mark.parametrize("learner", [LEARNERS[1], LEARNERS[3]], ids=["TIRBM", "TIOMP"])
@pytest.mark.parametrize("mirror", [False, True])
def test_threads_give_what_one_core_gives(learner, mirror, colour_images, monkeypatch):
    """For many images, a few, a large one that is cut into rows, and lists; under inference mode and autocast, too."""
    features = ConvFeatures(learner, n_patches=300, random_state=0, mirror=mirror).fit(colour_images)
    large = np.concatenate(np.concatenate(colour_images.reshape(6, 10, 32, 32, 3), 2), 0)[None]
    mixed = [*colour_images[:5], large[0], *(image[:20] for image in colour_images[:4])]
    before = torch.get_num_threads()
    for X in (colour_images, colour_images[:3], large, mixed):
        try:
            torch.set_num_threads(1)
            alone = features.transform(X)
            torch.set_num_threads(3)
            monkeypatch.setattr(encoding, "ENOUGH", 0)
            assert_allclose(features.transform(X), alone, rtol=1e-5, atol=1e-6)
            with torch.inference_mode(), torch.autocast("cpu"):
                assert_allclose(features.transform(X), alone, rtol=1e-5, atol=1e-6)
            assert torch.get_num_threads() == 3
        finally:
            torch.set_num_threads(before)


@pytest.mark.parametrize(("learner", "poses"), [(LEARNERS[1], "pool"), (LEARNERS[3], "pool"), (LEARNERS[3], "keep")])
def test_a_gpu_encodes_what_a_cpu_encodes(learner, poses, colour_images, monkeypatch):
    """On a CPU in Triton's interpreter, with factors that are not rounded."""
    kernels = pytest.importorskip("orbitpool.kernels.dense", reason="needs triton")
    patches = kernels.normalized_patches
    monkeypatch.setattr(kernels, "normalized_patches", lambda *given: patches(*given, torch.float32))
    features = ConvFeatures(learner, n_patches=300, random_state=0, poses=poses).fit(colour_images)
    images = torch.from_numpy(colour_images[:2, :13, :12] / 255).float()
    dense = features._dense(torch.device("cpu"), torch.float32)
    cell = torch.arange(6 * 5) % 4
    (on_cpu, *_), (on_gpu, *_) = dense._on_cpu(dense.encoder), dense._on_gpu(dense.encoder)
    assert_allclose(on_gpu(images, cell), on_cpu(images, cell), rtol=1e-4, atol=1e-5)


def test_an_image_and_its_mirror_image_can_have_the_same_features(colour_images):
    features = ConvFeatures(LEARNERS[3], n_patches=2000, grid=3, random_state=0).fit(colour_images)
    alone, mirrored = features.transform(colour_images), features.transform(colour_images[:, :, ::-1])
    assert np.abs(alone - mirrored).max() > 0.1
    both = features.set_params(mirror=True).transform(colour_images)
    assert_allclose(both, (alone + mirrored) / 2, atol=1e-6)
    assert_array_equal(both, features.transform(colour_images[:, :, ::-1]))


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize(("stride", "grid"), [(1, 2), (3, 3)])
def test_dense_encoding_is_the_encoding_of_each_patch_by_hand(learner, stride, grid, colour_images):
    """Patch by patch: normalise, whiten, transform, average over cells. The fold must be exact."""
    how = {"stride": stride, "grid": grid, "precision": "full"}
    features = ConvFeatures(learner, n_patches=2000, random_state=0, **how).fit(colour_images)
    images = colour_images[:3]
    places = range(0, 32 - 8 + 1, stride)
    expected = []
    for image in images / 255:
        rows = []
        for y in places:
            patches = np.stack([image[y : y + 8, x : x + 8].ravel() for x in places]).astype(np.float32)
            normal = (patches - patches.mean(1, keepdims=True)) / np.sqrt(patches.var(1, keepdims=True) + 10 / 255**2)
            rows.append(features.learner_.transform((normal - features.mean_) @ features.whitening_))
        z = np.stack(rows)
        cells = [c.mean((0, 1)) for band in np.array_split(z, grid) for c in np.array_split(band, grid, axis=1)]
        expected.append(np.concatenate(cells))
    encoded = features.transform(images)
    assert encoded.shape == (3, len(features.get_feature_names_out()))
    assert_allclose(encoded, expected, atol=1e-4)
    assert np.abs(encoded).max() > 0.01


def test_kinds_of_images(colour_images):
    features = ConvFeatures(TIOMP(4, T.rotations(6, 3, 0.2), n_iter=1), n_patches=500, random_state=0).fit(
        colour_images
    )
    expected = features.transform(colour_images)
    assert_allclose(features.transform((colour_images / 255).astype(np.float32)), expected, atol=1e-5)
    tensor = features.transform(torch.from_numpy(colour_images))
    assert isinstance(tensor, torch.Tensor)
    assert_allclose(tensor, expected, atol=1e-5)
    assert features.transform(colour_images[:, :20, :27]).shape == expected.shape
    grey = ConvFeatures(TIOMP(4, n_iter=1), patch_size=5, n_patches=500, random_state=0).fit(colour_images[..., 0])
    assert grey.transform(colour_images[..., 0]).shape == (60, 32)
    assert_array_equal(grey.transform(colour_images[..., :1]), grey.transform(colour_images[..., 0]))


def test_images_of_different_sizes_are_encoded_each_at_its_own(colour_images):
    features = ConvFeatures(LEARNERS[0], n_patches=2000, random_state=0)
    as_list, as_array = clone(features).fit(list(colour_images)), features.fit(colour_images)
    assert_array_equal(as_list.learner_.components_, as_array.learner_.components_)
    cut = [image[: 32 - i % 3, i % 5 :] for i, image in enumerate(colour_images)]
    each = np.concatenate([features.transform(image[None]) for image in cut])
    assert_allclose(features.transform(cut), each, atol=1e-5)
    assert clone(features).fit(cut).learner_.components_.shape == (7, 108)
    for images, says in (
        ([colour_images[0], colour_images[0, ..., 0]], "images have 1 channels, but filters were learned from 3"),
        ([], "X holds 0 images"),
    ):
        with pytest.raises(ValueError, match=says):
            clone(features).fit(images)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_a_list_may_hold_images_of_different_types(learner, colour_images):
    """In any order, and also if filters were learned from yet another type."""
    bytes_ = (255 * colour_images[:3]).round().astype(np.uint8)
    X = [bytes_[0], (bytes_[1, :30] / 255).astype(np.float32), bytes_[2, :, 1:] / 255]
    features = ConvFeatures(learner, n_patches=2000, random_state=0).fit(colour_images.astype(np.float32))
    each = np.concatenate([features.transform(image[None]) for image in X])
    for order in ([0, 1, 2], [2, 0, 1]):
        assert_allclose(features.transform([X[i] for i in order]), each[order], atol=1e-5)
    assert features.transform(X).dtype == np.float64
    assert features.transform(X[:2]).dtype == np.float32


@pytest.mark.parametrize(
    ("learner", "patch_size"), [*((learner, None) for learner in LEARNERS[1:4]), (TIOMP(4, n_iter=1), (5, 6))]
)
def test_a_loaded_model_is_the_saved_one(learner, patch_size, colour_images, tmp_path):
    model = ConvFeatures(learner, patch_size=patch_size, n_patches=500, stride=2, grid=3, random_state=0)
    model.fit(colour_images).save(tmp_path / "model")
    twin = orbitpool.load(tmp_path / "model")
    assert isinstance(twin, ConvFeatures)
    assert_array_equal(twin.transform(colour_images), model.transform(colour_images))
    same = lambda m: {k: v for k, v in m.get_params(deep=False).items() if k != "learner"}  # noqa: E731
    assert same(twin) == same(model)
    twin.learner_ = LogisticRegression()
    with pytest.raises(ValueError, match="a LogisticRegression cannot be written to a file"):
        twin.save(tmp_path / "other")


def test_it_works_in_a_pipeline(digits):
    from sklearn.datasets import load_digits

    X, y = digits.reshape(-1, 8, 8), load_digits().target
    learner = TIOMP(30, T.rotations(4, 3, 0.2), n_iter=3)
    model = make_pipeline(ConvFeatures(learner, n_patches=5000, random_state=0), LogisticRegression(max_iter=1000))
    assert clone(model).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.9
    model.set_params(convfeatures__learner__n_components=5).fit(X[:200], y[:200])
    assert model[0].transform(X).shape == (len(X), 40)


def test_the_same_seed_gives_the_same_features(colour_images):
    make = lambda seed: ConvFeatures(TIOMP(4, n_iter=1), patch_size=5, n_patches=500, random_state=seed, device="cpu")  # noqa: E731
    first, second, other = (make(seed).fit(colour_images).transform(colour_images) for seed in (0, 0, 1))
    assert_array_equal(first, second)
    assert np.abs(first - other).max() > 1e-3


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ConvFeatures(TIOMP(4)), "patch_size is None and the learner has no transformations"),
        (lambda: ConvFeatures("TIOMP"), "learner is 'TIOMP'; give a TIRBM"),
        (lambda: ConvFeatures(TIOMP(4, T.time_shifts(5, 4))), "is not for images"),
        (lambda: ConvFeatures(TIOMP(4), patch_size=40), "patches of 40×40 do not fit into images of 32×32"),
        (lambda: ConvFeatures(TIOMP(4), patch_size=5, grid=0), "grid is 0"),
        (lambda: ConvFeatures(TIOMP(4), patch_size=5, contrast=-1.0), "contrast is -1.0"),
    ],
)
def test_bad_parameters_are_refused(make, says, colour_images):
    with pytest.raises(ValueError, match=says):
        make().fit(colour_images)


@pytest.mark.parametrize("bad", [{"stride": 0}, {"grid": -1}, {"grid": 50}, {"poses": "x"}, {"precision": "half"}])
def test_parameters_that_went_bad_are_refused(bad, colour_images, tmp_path):
    features = ConvFeatures(TIOMP(4, n_iter=1), patch_size=5, n_patches=500).fit(colour_images).set_params(**bad)
    for use in (lambda: features.transform(colour_images), lambda: features.save(tmp_path / "model")):
        with pytest.raises(ValueError, match=f"{next(iter(bad))} is "):
            use()
    assert list(tmp_path.iterdir()) == []


def test_bad_images_are_refused(colour_images):
    features = ConvFeatures(TIOMP(4, n_iter=1), patch_size=5, n_patches=500, random_state=0).fit(colour_images)
    for images, says in (
        (colour_images[0, :, :, 0], r"X has shape \(32, 32\); give images"),
        (colour_images[..., 0], "images have 1 channels, but filters were learned from 3"),
        (colour_images[:, :4], "patches of 5×5 do not fit into images of 4×32"),
        (colour_images[:, :5], "grid is 2, but images of 5×32 have only 1×28 patches"),
        (np.full((2, 32, 32, 3), np.nan), "NaN or infinity"),
    ):
        with pytest.raises(ValueError, match=says):
            features.transform(images)
