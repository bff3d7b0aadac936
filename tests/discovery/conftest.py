import numpy as np
import pytest
from scipy import ndimage
from sklearn.datasets import load_digits


@pytest.fixture(scope="module")
def upright_digits():
    """Real digits, upsampled to 16x16, as they were written."""
    return np.stack([np.pad(ndimage.zoom(i / 16, 1.5, order=1), 2) for i in load_digits().images]).astype(np.float32)


@pytest.fixture
def brief(monkeypatch):
    """A discovery that takes no time, and whose findings are not to be relied upon."""
    monkeypatch.setattr("orbitpool.discovery.auto.STEPS", 2)
