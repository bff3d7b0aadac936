"""What was found beyond the paper, in pictures: drawn, kept and reported."""

from dataclasses import replace

import pytest

from orbitpool.discovery import auto
from orbitpool.experiments import figures, found, recipes
from orbitpool.report import report


@pytest.fixture
def very_small(monkeypatch, small_mnist, tiny):
    """One set, 600 digits, a few filters, 300 pairs of quarter turns."""
    small = {
        "parameters": {"n_components": 20, "n_iter": 1},
        "conv": {"n_patches": 600},
        "images": {"train": 600, "valid": 200, "test": 10},
    }
    monkeypatch.setitem(recipes.QUICK, "beyond", small)
    monkeypatch.setattr(auto, "STEPS", 5)
    monkeypatch.setattr(found, "SETS", {"rot auto": "digits turned by any angle"})
    row = next(r for r in recipes.TABLES["beyond"] if r.row == "rot TIRBM operators")
    few = replace(row, pairs={"degrees": (0, 90, 180, 270), "count": 300})
    monkeypatch.setitem(recipes.TABLES, "beyond", [few if r is row else r for r in recipes.TABLES["beyond"]])
    return small_mnist


def test_what_was_found_is_drawn_kept_and_reported(very_small, tmp_path):
    made = figures.draw("found", tmp_path, quick=True, data_dir=very_small, device="cpu")
    assert [part["title"] for part in made["parts"]] == [found.FINDING[0], *(title for title, _, _ in found.PARTS)]
    assert {t for part in made["parts"] for t in part["captions"]} == set(made["pictures"])
    captions = {title: words for part in made["parts"] for title, words in part["captions"].items()}
    assert captions["digits turned by any angle"].startswith("Digits turned by any angle: ")
    assert "of 300 pairs" in captions["pairs of digits"]
    assert captions["poses given"].count("rotate") == 5
    sections = {section.title.split(" (")[0]: section for section in report(tmp_path).sections}
    for part in made["parts"]:
        shown = {picture.caption for picture in sections[part["title"]].pictures}
        assert shown == set(part["captions"].values())
    first = sections[found.FINDING[0]].pictures[0]
    assert first.large
    assert not sections["Poses that are learned with the filters"].pictures[0].large
    (tmp_path / made["pictures"]["edges"]).unlink()
    sections = {section.title.split(" (")[0]: section for section in report(tmp_path).sections}
    assert [picture.caption for picture in sections["Shapes of edges"].pictures] == [captions["digits by shape"]]
