import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch import nn
from torch.testing import assert_close

from orbitpool import TIOMP, TIRBM, ConvFeatures, TIAutoencoder
from orbitpool import transforms as T

SHIFTS = T.translations((5, 6), (4, 4))
LEARNERS = [
    TIRBM(5, SHIFTS, visible="gaussian", sigma=0.8, two_sided=True, n_iter=1),
    TIAutoencoder(5, SHIFTS, decoder="linear", learning_rate=0.01, n_iter=1),
    TIOMP(5, SHIFTS, alpha=0.1, n_iter=2),
    TIOMP(5, SHIFTS, alpha=0.1, two_sided=False, unit_norm=False, n_iter=2),
]


@pytest.fixture(scope="module")
def colour_images():
    """Twenty-four real 19x23 colour images, cut out of a photograph, uint8."""
    from sklearn.datasets import load_sample_images

    china = load_sample_images().images[0]
    return np.stack([china[y : y + 19, x : x + 23] for y in range(200, 360, 40) for x in range(200, 440, 40)])


def fitted(learner, images, **options):
    options = {"n_patches": 500, "precision": "full", "random_state": 0, **options}
    return ConvFeatures(learner, **options).fit(images)


def assert_near(z, expected):
    assert expected.max() > 0.01
    assert_close(z, expected.to(z.dtype), atol=1e-5 * max(1.0, float(expected.max())), rtol=0)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"stride": 3, "grid": 3, "mirror": True}, {"contrast": None, "whiten": None, "grid": 1}]
)
def test_a_module_gives_what_transform_gives(learner, options, colour_images):
    for images in (colour_images[::3], colour_images[::3, ..., 1]):
        features = fitted(learner, images, **options)
        module = features.to_module()
        for kind in (images, (images / 255).astype(np.float32), images / 255, images[:, :14, 2:]):
            kind = torch.from_numpy(kind)
            assert_near(module(kind), features.transform(kind.float() if kind.is_floating_point() else kind))
    assert_near(module.double()(kind), features.transform(kind.double() / 255))


@pytest.mark.parametrize("learner", LEARNERS[1:3], ids=str)
def test_gradients_reach_pixels_and_filters(learner, colour_images):
    module = fitted(learner, colour_images, stride=4).to_module().double()
    images = torch.from_numpy(colour_images[:1, :9, :10] / 255).requires_grad_()
    assert torch.autograd.gradcheck(module, images)
    names = {name for name, _ in module.named_parameters()}
    assert names == {"features.weight"} | (set() if isinstance(learner, TIOMP) else {"features.bias"})
    module(images).square().sum().backward()
    for parameter in (images, *module.parameters()):
        assert parameter.grad.abs().max() > 0


def test_a_network_trains_the_filters(colour_images):
    learned = fitted(LEARNERS[0], colour_images).to_module()
    network = nn.Sequential(learned, nn.Flatten(), nn.Linear(40, 1))
    X, y = torch.from_numpy(colour_images), torch.arange(24.0)[:, None] / 24
    before, descent = learned.features.weight.detach().clone(), torch.optim.Adam(network.parameters(), 0.01)
    losses = []
    for _ in range(10):
        loss = nn.functional.mse_loss(network(X), y)
        descent.zero_grad()
        loss.backward()
        descent.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert (learned.features.weight - before).norm() > 0.01 * before.norm()


@pytest.mark.parametrize(("learner", "channels"), [(LEARNERS[0], 3), (LEARNERS[2], 1)], ids=str)
def test_an_onnx_file_gives_what_transform_gives(learner, channels, colour_images, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra onnx and onnxruntime")
    images = (colour_images[..., :channels] / 255).astype(np.float32)
    features, path = fitted(learner, images, stride=2), tmp_path / "features.onnx"
    features.export_onnx(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for n in (1, 2, 24):
        (output,) = session.run(["output"], {"input": images[:n]})
        assert_near(torch.from_numpy(output), torch.from_numpy(features.transform(images[:n])))


def test_a_module_has_parameters_and_buffers_of_its_own(colour_images):
    features = fitted(LEARNERS[0], colour_images)
    expected, module = features.transform(colour_images), features.to_module()
    module.load_state_dict({name: torch.zeros_like(t) for name, t in module.state_dict().items()})
    z = module(torch.from_numpy(colour_images))
    assert_close(z, torch.full_like(z, 6 / 7))  # six poses with logit 0, or off
    assert_array_equal(features.transform(colour_images), expected)


def test_what_does_not_fit_is_refused(colour_images):
    module = fitted(LEARNERS[2], colour_images).to_module()
    images = torch.from_numpy(colour_images)
    for bad, says in (
        (images[0, :, :, 0], r"X has shape \(19, 23\); give images"),
        (images[..., 0], "images have 1 channels, but filters were learned from 3"),
        (images[:, :4], "patches of 5×6 do not fit into images of 4×23"),
        (images[:, :5], "grid is 2, but images of 5×23 have only 1×18 patches"),
    ):
        with pytest.raises(ValueError, match=says):
            module(bad)


def test_a_learner_without_poses_has_no_module(colour_images):
    from orbitpool.experiments.baselines import KMeans

    features = fitted(KMeans(4), colour_images, patch_size=5)
    with pytest.raises(ValueError, match="a module can be made of a TIRBM, TIAutoencoder or TIOMP"):
        features.to_module()
