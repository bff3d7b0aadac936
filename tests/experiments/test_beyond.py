"""Rows that the paper does not have, on real digits in small."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from orbitpool import transforms as T
from orbitpool.datasets import make_variation
from orbitpool.experiments import beyond, images, pairs, recipes, runner
from orbitpool.experiments.making import in_words


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


def test_learned_poses_differ_from_the_row_that_they_start_from_in_nothing_else():
    known = {recipe.row: recipe for recipe in recipes.select("beyond")}
    for row in ("tilt TIRBM", "tilt TIRBM by 10", "tilt TIRBM by 5"):
        given, learned = known[row], known[f"{row} poses"]
        name, arguments = learned.transforms
        assert (name, arguments["start"]) == ("learned", given.transforms)
        assert replace(learned, row=given.row, method=given.method, transforms=given.transforms) == given


def test_tilted_digits_are_turned_by_twenty_degrees_at_most():
    digits = np.zeros((200, 28, 28), np.uint8)
    digits[:, 8:20, 12:16] = 255
    images, drawn = make_variation("tilt", digits, np.random.default_rng(0))
    assert np.abs(np.degrees(drawn["angle"])).max() <= 20
    assert np.degrees(drawn["angle"]).std() == pytest.approx(20 / 3**0.5, abs=1.5)
    back = pairs.judged(T.rotations(28, 3, 0.2, border="zero"), (-11.459, 0, 11.459))
    assert [o["nearest"] for o in back] == [-11.459, 0, 11.459]
    assert images.shape == (200, 28, 28)


def test_two_layers_are_learned_and_judged(small, monkeypatch):
    """The row in small: sixteen places and eight poses instead of sixty-four and sixteen."""
    (recipe,) = recipes.select("beyond", ["rot stack"])
    above = {**recipe.above, "transforms": ("turned_maps", {"window": 4, "poses": 8})}
    recipe = replace(recipe, transforms=beyond.turns(5, 8), conv={**recipe.conv, "grid": 4}, above=above)
    sizes = {"train": 1000, "valid": 200, "test": 300}
    quick = {"parameters": {"n_components": 60, "n_iter": 2}, "conv": {"n_patches": 3000}, "images": sizes}
    monkeypatch.setitem(recipes.QUICK, "beyond", quick)
    run = runner.run(recipe.quick(), 0, quick=True, data_dir=small, device="cpu")
    assert 0 < run["values"][0] < 40  # of a hundred; by chance ninety
    assert run["C"][0] in recipe.classifier["C"]
    words = runner.settings(recipe, True)["features"]
    assert (words["class"], words["first"]["poses"], words["second"]["whiten"]) == ("Stack", "keep", 2.0)


def test_a_wide_layer_stands_beside_two_layers(photographs):
    (recipe,) = recipes.select("beyond", ["cifar10 stack"])
    few = {"parameters": {"n_components": 6, "n_iter": 1}, "conv": {"n_patches": 500}, "images": {}}
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(recipes.QUICK, "beyond", few)
        features = images.make_features(recipe.quick(), 0, "cpu")
    X = np.stack([photographs[:, y : y + 32, x : x + 32] for y in (0, 99, 200) for x in (0, 150, 300)], 1)
    X = torch.from_numpy(X.reshape(-1, 32, 32)).float()
    Z = features.fit(X).transform(X)
    assert Z.shape == (18, 2 * 4 * (6 + 6))
    torch.testing.assert_close(features.transform(X.flip(2)), Z, atol=1e-4, rtol=1e-4)
    assert not hasattr(features.first, "first_")  # clones have learned
    one = images.make_features(recipes.select("beyond", ["cifar10 TIOMP 4000 mirror"])[0], 0, "cpu")
    assert in_words(features.second)["learner"]["transforms"] == in_words(one)["learner"]["transforms"]


def test_layers_above_and_beside_have_transformations_of_their_own():
    (recipe,) = recipes.select("beyond", ["cifar10 stack"])
    beside = {"parameters": recipe.beside["parameters"], "conv": {"patch_size": 6}}
    features = images.make_features(replace(recipe, transforms=beyond.turns(5, 4), beside=beside), 0, "cpu")
    assert len(features.first.first.learner.transforms) == 4
    assert features.first.second.learner.transforms is None
    assert features.second.learner.transforms is None


def test_every_layer_counts_as_work():
    (recipe,) = recipes.select("beyond", ["cifar10 stack"])
    assert recipe.effort == 4 * 128 + 4 * 4000 + 6 * 4000
    assert replace(recipe, above=None, beside=None).effort == 4 * 128
