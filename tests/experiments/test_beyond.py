"""Rows that the paper does not have, on real digits in small."""

import numpy as np
import pytest

from orbitpool import transforms as T
from orbitpool.datasets import make_variation
from orbitpool.experiments import pairs, recipes, runner


@pytest.fixture
def small(monkeypatch, tiny):
    parameters = {"parameters": {"n_components": 20, "n_iter": 1}}
    monkeypatch.setitem(recipes.QUICK, "beyond", parameters | {"images": {"train": 1000, "valid": 200, "test": 300}})
    return tiny


def test_operators_are_learned_from_pairs_and_judged(small, monkeypatch):
    recipe = next(r for r in recipes.select("beyond") if r.pairs is not None).quick()
    monkeypatch.setitem(recipe.pairs, "degrees", (0, 90, 180, 270))
    monkeypatch.setitem(recipe.pairs, "count", 1500)
    run = runner.run(recipe, 0, quick=True, data_dir=small, device="cpu")
    assert sorted(o["nearest"] for o in run["operators"]) == [0, 90, 180, 270]
    assert all(abs(o["degrees off"]) < 3 and o["cosine"] > 0.95 for o in run["operators"])
    assert "operators" in run["seconds"]
    assert 0 < run["values"][0] < 90
    settings = runner.settings(recipe, True)
    assert settings["pairs"]["count"] == 1500
    assert settings["features"]["transforms"] is None  # the true turns are not what it learns with
    assert settings["operators"] == "learned from pairs"


def test_learned_poses_are_told(small):
    (recipe,) = recipes.select("beyond", ["tilt TIRBM poses"])
    run = runner.run(recipe.quick(), 0, quick=True, data_dir=small, device="cpu")
    assert len(run["poses"]) == 5
    assert runner.settings(recipe, False)["features"]["transforms"][0].startswith("LearnedSet(5 of 28×28")


def test_tilted_digits_are_turned_by_twenty_degrees_at_most():
    digits = np.zeros((200, 28, 28), np.uint8)
    digits[:, 8:20, 12:16] = 255
    images, drawn = make_variation("tilt", digits, np.random.default_rng(0))
    assert np.abs(np.degrees(drawn["angle"])).max() <= 20
    assert np.degrees(drawn["angle"]).std() == pytest.approx(20 / 3**0.5, abs=1.5)
    back = pairs.judged(T.rotations(28, 3, 0.2, border="zero"), (-11.459, 0, 11.459))
    assert [o["nearest"] for o in back] == [-11.459, 0, 11.459]
    assert images.shape == (200, 28, 28)
