import gzip
import os
import signal
import struct

import numpy as np
import pytest
import torch
from hypothesis import settings
from scipy import ndimage
from sklearn.datasets import load_digits, load_sample_images

from orbitpool import datasets, progress
from orbitpool.datasets import written
from orbitpool.experiments import recipes
from orbitpool.kernels.precision import BACKENDS

if os.environ.get("ORBITPOOL_GPU"):
    if not torch.cuda.is_available():
        pytest.exit("ORBITPOOL_GPU is set, and torch finds no GPU", returncode=1)
else:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # tests say what a CPU does; `make test-gpu` is for more
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # kernels for GPUs run in Python then; it is read when triton is loaded

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells have it for what they start in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def products_as_before():
    """No test leaves the program multiplying in another precision than it found."""
    before = [backend.fp32_precision for backend in BACKENDS]
    yield
    assert [backend.fp32_precision for backend in BACKENDS] == before


@pytest.fixture(scope="session")
def photographs():
    """Two real photographs in grey, (2, 427, 640), values in [0, 1]."""
    return np.stack(load_sample_images().images).mean(-1) / 255


@pytest.fixture(scope="session")
def digits():
    """1,797 real 8x8 digits, (N, 64), values in [0, 1]."""
    return load_digits().data / 16


class Recorder(progress.Display):
    """Keeps sentences and stages; what happens often is not kept."""

    def __init__(self):
        self.said = []

    def say(self, words, problem=False):
        self.said.append(words)

    def told(self, task, often):
        if not often:
            self.said.append(f"[{task.where}] {task.words}")


@pytest.fixture
def said():
    """All that is said during a test."""
    with progress.showing(recorder := Recorder()):
        yield recorder.said


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="session")
def turned_digits():
    """Real digits, upsampled to 16x16 and turned by any angle."""
    return datasets.turned_digits()


@pytest.fixture(scope="session")
def digit_array(tmp_path_factory, turned_digits):
    """Three hundred 16x16 digits with their labels."""
    path = tmp_path_factory.mktemp("digits") / "digits.npz"
    np.savez(path, images=turned_digits.X_train[:300].reshape(-1, 16, 16), labels=turned_digits.y_train[:300])
    return path


@pytest.fixture(scope="session")
def small_mnist(tmp_path_factory):
    """scikit-learn's digits as MNIST files: 28x28, in the official layout."""
    folder = tmp_path_factory.mktemp("data") / "mnist"
    folder.mkdir()
    digits = load_digits()
    images = np.stack([np.pad(ndimage.zoom(i / 16 * 255, 2.5, order=1), 4) for i in digits.images]).astype(np.uint8)
    for name, rows in (("train", slice(0, 1500)), ("t10k", slice(1500, 1797))):
        pixels, labels = images[rows], digits.target[rows].astype(np.uint8)
        with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">IIII", 2051, len(pixels), 28, 28) + pixels.tobytes())
        with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">II", 2049, len(labels)) + labels.tobytes())
    return folder.parent


@pytest.fixture
def tiny(monkeypatch, small_mnist):
    """Table 1 on very few images with very few filters."""
    monkeypatch.setattr(written, "SIZES", (1000, 200, 500))
    small = {"parameters": {"n_components": 20, "n_iter": 1}, "images": {"train": 1000, "valid": 200, "test": 500}}
    monkeypatch.setitem(recipes.QUICK, "table1", small)
    return small_mnist
