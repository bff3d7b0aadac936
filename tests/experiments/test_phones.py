"""Tables 4 and 5 on a small made-up TIMIT."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from orbitpool.datasets import timit
from orbitpool.experiments import phones, recipes, results, runner
from orbitpool.experiments.making import build_transforms
from orbitpool.experiments.phones import choose, inner_folds
from orbitpool.experiments.trial import Trial


@pytest.fixture
def tiny(monkeypatch, spoken):
    for table in ("table4", "table5"):
        monkeypatch.setitem(recipes.QUICK, table, {"parameters": {"n_components": 4, "n_iter": 1}})
    return spoken


@pytest.mark.parametrize("table", ["table4", "table5"])
def test_rows_are_judged_on_unseen_speakers(table, tiny, tmp_path, said):
    for recipe in recipes.select(table):
        (result,) = runner.reproduce([recipe], tmp_path, quick=True, data_dir=tiny, device="cpu")
        assert {"table", "row", "method", "metric", "values", "mean", "std", "paper", "data"} <= result.keys()
        assert result["mean"] > 90
        assert len(result["values"]) == 2
        assert json.loads(results.path_of(recipe, tmp_path, True).read_text()) == result
        (run,) = result["runs"]
        assert run["data"] == "stand-in"
        assert run["protocol"] == "speaker-disjoint cross-validation, 6 folds"
        assert [fold["judged on"] for fold in run["folds"]] == [["fab00"], ["fab01"]]
        assert all(fold["C"] in recipe.classifier["C"] for fold in run["folds"])
    assert said[2].endswith("MFCC, seed 0: speaker-disjoint cross-validation, 6 folds: 1 of 2")
    assert "this is a stand-in: " in said[1]


def test_the_best_choice_wins(tiny, monkeypatch):
    """By its score on the training speakers, whatever it is worth on the others."""

    def chosen(classifier, X, y, splits, device):
        return 0.01, {2: 0.6, 5: 0.7, 3: 0.5}[X.shape[1] // 10]

    monkeypatch.setattr(phones, "choose", chosen)
    choices = tuple({"n_components": K} for K in (2, 5, 3))
    recipe = replace(recipes.select("table4", ["RBM"])[0].quick(), choices=choices)
    run = runner.run(recipe, 0, True, tiny, "cpu")
    assert [(fold["n_components"], fold["C"]) for fold in run["folds"]] == [(5, 0.01), (5, 0.01)]


@pytest.mark.parametrize("row", ["table4 RBM", "table5 TIRBM 256"])
def test_labels_and_sounds_of_those_who_are_judged_change_nothing(row, tiny, monkeypatch):
    table, name = row.split(" ", 1)
    recipe, data = recipes.select(table, [name])[0].quick(), timit(tiny)
    train, test = data.splits()[0]
    splits = []
    chosen = phones.choose
    monkeypatch.setattr(phones, "choose", lambda *given: splits.append(given[3]) or chosen(*given))

    trial = Trial(recipe, 0, True, tiny, torch.device("cpu"), runner.Stages(), None)

    def guess(data):
        return phones.guess(trial, data, train, test)

    settings, guessed = guess(data)
    other = data.labels.copy()
    other[test] = "s"
    again = guess(replace(data, labels=other))
    assert settings == again[0]
    assert list(guessed) == list(again[1])
    speakers = data.speakers[train]
    assert all(not set(speakers[fit]) & set(speakers[judge]) for fit, judge in splits[0])
    segments = [data.segments[train[0]] if i in set(test) else each for i, each in enumerate(data.segments)]
    assert guess(replace(data, segments=segments))[0] == settings


def test_development_speakers_are_what_choices_are_made_on(tiny, monkeypatch):
    data = timit(tiny)
    who = [np.isin(data.speakers, ["fab00", "fab01"]), data.speakers == "fab02"]
    parts = np.select(who, ["test", "development"], "train")
    recipe, given = recipes.select("table4", ["MFCC"])[0].quick(), []
    chosen = phones.choose
    monkeypatch.setattr(phones, "choose", lambda *each: given.append(each) or chosen(*each))
    monkeypatch.setattr(phones, "timit", lambda folder: replace(data, parts=parts))
    run = runner.run(recipe, 0, True, tiny, "cpu")
    assert (len(run["values"]), run["protocol"]) == (1, "published training and core test speakers")
    _, X, y, [(fit, judge)], _ = given[0]
    assert (len(fit), len(judge), len(X), len(y)) == (36, 12, 48, 48)


def test_the_tirbm_has_three_places_and_speakers_their_own_scale():
    (recipe,) = recipes.select("table4", ["TIRBM"])
    assert [len(build_transforms(recipe.transforms)), recipe.parameters["n_components"]] == [3, 256]
    assert recipe.parameters["two_sided"]
    assert recipe.speech["normalize"] == "speaker"


def test_no_speaker_is_on_both_sides_of_the_choice_of_c():
    speakers = np.repeat(["a", "b", "c", "d", "e", "f"], 5)
    for fit, judge in inner_folds(speakers):
        assert not set(speakers[fit]) & set(speakers[judge])
    assert len(inner_folds(speakers)) == 5
    assert len(inner_folds(speakers[:10])) == 2


def test_a_lead_is_measured_on_the_same_folds():
    """Differences of 1, 2 and 3 points: 2 on average, with a standard error of 1 / sqrt(3), however folds differ."""
    first, second = ({"runs": [{"values": v}]} for v in ([50.0, 70.0, 90.0], [51.0, 72.0, 93.0]))
    assert results.lead(second, first) == pytest.approx((2, 3**-0.5))
    named = [{**r, "row": name} for r, name in ((first, "a"), (second, "b"))]
    assert results.leads(named) == []  # nobody knows whether the folds are the same
    for r in named:
        r["runs"][0]["folds"] = [{"judged on": [who]} for who in "xyz"]
    assert results.leads(named) == ["b leads a by 2.00 points, with a standard error of 0.58 over the folds."]
    assert results.leads(named[::-1]) == ["a is behind b by 2.00 points, with a standard error of 0.58 over the folds."]
    named[1]["runs"] = [{"values": [1.0], "folds": [{"judged on": ["x"]}]}]
    assert results.leads(named) == []
    seeds = {"runs": [{"values": [50.0, 73.0, 92.0]}, {"values": [52.0, 71.0, 94.0]}]}
    assert results.lead(seeds, first) == pytest.approx((2, 3**-0.5))


def test_the_kernel_is_the_same_computed_at_once_or_by_libsvm(monkeypatch):
    rng = np.random.default_rng(0)
    y, speakers = np.tile(["a", "b", "c"], 40), np.repeat(["x", "y", "z", "w"], 30)
    X = rng.normal(size=(120, 7)) + (y == "a")[:, None]
    classifier = recipes.select("table5", ["MFCC"])[0].classifier
    C, score = choose(classifier, X, y, inner_folds(speakers), "cpu")
    monkeypatch.setattr(phones, "WHOLE", 0)
    by_libsvm, its_score = choose(classifier, X, y, inner_folds(speakers), "cpu")
    assert (C, score) == (by_libsvm, pytest.approx(its_score, abs=0.02))  # each fold's scale is its own there
