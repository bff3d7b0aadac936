import numpy as np
import pytest
import torch
from hypothesis import settings
from scipy import ndimage
from sklearn.datasets import load_digits, load_sample_images

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def photographs():
    """Two real photographs in grey, (2, 427, 640), values in [0, 1]."""
    return np.stack(load_sample_images().images).mean(-1) / 255


@pytest.fixture(scope="session")
def digits():
    """1,797 real 8x8 digits, (N, 64), values in [0, 1]."""
    return load_digits().data / 16


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="session")
def turned_digits():
    """Real digits, upsampled to 16x16 and turned by any angle: inputs (1797, 256) float32, and labels."""
    rng, digits = np.random.default_rng(0), load_digits()
    upright = [np.pad(ndimage.zoom(image / 16, 1.5, order=1), 2) for image in digits.images]
    turned = [ndimage.rotate(image, rng.uniform(0, 360), reshape=False, order=1) for image in upright]
    order = rng.permutation(len(turned))
    return np.stack(turned).clip(0, 1).astype(np.float32).reshape(-1, 256)[order], digits.target[order]
