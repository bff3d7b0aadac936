"""Invariance as a number: what it measures, what is kept of it, and the whole way from the command."""

from base64 import b64decode
from math import pi

import numpy as np
import pytest
from typer.testing import CliRunner

from orbitpool import transforms
from orbitpool.cli import app
from orbitpool.experiments import figures, invariance, recipes, results
from orbitpool.experiments.drawing import draw_filters
from orbitpool.experiments.invariance import MOVES, SHOWN, Study, learn, similarity
from orbitpool.report import report


@pytest.fixture(scope="module")
def models(turned_digits):
    """Two small models of turned digits, of which the TIRBM has the four quarter turns, a closed orbit."""
    quarters = transforms.rotations(16, count=4, step=pi / 2)
    options = {"n_components": 50, "n_iter": 4, "batch_size": 20, "device": "cpu"}
    return learn(turned_digits.X_train, quarters, "digits", lambda what: None, **options)


def test_similarity_is_one_where_the_orbit_is_closed_and_falls_in_between(models, turned_digits):
    X, y = turned_digits.X_test[:100], turned_digits.y_test[:100]
    found = similarity(MOVES["turned"], models, X, y)
    at = dict(zip(found["amounts"], found["curves"]["TIRBM"], strict=True))
    assert [at[angle] for angle in (0, 90, 180)] == pytest.approx([1, 1, 1], abs=2e-3)  # but for the poses' biases
    assert at[45] < 0.95
    assert found["curves"]["RBM"][0] == pytest.approx(1)
    assert found["curves"]["RBM"][18] < 0.7
    assert found["mean"]["TIRBM"] == pytest.approx(np.mean(found["curves"]["TIRBM"]))
    assert found["mean"]["RBM"] < found["mean"]["TIRBM"]
    assert found["others"]["TIRBM"] < found["mean"]["TIRBM"]


def test_features_that_never_change_are_as_similar_between_different_digits(turned_digits):
    """Invariance alone is cheap: the number beside it tells a constant from a feature."""

    class Constant:
        def transform(self, X):
            return np.tile([0.2, 0.7], (len(X), 1))

    found = similarity(MOVES["turned"], {"RBM": Constant()}, turned_digits.X_test[:20], np.arange(20) % 10)
    assert found["mean"]["RBM"] == pytest.approx(1)
    assert found["others"]["RBM"] == pytest.approx(1)


def test_moves_begin_with_no_move_and_do_what_they_say():
    digit = np.zeros((1, 28, 28), np.uint8)
    digit[0, 10:18, 6:10] = 255
    for move in MOVES.values():
        np.testing.assert_allclose(move(digit, move.amounts[0]), digit / 255, atol=1e-6)
    np.testing.assert_allclose(MOVES["shifted"](digit, 5)[0], np.roll(digit[0] / 255, 5, axis=1))
    np.testing.assert_allclose(MOVES["turned"](digit, 90)[0], np.rot90(digit[0] / 255), atol=1e-5)
    assert MOVES["scaled"](digit, 0.5).sum() == pytest.approx(digit.sum() / 255 / 4, rel=0.02)


def test_an_explorer_holds_what_the_models_say(models, turned_digits):
    digits, study = turned_digits.X_test[:3], Study()
    study.explore(models, digits, turned_digits.y_test[:3])
    explorer = study.numbers["explorer"]
    count = len(explorer["angles"])
    assert (explorer["labels"], count) == (turned_digits.y_test[:3].tolist(), 72)
    assert study.pictures[explorer["digits"]].shape == (3 * 16, count * 16)
    image = MOVES["turned"](digits[1:2], explorer["angles"][13])
    for name, machine in explorer["machines"].items():
        numbers = study.numbers["orbits"][machine["filters"]]["filters"]
        assert len(numbers) == SHOWN
        on, pose = (np.frombuffer(b64decode(machine[part]), np.uint8).reshape(3, count, -1) for part in ("on", "pose"))
        np.testing.assert_allclose(on[1, 13], 100 * models[name].transform(image)[0, numbers], atol=0.51)
        np.testing.assert_array_equal(pose[1, 13], models[name].posterior(image)[0, numbers].argmax(-1))


def test_filters_are_drawn_in_every_pose():
    W = np.random.default_rng(0).normal(size=(7, 12, 12))
    shifts = transforms.translations(14, 12, 1)
    pictures, said = draw_filters("small", W, shifts, 14, [3, 1, 4, 15, 9, 2, 6])
    assert list(pictures) == ["small", "small in every pose"]
    sheet = pictures[said["sheet"]].astype(float)
    assert (sheet.shape, said["poses"], said["filters"][3]) == ((7 * 14, 9 * 14), list(shifts.labels), 15)
    tile = sheet[2 * 14 : 3 * 14, 4 * 14 : 5 * 14]
    assert np.corrcoef(tile[1:13, 1:13].ravel(), W[2].ravel())[0, 1] > 0.99  # the middle pose
    assert len(np.unique(sheet)) <= 16


def test_the_figures_that_are_named_are_those_that_are_drawn():
    assert tuple(figures.FIGURES) == recipes.FIGURES


def test_invariance_is_measured_kept_and_reported(small_mnist, tmp_path, monkeypatch):
    """The whole way by the command line, in very small."""
    monkeypatch.setattr(invariance, "QUICK", {"n_components": 40, "n_iter": 2, "batch_size": 20})
    monkeypatch.setattr(invariance, "QUICK_HELD_OUT", 60)
    options = ("--quick", "--device", "cpu", "--data-dir", str(small_mnist), "--results", str(tmp_path))
    run = CliRunner().invoke(app, ["reproduce", "invariance", *options])
    assert run.exit_code == 0, run.output
    kept = results.load(tmp_path / "invariance-quick.json")
    table = {line.strip().split("  ")[0]: line.split()[-4:] for line in run.stdout.splitlines() if " by " in line}
    for name, move in kept["similarity"].items():
        assert set(move["mean"]) == set(move["curves"]) == {"RBM", "TIRBM"}
        said = next(numbers for title, numbers in table.items() if title.startswith(name))
        assert said[:2] == [f"{move['mean'][machine]:.3f}" for machine in ("RBM", "TIRBM")]
    assert kept["similarity"]["turned"]["mean"]["RBM"] < kept["similarity"]["turned"]["mean"]["TIRBM"]
    assert len(kept["history"]["scaled"]["TIRBM"]["reconstruction_error"]) == 2
    assert kept["data"] == "stand-in"
    sections = {section.title.split(" (")[0]: section for section in report(tmp_path).sections}
    titles = ["Turn a digit", "How far features stay the same", "Learning", "Filters and their orbits", "Samples"]
    assert list(sections)[: len(titles)] == titles
    assert len(sections["How far features stay the same"].charts) == 3
    (tmp_path / "invariance-quick-turned-digits.png").unlink()
    assert "Turn a digit (quick: in small)" not in [section.title for section in report(tmp_path).sections]
