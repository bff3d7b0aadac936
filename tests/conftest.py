import numpy as np
import pytest
import torch
from hypothesis import settings
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
