"""The main job in a minute, on data that comes with scikit-learn: turned digits, and patches of photographs."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from pathlib import Path
from typing import Any

import numpy as np

from orbitpool import datasets, transforms
from orbitpool.classifiers import LinearSVM
from orbitpool.experiments.drawing import file_of
from orbitpool.experiments.figures import POSES, draw_natural, natural_patches
from orbitpool.experiments.invariance import EXPLORED, MOVES, Models, Study, learn
from orbitpool.pictures import Bytes, mosaic, png
from orbitpool.progress import is_shown, task
from orbitpool.report import Page, Picture, Section, Table, write
from orbitpool.report.figures import Contents, drawn, invariance, similarities
from orbitpool.wholefile import check_writable

EPOCHS, PATCHES = 20, 40_000
LABELS = (50, 200, 1300)  # how many digits the classifier is told the names of
STEPS = {  # what is done, and about how many seconds it takes on a core
    "turned digits: RBM": 2,
    "turned digits: TIRBM": 5,
    "turned digits: how far features stay the same, and samples of the TIRBM": 6,
    "filters of natural images: RBM": 13,
    "filters of natural images: rotation": 18,
}
WORDS = (
    "A filter is shared across a set of transformations, its orbit. Pooling over the orbit gives one number a filter "
    "that says whether it is there, in whatever pose. An RBM has one pose; the TIRBM has sixteen turns of 22.5 degrees."
)


def demo(folder: Path, device: str) -> tuple[Table, Table, Path]:
    """Learn, compare and draw; errors and similarities as tables, and the page that shows everything."""
    check_writable(folder)
    with task("demo", sum(STEPS.values())) as progress:
        return _demo(folder, device, lambda what: progress.step(what, len(STEPS), STEPS[what]))


def _demo(folder: Path, device: str, tell: Callable[[str], None]) -> tuple[Table, Table, Path]:
    digits = datasets.turned_digits()
    turns = transforms.rotations(16, count=16, step=pi / 8)
    settings = {"n_components": 100, "n_iter": EPOCHS, "batch_size": 20, "device": device, "verbose": is_shown()}
    models = learn(digits.X_train, turns, "turned digits", tell, **settings)
    table = errors(digits, models)
    tell("turned digits: how far features stay the same, and samples of the TIRBM")
    study = Study()
    study.measure("turned", MOVES["turned"], models, digits.X_test, digits.y_test)
    chosen = [np.flatnonzero(digits.y_test == label)[0] for label in EXPLORED]
    study.explore(models, digits.X_test[chosen], EXPLORED)
    study.sample("TIRBM", models["TIRBM"], digits.X_test[chosen])
    inputs = Picture("inputs.png", png(mosaic(digits.X_train[:100], 10)), "Inputs", "real digits, turned by any angle")
    sections = [
        Section("Turned digits", _claim(table), table, [inputs]),
        *invariance(study.numbers, _contents("digits", study.pictures), "digits"),
        _photographs(device, tell),
    ]
    return table, similarities(study.numbers), write(Page("orbitpool: what it does", WORDS, sections), folder)


def errors(digits: datasets.Dataset, models: Models) -> Table:
    """Test errors of a linear classifier on pixels and on features, for few and for many labels."""
    encode: dict[str, Any] = {"pixels": lambda X: X.reshape(len(X), -1)}
    encode |= {name: model.transform for name, model in models.items()}
    rows = []
    for count in LABELS:
        cells = []
        for f in encode.values():
            classifier = LinearSVM(C=0.1, standardize=True).fit(f(digits.X_train[:count]), digits.y_train[:count])
            cells.append(f"{1 - classifier.score(f(digits.X_test), digits.y_test):.1%}")
        rows.append((f"{count:,}", *cells))
    return Table(("labels", *encode), rows)


def _claim(table: Table) -> str:
    labels, _, rbm, tirbm = table.rows[-1]
    return (
        f"Test error of a linear classifier. With {labels} labels it errs on {rbm} of the digits that it has not seen "
        f"if its features come from the RBM, and on {tirbm} if they come from the TIRBM."
    )


def _photographs(device: str, tell: Callable[[str], None]) -> Section:
    X = natural_patches(datasets.sample_photographs(), PATCHES)
    poses = {name: POSES[name] for name in ("RBM", "rotation")}
    pictures, found = draw_natural(X, poses, EPOCHS, device, tell)
    words = (
        "24 filters each, learned from 14x14 patches of the photographs that come with scikit-learn, with one pose and "
        "with five turns of 22.5 degrees. "
        "The more evenly their orientations are spread, the higher the entropy; 3 bits are the most."
    )
    return drawn("Photographs", words, found, _contents("photographs", pictures))


def _contents(key: str, pictures: dict[str, Bytes]) -> Contents:
    return {title: (file_of(key, title), png(picture)) for title, picture in pictures.items()}
