"""The main job in a minute, on data that comes with scikit-learn: turned digits, and patches of photographs."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from pathlib import Path
from typing import Any

import numpy as np

from orbitpool import datasets, transforms
from orbitpool.classifiers import LinearSVM
from orbitpool.experiments.figures import POSES, natural_filters, natural_patches
from orbitpool.experiments.making import fit
from orbitpool.images.pictures import mosaic, orientation_entropy, png
from orbitpool.learners import TIRBM
from orbitpool.progress import is_shown, task
from orbitpool.report import Page, Picture, Section, Table, write
from orbitpool.wholefile import check_writable

EPOCHS, PATCHES = 20, 40_000
LABELS = (50, 200, 1300)  # how many digits the classifier is told the names of
STEPS = {  # what is done, and about how many seconds it takes on a core
    "turned digits: RBM": 2,
    "turned digits: TIRBM": 5,
    "turned digits: samples of the TIRBM": 2,
    "patches of photographs: RBM": 13,
    "patches of photographs: rotation": 18,
}
WORDS = (
    "A filter is shared across a set of transformations, its orbit. Pooling over the orbit gives one number a filter "
    "that says whether it is there, in whatever pose. An RBM has one pose; the TIRBM has sixteen turns of 22.5 degrees."
)


def demo(folder: Path, device: str) -> tuple[Table, Path]:
    """Learn, compare and draw; the table of errors, and the page that shows everything."""
    check_writable(folder)
    with task("demo", sum(STEPS.values())) as progress:
        return _demo(folder, device, lambda what: progress.step(what, len(STEPS), STEPS[what]))


def _demo(folder: Path, device: str, tell: Callable[[str], None]) -> tuple[Table, Path]:
    digits = datasets.turned_digits()
    models: dict[str, TIRBM] = {}
    for name, poses in (("RBM", None), ("TIRBM", transforms.rotations(16, count=16, step=pi / 8))):
        tell(f"turned digits: {name}")
        model = TIRBM(100, poses, n_iter=EPOCHS, batch_size=20, random_state=0, device=device, verbose=is_shown())
        fit(model, digits.X_train)
        models[name] = model
    table = errors(digits, models)
    tell("turned digits: samples of the TIRBM")
    dreams = models["TIRBM"].reconstruct(models["TIRBM"].sample(100, steps=200, random_state=0)).reshape(-1, 16, 16)
    sheets = {
        "turned digits": (digits.X_train[:100], "Inputs: real digits, turned by any angle"),
        **{f"filters of the {name}": (_squares(m.components_), f"Filters of the {name}") for name, m in models.items()},
        "samples of the TIRBM": (dreams, "Drawn from the TIRBM by 200 steps of block Gibbs sampling"),
    }
    pictures = [_picture(name, mosaic(tiles), caption) for name, (tiles, caption) in sheets.items()]
    sections = [Section("Turned digits", _claim(table), table, pictures), _photographs(device, tell)]
    return table, write(Page("orbitpool: what it does", WORDS, sections), folder)


def errors(digits: datasets.Dataset, models: dict[str, TIRBM]) -> Table:
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
    X, entropy, pictures = natural_patches(datasets.sample_photographs(), PATCHES), {}, []
    for name in ("RBM", "rotation"):
        tell(f"patches of photographs: {name}")
        filters = natural_filters(X, POSES[name], EPOCHS, device)
        entropy[name] = orientation_entropy(filters)
        caption = f"{name}: orientation entropy {entropy[name]:.2f} bits"
        pictures.append(_picture(f"photograph filters {name}", mosaic(filters, columns=6, zoom=4), caption))
    words = (
        "24 filters each, learned from 14x14 patches of the photographs that come with scikit-learn, with one pose and "
        "with five turns of 22.5 degrees. "
        "The more evenly their orientations are spread, the higher the entropy; 3 bits are the most."
    )
    return Section("Photographs", words, None, pictures)


def _picture(name: str, sheet: Any, caption: str) -> Picture:
    return Picture(f"{name.lower().replace(' ', '-')}.png", png(sheet), caption, f"{name}, tiles side by side")


def _squares(filters: Any) -> Any:
    side = round(np.sqrt(filters.shape[1]))
    return filters.reshape(-1, side, side)
