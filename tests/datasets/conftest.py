import gzip

import numpy as np
import pytest
from scipy import ndimage
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def written():
    """Real digits as MNIST has them, 20x20 in the middle of 28x28 bytes: images (1797, 28, 28), labels (1797,)."""
    digits = load_digits()
    large = ndimage.zoom(digits.images / 16, (1, 2.5, 2.5), order=1)
    return np.pad((large * 255).astype(np.uint8), ((0, 0), (4, 4), (4, 4))), digits.target.astype(np.uint8)


def idx(array):
    """An array of bytes as an idx file."""
    return np.array([0x0800 + array.ndim, *array.shape], ">u4").tobytes() + array.tobytes()


@pytest.fixture(scope="session")
def mnist_files(written):
    """A small MNIST by file name: 1,500 training and 297 test digits, the images packed."""
    images, labels = written
    parts = {"train": slice(1500), "t10k": slice(1500, None)}
    packed = {f"{p}-images-idx3-ubyte.gz": gzip.compress(idx(images[rows]), 1) for p, rows in parts.items()}
    return packed | {f"{p}-labels-idx1-ubyte": idx(labels[rows]) for p, rows in parts.items()}


@pytest.fixture
def mnist_folder(mnist_files, tmp_path):
    """A data folder with the small MNIST."""
    (tmp_path / "mnist").mkdir()
    for name, content in mnist_files.items():
        (tmp_path / "mnist" / name).write_bytes(content)
    return tmp_path


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Nothing outside this machine is asked for anything."""
    import pooch

    retrieve = pooch.retrieve

    def local(url, *arguments):
        if "://127.0.0.1" not in url:
            raise ConnectionError("the network is unreachable")
        return retrieve(url, *arguments)

    monkeypatch.setattr(pooch, "retrieve", local)
    monkeypatch.setenv("NO_PROXY", "*")
