"""Recipes, the runner and pictures, on real digits in the official format, in small."""

import json
import os
from dataclasses import replace
from math import log2
from time import perf_counter

import numpy as np
import pytest

from orbitpool.experiments import recipes, results, runner
from orbitpool.images.pictures import mosaic, orientation_entropy, save_png


def test_every_row_of_the_paper_is_there():
    assert {table: len(rows) for table, rows in recipes.TABLES.items()} == {"table1": 12, "table2": 14, "table3": 8}
    keys = [recipe.key for rows in recipes.TABLES.values() for recipe in rows]
    assert len(set(keys)) == len(keys)
    assert [r.paper for r in recipes.select("table1", ["rot"])] == [15.6, 4.2]
    assert len(recipes.select("table2")) == 11


@pytest.mark.parametrize("table", recipes.TABLES)
def test_recipes_build(table):
    for recipe in recipes.select(table):
        features = runner.make_features(recipe, 0, runner.choose_device("cpu", None))
        features._check()
        assert (getattr(features, "learner", features).transforms is None) == ("TI" not in recipe.row)
        json.dumps(results.settings(recipe, False))
    combined = next(r for r in recipes.select("table2") if r.row == "TIRBM combined")
    assert len(runner.build_transforms(combined.transforms)) == 10


def test_unknown_tables_and_rows_are_refused():
    with pytest.raises(ValueError, match="there is no 'table9'; choose one of table1"):
        recipes.select("table9")
    with pytest.raises(ValueError, match="table1 has no row 'tilt' that can be run; choose from: rot RBM"):
        recipes.select("table1", ["rot", "tilt"])


def test_a_row_is_run_once_a_seed_and_kept(tiny, tmp_path, monkeypatch):
    stages = []
    recipe = replace(
        recipes.select("table1", ["rot TIRBM"])[0], classifier={"class": "SoftmaxRegression", "C": (0.1, 1.0)}
    )
    options = {"quick": True, "data_dir": tiny, "device": "cpu"}
    (result,) = runner.reproduce([recipe], tmp_path, tell=stages.append, **options)
    assert stages == [f"[1/1] rot TIRBM, seed 0: {stage}" for stage in ("data", "learn", *["encode"] * 3, "classify")]
    needed = {"table", "row", "method", "metric", "values", "mean", "std", "paper", "data", "versions", "settings"}
    assert needed <= result.keys()
    assert (result["table"], result["row"], result["metric"], result["paper"]) == ("table1", "rot TIRBM", "error", 4.2)
    assert result["data"] == "stand-in"
    assert 0 < result["mean"] < 90
    assert set(result["runs"][0]["seconds"]) == {"data", "learn", "encode", "classify"}
    path = results.path_of(recipe, tmp_path, True)
    assert json.loads(path.read_text()) == result

    stages.clear()
    assert next(runner.reproduce([recipe], tmp_path, tell=stages.append, **options))["runs"] == result["runs"]
    assert stages == []  # nothing was run again
    (two,) = runner.reproduce([recipe], tmp_path, seeds=2, **options)
    assert two["runs"][0] == result["runs"][0]
    assert len(two["values"]) == 2
    assert two["std"] > 0
    other = replace(recipe, parameters={**recipe.parameters, "learning_rate": 0.1})
    assert len(next(runner.reproduce([other], tmp_path, **options))["runs"]) == 1  # other settings start anew
    assert os.listdir(tmp_path) == [path.name]
    path.write_text("{}")
    with pytest.raises(ValueError, match="is not a result of orbitpool"):
        next(runner.reproduce([recipe], tmp_path, **options))


def test_the_time_left_is_judged_by_the_work_done():
    pace = runner.Pace(work=40, start=perf_counter() - 100)
    assert str(pace) == ""
    pace.add(10)
    assert str(pace) == ", 5 min left"
    pace.add(20)
    assert str(pace) == ", 33 s left"


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
