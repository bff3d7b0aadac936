"""Rows of tables by processes that work together: the same results as by one, and files that are written once."""

import numpy as np
import pytest
from sklearn.datasets import load_sample_images

from orbitpool.datasets import objects, written
from orbitpool.experiments import recipes, runner
from spreading import spread

RECORDS = 30  # images of a file of CIFAR-10
TINY = {
    "table1": {
        "parameters": {"n_components": 20, "n_iter": 2},
        "images": {"train": 600, "valid": 100, "test": 300},
    },
    "table2": {
        "parameters": {"n_components": 10, "n_iter": 1},
        "conv": {"n_patches": 1000},
        "images": {"train": 100, "test": 30},
    },
    "table4": {"parameters": {"n_components": 8, "n_iter": 1}},
}


@pytest.fixture(scope="module")
def photographs_as_cifar(tmp_path_factory):
    """Pieces of two photographs in the files of CIFAR-10, as two of its classes."""
    home, rng = tmp_path_factory.mktemp("cifar"), np.random.default_rng(0)
    room = home / "cifar10/cifar-10-batches-bin"
    room.mkdir(parents=True)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        records = b""
        for i in range(RECORDS):
            y, x = rng.integers(0, 390, 2)
            piece = load_sample_images().images[i % 2][y : y + 32, x : x + 32]
            records += bytes([i % 2]) + piece.transpose(2, 0, 1).tobytes()
        (room / f"{name}.bin").write_bytes(records)
    return home


def reproduced(table, rows, data, folder):
    """Rows of a table in small, without what differs from run to run."""
    recipes.QUICK[table] = TINY[table]
    written.SIZES, objects.CIFAR_RECORDS = (600, 100, 300), RECORDS
    found = runner.reproduce(recipes.select(table, rows), folder, quick=True, data_dir=data, device="cpu")
    return [(row["row"], row["values"], row["settings"], row["runs"][0]["source"]) for row in found]


@pytest.mark.parametrize(
    ("table", "rows", "data"),
    [
        ("table1", ["rot"], "small_mnist"),
        ("table2", ["VQ", "TIRBM combined"], "photographs_as_cifar"),
        ("table4", ["MFCC", "TIRBM"], "spoken"),
    ],
)
def test_processes_that_work_together_reproduce_the_same(table, rows, data, request, tmp_path):
    home = request.getfixturevalue(data)
    (alone,) = spread(reproduced, 1, table, rows, home, tmp_path / "one")
    both = spread(reproduced, 2, table, rows, home, tmp_path / "two")
    assert both[0] == both[1]
    for (name, values, *same), (our_name, ours, *also) in zip(alone, both[0], strict=True):
        assert (name, same) == (our_name, also)
        np.testing.assert_allclose(ours, values, atol=4)  # of thirty images one may be on the other side
    assert sorted(p.name for p in (tmp_path / "one").iterdir()) == sorted(p.name for p in (tmp_path / "two").iterdir())
    assert all(p.suffix == ".json" for p in (tmp_path / "two").iterdir())  # no checkpoints, no locks
    again = spread(reproduced, 2, table, rows, home, tmp_path / "two")  # nothing to do
    assert again == both
