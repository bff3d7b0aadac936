"""Recipes, the runner and the command line, on real digits in the official format, in small."""

import gzip
import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from math import log2

import numpy as np
import pytest
from scipy import ndimage
from sklearn.datasets import load_digits

from orbitpool.datasets import written
from orbitpool.experiments import recipes, results, runner
from orbitpool.images.pictures import mosaic, orientation_entropy, save_png


@pytest.fixture(scope="module")
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


def test_every_row_of_the_paper_is_there():
    assert {table: len(rows) for table, rows in recipes.TABLES.items()} == {
        "table1": 12,
        "table2": 14,
        "table3": 8,
        "table4": 5,
        "table5": 7,
    }
    keys = [recipe.key for rows in recipes.TABLES.values() for recipe in rows]
    assert len(set(keys)) == len(keys)
    assert [r.paper for r in recipes.select("table1", ["rot"])] == [15.6, 4.2]
    assert len(recipes.select("table2")) == 10


@pytest.mark.parametrize("table", recipes.TABLES)
def test_recipes_build(table):
    for recipe in recipes.select(table):
        learner = runner.make_learner(recipe, 0, runner.choose_device("cpu", None))
        if learner is None:
            assert recipe.row == "MFCC"
            continue
        learner._check()
        assert (learner.transforms is None) == (recipe.row.split()[-1] == "RBM" or recipe.row.startswith("OMP"))
        json.dumps(results.settings(recipe, False))
    combined = next(r for r in recipes.select("table2") if r.row == "TIRBM combined")
    assert len(runner.build_transforms(combined.transforms)) == 10


def test_unknown_tables_and_rows_are_refused():
    with pytest.raises(ValueError, match="there is no 'table9'; choose one of table1"):
        recipes.select("table9")
    with pytest.raises(ValueError, match="table1 has no row 'tilt' that can be run; choose from: rot RBM"):
        recipes.select("table1", ["rot", "tilt"])


@pytest.fixture
def tiny(monkeypatch, small_mnist):
    """Table 1 on very few images with very few filters."""
    monkeypatch.setattr(written, "SIZES", (1000, 200, 500))
    small = {"parameters": {"n_components": 20, "n_iter": 1}, "images": {"train": 1000, "valid": 200, "test": 500}}
    monkeypatch.setitem(recipes.QUICK, "table1", small)
    return small_mnist


def test_a_row_is_run_once_a_seed_and_kept(tiny, tmp_path, monkeypatch):
    stages = []
    recipe = replace(
        recipes.select("table1", ["rot TIRBM"])[0], classifier={"class": "SoftmaxRegression", "C": (0.1, 1.0)}
    )
    options = {"quick": True, "data_dir": tiny, "device": "cpu"}
    result = runner.reproduce(recipe, tmp_path, tell=stages.append, **options)
    assert stages == ["data", "learn", "encode", "encode", "encode", "classify"]
    needed = {"table", "row", "method", "metric", "values", "mean", "std", "paper", "data", "versions", "settings"}
    assert needed <= result.keys()
    assert (result["table"], result["row"], result["metric"], result["paper"]) == ("table1", "rot TIRBM", "error", 4.2)
    assert result["data"] == "stand-in"
    assert 0 < result["mean"] < 90
    assert set(result["runs"][0]["seconds"]) == {"data", "learn", "encode", "classify"}
    path = results.path_of(recipe, tmp_path, True)
    assert json.loads(path.read_text()) == result

    stages.clear()
    assert runner.reproduce(recipe, tmp_path, tell=stages.append, **options)["runs"] == result["runs"]
    assert stages == []  # nothing was run again
    two = runner.reproduce(recipe, tmp_path, seeds=2, **options)
    assert two["runs"][0] == result["runs"][0]
    assert len(two["values"]) == 2
    assert two["std"] > 0
    other = replace(recipe, parameters={**recipe.parameters, "learning_rate": 0.1})
    assert len(runner.reproduce(other, tmp_path, **options)["runs"]) == 1  # other settings start anew
    assert os.listdir(tmp_path) == [path.name]
    path.write_text("{}")
    with pytest.raises(ValueError, match="is not a result of orbitpool"):
        runner.reproduce(recipe, tmp_path, **options)


def test_pictures(tmp_path):
    tiles = np.random.default_rng(0).normal(size=(7, 5, 4))
    sheet = mosaic(tiles, columns=3, zoom=2)
    assert sheet.shape == (3 * 12 + 2, 3 * 10 + 2, 3)
    assert (sheet[2:12:2, 2:10:2, 0].min(), sheet[2:12:2, 2:10:2, 0].max()) == (0, 255)
    path = save_png(sheet, tmp_path / "sheet.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert os.listdir(tmp_path) == ["sheet.png"]


def test_orientation_entropy():
    y, x = np.mgrid[:14, :14] - 6.5
    gratings = [np.sin(x * np.cos(a) + y * np.sin(a)) for a in np.pi * (np.arange(8) + 0.5) / 8]
    assert orientation_entropy(np.stack(gratings)) == pytest.approx(log2(8))
    assert orientation_entropy(np.stack(gratings[:1] * 8)) == 0


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "orbitpool", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_the_command_line_lists_and_explains(tmp_path):
    run = command("list", "--results", str(tmp_path))
    assert run.returncode == 0
    assert "rot TIRBM                  paper   4.2   not run yet" in run.stdout
    assert command("--help").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("reproduce", "table9"), "there is no 'table9'; choose one of table1"),
        (("reproduce", "table1", "--rows", "tilt"), "table1 has no row 'tilt'"),
        (("reproduce", "table1", "--rows", "rot", "--device", "gpu"), "device is 'gpu'"),
        (("reproduce", "table1", "--rows", "rot", "--data-dir", "{empty}"), "train-images-idx3-ubyte"),
    ],
)
def test_what_goes_wrong_is_one_sentence(arguments, says, tmp_path):
    (tmp_path / "empty").mkdir()
    arguments = [a.format(empty=tmp_path / "empty") for a in arguments]
    run = command(
        *arguments,
        "--results",
        str(tmp_path / "results"),
        https_proxy="http://127.0.0.1:9",
        HTTPS_PROXY="http://127.0.0.1:9",
    )
    assert run.returncode == 1
    assert says in run.stderr
    assert "Traceback" not in run.stderr
    assert not (tmp_path / "results").exists()
