"""Recipes, the runner and pictures, on real digits in the official format, in small."""

import json
import os
import signal
from dataclasses import replace
from math import log2

import numpy as np
import pytest

from orbitpool.experiments import figures, images, making, phones, recipes, results, runner
from orbitpool.experiments.figures import natural_patches
from orbitpool.learners import TIRBM
from orbitpool.pictures import mosaic, orientation_entropy, save_png


def test_every_row_of_the_paper_is_there():
    assert {table: sum(row.paper is not None for row in rows) for table, rows in recipes.TABLES.items()} == {
        "table1": 12,
        "table2": 14,
        "table3": 8,
        "table4": 5,
        "table5": 7,
        "beyond": 0,
    }
    keys = [recipe.key for rows in recipes.TABLES.values() for recipe in rows]
    assert len(set(keys)) == len(keys)
    assert [r.paper for r in recipes.select("table1", ["rot"])] == [15.6, 4.2, None]
    assert len(recipes.select("table2")) == 12


@pytest.mark.parametrize("table", recipes.TABLES)
def test_recipes_build(table):
    for recipe in recipes.select(table):
        if recipe.speech is None:
            features = images.make_features(recipe, 0, "cpu")
            features._check()
        else:
            features = phones.make_features(recipe, 0, "cpu")
        learner = getattr(features, "learner", features)
        if recipe.above is None:
            assert (getattr(learner, "transforms", None) is None) == (recipe.transforms is None)
        assert (recipe.transforms is None) == ("TI" not in recipe.row) or table == "beyond"
        assert runner.settings(recipe, True) != runner.settings(recipe, False)
    combined = next(r for r in recipes.select("table2") if r.row == "TIRBM combined")
    assert len(making.build_transforms(combined.transforms)) == 10


def test_unknown_tables_and_rows_are_refused():
    with pytest.raises(ValueError, match="there is no 'table9'; choose one of table1"):
        recipes.select("table9")
    with pytest.raises(ValueError, match="table1 has no row 'tilt' that can be run; choose from: rot RBM"):
        recipes.select("table1", ["rot", "tilt"])


def test_a_row_is_run_once_a_seed_and_kept(tiny, tmp_path, said, monkeypatch):
    recipe = replace(
        recipes.select("table1", ["rot TIRBM"])[0], classifier={"class": "SoftmaxRegression", "C": (0.1, 1.0)}
    )
    options = {"quick": True, "data_dir": tiny, "device": "cpu"}
    (result,) = runner.reproduce([recipe], tmp_path, **options)
    stages = [stage.removeprefix("[1/1] rot TIRBM, seed 0: ") for stage in said]
    assert stages.pop(1).startswith("this is a stand-in: made with seed 0 from MNIST")
    parts = ["encode 1,000 train images", "encode 200 valid images", "encode 500 test images"]
    assert stages == ["data", "learn", *parts, "classify"]
    assert {"table", "row", "method", "metric", "values", "mean", "std", "paper", "data"} <= result.keys()
    assert {"seconds", "peak_memory_gb", "versions", "device", "source", "C"} <= result["runs"][0].keys()
    exact = result["settings"]["features"]
    assert (exact["class"], exact["n_components"], exact["learning_rate"]) == ("TIRBM", 20, 0.05)
    assert exact["transforms"][0].startswith("TransformSet(16 of 28×28")
    assert result["settings"]["images"] == {"train": 1000, "valid": 200, "test": 500}
    assert (result["table"], result["row"], result["metric"], result["paper"]) == ("table1", "rot TIRBM", "error", 4.2)
    assert result["data"] == "stand-in"
    assert 0 < result["mean"] < 90
    assert set(result["runs"][0]["seconds"]) == {"data", "learn", "encode", "classify"}
    path = results.path_of(recipe, tmp_path, True)
    assert json.loads(path.read_text()) == result

    said.clear()
    assert next(runner.reproduce([recipe], tmp_path, **options))["runs"] == result["runs"]
    assert said == []  # nothing was run again
    (two,) = runner.reproduce([recipe], tmp_path, seeds=2, **options)
    assert two["runs"][0] == result["runs"][0]
    assert len(two["values"]) == 2
    assert two["std"] > 0
    other = replace(recipe, parameters={**recipe.parameters, "learning_rate": 0.1})
    assert not results.is_current(two, other)
    assert len(next(runner.reproduce([other], tmp_path, **options))["runs"]) == 1  # other settings start anew
    assert sorted(os.listdir(tmp_path)) == [path.name, f"{path.name}.old"]
    assert json.loads((tmp_path / f"{path.name}.old").read_text()) == two
    monkeypatch.setattr(runner, "run", lambda *_: {**result["runs"][0], "data": "official"})
    with pytest.raises(ValueError, match="has runs on stand-in data and this one was on official data"):
        next(runner.reproduce([other], tmp_path, seeds=2, **options))
    path.write_text("{}")
    with pytest.raises(ValueError, match="is not a result of orbitpool"):
        next(runner.reproduce([recipe], tmp_path, **options))


