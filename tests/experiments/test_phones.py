"""Tables 4 and 5 on a small made-up TIMIT."""

import json
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from numpy.testing import assert_allclose
from scipy.signal import chirp

from orbitpool.experiments import phones, recipes, results, runner
from orbitpool.experiments.phones import classify, inner_folds

SOUNDS = {"iy": (300, 2500), "aa": (2500, 300), "s": (5000, 5200)}


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """Six speakers with two utterances each, of three sounds that none of them says like another."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for speaker in range(6):
        place = folder / "timit_sample" / f"dr1-fab{speaker:02}"
        place.mkdir(parents=True)
        for number in (1, 2):
            pieces, notes = [], ""
            for i, phone in enumerate([*SOUNDS, *SOUNDS]):
                t = np.arange(1600) / 16_000
                low, high = SOUNDS[phone]
                pieces.append(0.2 * chirp(t, low * (1 + speaker / 50), t[-1], high) + 0.02 * rng.normal(size=1600))
                notes += f"{1600 * i} {1600 * (i + 1)} {phone}\n"
            soundfile.write(place / f"sx{number}.wav", np.concatenate(pieces), 16_000)
            (place / f"sx{number}.phn").write_text(notes)
    return folder


@pytest.fixture
def tiny(monkeypatch, spoken):
    for table in ("table4", "table5"):
        monkeypatch.setitem(recipes.QUICK, table, {"parameters": {"n_components": 4, "n_iter": 1}})
    return spoken


@pytest.mark.parametrize("table", ["table4", "table5"])
def test_rows_are_judged_on_unseen_speakers(table, tiny, tmp_path):
    told = []
    for recipe in recipes.select(table):
        (result,) = runner.reproduce([recipe], tmp_path, quick=True, data_dir=tiny, device="cpu", tell=told.append)
        assert {"table", "row", "method", "metric", "values", "mean", "std", "paper", "data"} <= result.keys()
        assert result["mean"] > 90
        assert len(result["values"]) == 2
        assert json.loads(results.path_of(recipe, tmp_path, True).read_text()) == result
        (run,) = result["runs"]
        assert run["data"] == "stand-in"
        assert run["protocol"] == "speaker-disjoint cross-validation, 6 folds"
        assert [fold["judged on"] for fold in run["folds"]] == [["fab00"], ["fab01"]]
        assert all(fold["C"] in recipe.classifier["C"] for fold in run["folds"])
    assert told[2].endswith("MFCC, seed 0: speaker-disjoint cross-validation, 6 folds: 1 of 2")
    assert "this is a stand-in: " in told[1]


def test_settings_of_the_learner_are_chosen_too(tiny):
    recipe = replace(recipes.select("table4", ["RBM"])[0].quick(), choices=({"n_components": 2}, {"n_components": 5}))
    run = runner.run(recipe, 0, True, tiny, "cpu")
    assert all(fold["n_components"] in (2, 5) for fold in run["folds"])


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
    seeds = {"runs": [{"values": [50.0, 73.0, 92.0]}, {"values": [52.0, 71.0, 94.0]}]}
    assert results.lead(seeds, first) == pytest.approx((2, 3**-0.5))


def test_the_kernel_is_the_same_computed_at_once_or_by_libsvm(monkeypatch):
    rng = np.random.default_rng(0)
    y, speakers = np.tile(["a", "b", "c"], 40), np.repeat(["x", "y", "z", "w"], 30)
    X = rng.normal(size=(120, 7)) + (y == "a")[:, None]
    recipe = recipes.select("table5", ["MFCC"])[0]
    at_once, C, score = classify(recipe, X, y, speakers)
    monkeypatch.setattr(phones, "WHOLE", 0)
    by_libsvm, C_, score_ = classify(recipe, X, y, speakers)
    assert (C, score) == (C_, score_)
    assert_allclose(at_once.decision_function(X), by_libsvm.decision_function(X), atol=1e-2)
