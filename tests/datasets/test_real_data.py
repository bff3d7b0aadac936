"""The published data, where $ORBITPOOL_DATA holds them."""

import os

import numpy as np
import pytest

from orbitpool.datasets import VARIATIONS, DataMissing, cifar10, mnist, mnist_variation, stl10

pytestmark = pytest.mark.skipif("ORBITPOOL_DATA" not in os.environ, reason="needs data in $ORBITPOOL_DATA")


def present(load, *arguments):
    try:
        return load(*arguments)
    except DataMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    ("load", "train", "test"),
    [
        (mnist, (60_000, 28, 28), (10_000, 28, 28)),
        (cifar10, (50_000, 32, 32, 3), (10_000, 32, 32, 3)),
        (stl10, (5_000, 32, 32, 3), (8_000, 32, 32, 3)),
    ],
)
def test_published_files_are_official(load, train, test):
    data = present(load)
    assert (data.X_train.shape, data.X_test.shape, data.provenance) == (train, test, "official")
    assert set(data.y_train) == set(data.y_test) == set(range(10))
    assert data.folds is None or (data.folds.shape, len(set(data.folds[0]))) == ((10, 1000), 1000)


@pytest.mark.parametrize("name", VARIATIONS)
def test_variations_of_real_mnist(name):
    data = present(mnist_variation, name)
    assert data.provenance == "rebuilt" or "Larochelle" in data.source
    assert (len(data.X_train), len(data.X_valid), len(data.X_test)) == (10_000, 2_000, 50_000)
    assert 0 <= data.X_test.min() <= data.X_test.max() <= 1
    assert set(np.unique(data.y_valid)) == set(range(10))