def test_a_row_says_which_transformations_it_found(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("orbitpool.discovery.auto.STEPS", 2)
    monkeypatch.setitem(recipes.QUICK, "beyond", recipes.QUICK["table1"])
    rows = recipes.select("beyond", ["trans auto", "mnist auto"])
    for result in runner.reproduce(rows, tmp_path, quick=True, data_dir=tiny, device="cpu"):
        assert result["settings"]["features"]["transforms"] == "auto"
        assert result["settings"]["finding"]["steps"] == 2
        assert "poses of filters of" in result["runs"][0]["found"]
        assert result["runs"][0]["overlaps"].startswith("turned by degrees")


def test_a_row_depends_on_what_counts_as_found(monkeypatch):
    """And a row whose transformations are given does not."""
    found, given = recipes.select("beyond", ["rot auto"])[0], recipes.select("table1", ["rot TIRBM"])[0]
    before = runner.settings(found, False)
    assert {"threshold", "mirrored", "apart", "budget", "steps"} <= set(before["finding"])
    assert "finding" not in runner.settings(given, False)
    monkeypatch.setattr("orbitpool.discovery.auto.THRESHOLD", 0.5)
    assert runner.settings(found, False) != before


def test_an_interrupted_run_is_no_result_and_goes_on(tiny, tmp_path, monkeypatch):
    recipe = recipes.select("table1", ["rot TIRBM"])[0]
    monkeypatch.setitem(
        recipes.QUICK, "table1", {**recipes.QUICK["table1"], "parameters": {"n_components": 20, "n_iter": 3}}
    )
    options = {"quick": True, "data_dir": tiny, "device": "cpu"}
    epochs = TIRBM._end_epoch
    monkeypatch.setattr(TIRBM, "_end_epoch", lambda self, state: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="interrupted"):
        next(runner.reproduce([recipe], tmp_path, **options))
    assert os.listdir(tmp_path) == [".table1-rot-tirbm-0-quick.checkpoint"]
    begun = []
    monkeypatch.setattr(TIRBM, "_end_epoch", lambda self, state: begun.append(state.at.epoch) or epochs(self, state))
    next(runner.reproduce([recipe], tmp_path, **options))
    assert begun == [1, 2]
    assert os.listdir(tmp_path) == ["table1-rot-tirbm-quick.json"]


def test_rows_are_named_whole_or_by_their_first_word():
    names = lambda *rows: [r.row for r in recipes.select("table2", list(rows))]  # noqa: E731
    assert names("OMP") == ["OMP"]
    assert names("tiomp") == ["TIOMP combined", "TIOMP combined 4000"]
    assert names("RBM", "OMP 6000") == ["RBM", "OMP 6000"]


def test_published_folds_take_the_place_of_seeds(tmp_path):
    with pytest.raises(ValueError, match="seeds is 4, but 'RBM' has published folds"):
        next(runner.reproduce(recipes.select("table3", ["RBM"]), tmp_path, seeds=4))


def test_figure_4_is_drawn(tmp_path, monkeypatch, said):
    monkeypatch.setattr(figures, "natural_patches", lambda photographs, count: natural_patches(photographs, 300))
    monkeypatch.setattr(figures, "EPOCHS", 1)
    monkeypatch.setenv("ORBITPOOL_DATA", str(tmp_path))
    made = figures.draw("figure4", tmp_path / "out", quick=True, device="cpu")
    assert list(made["orbits"]) == list(made["orientation entropy in bits"]) == list(figures.POSES)
    sheets = {orbits["sheet"] for orbits in made["orbits"].values()}
    assert set(made["pictures"]) == {*figures.POSES, *sheets}
    assert made["orbits"]["translation"]["poses"] == list(figures.POSES["translation"].labels)
    assert all((tmp_path / "out" / file).read_bytes().startswith(b"\x89PNG") for file in made["pictures"].values())
    assert results.load(tmp_path / "out" / "figure4-quick.json") == made
    assert said == [f"[{i}/4] filters of natural images: {name}" for i, name in enumerate(figures.POSES, 1)]


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
    gratings = [np.sin(x * np.cos(a) + y * np.sin(a)) for a in np.pi * np.arange(8) / 8]
    assert orientation_entropy(np.stack(gratings)) == pytest.approx(log2(8), abs=0.01)
    upright = np.stack([np.sin(x)] * 8)
    assert orientation_entropy(upright) == 0
    noise = np.random.default_rng(0).normal(size=(24, 14, 14))
    assert orientation_entropy(upright + 0.02 * noise[:8]) < 0.2
    blob = np.exp(-(x**2 + y**2) / 4)
    assert orientation_entropy(np.concatenate([np.stack([np.sin(x)] * 12), blob[None].repeat(12, 0)])) < 0.2
    assert orientation_entropy(np.concatenate([np.stack([np.sin(x)] * 12), noise[:12]])) < 1
