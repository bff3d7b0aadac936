"""Figures as sections of a page: pictures of filters, and invariance as an explorer, curves and numbers."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.report.charts import Chart, Line
from orbitpool.report.page import Explorer, Picture, Section, Sheet, Table

Contents = dict[str, tuple[str, bytes]]  # the names and contents of PNG files by their titles
RANKS = {"RBM": 0, "TIRBM": 1}  # which colour belongs to which machine

EXPLORE = (
    "Digits that neither machine has learned from, turned all around. The RBM knows every filter in one pose, so its "
    "filters go on and off as a digit turns; the TIRBM's stay on and turn along."
)
NUMBER = (
    "The features of a held-out digit against those of the same digit moved: mean cosine similarity, 1 if nothing has "
    "changed. Dashed is the similarity between different digits, which tells invariance from features that are always "
    "the same. A TIRBM can undo only the moves that it has poses for."
)
SAMPLES = (
    "Block Gibbs sampling starts at held-out digits, in the first row; the rows below show what the model has made of "
    "them after {} steps. A grey disc is the mean of all inputs: no filter is on, a state of its own to a model that "
    "has learned by one step of contrastive divergence."
)
PARTS = ("on", "pose", "similarity")  # of what a machine makes of a digit


def pictured(contents: Contents, orbits: dict[str, Any]) -> dict[str, Picture]:
    """Pictures by their titles; those of filters have their orbits, whose sheets are no pictures of their own."""
    sheets = {each["sheet"] for each in orbits.values()}
    return {
        title: Picture(name, png, title, f"{title}, tiles side by side", _orbits(orbits.get(title), contents))
        for title, (name, png) in contents.items()
        if title not in sheets
    }


def _orbits(orbit: dict[str, Any] | None, contents: Contents) -> Sheet | None:
    if orbit is None or orbit["sheet"] not in contents:
        return None
    return Sheet(*contents[orbit["sheet"]], tuple(f"filter {n}" for n in orbit["filters"]), tuple(orbit["poses"]))


def source(found: dict[str, Any]) -> str:
    """What a figure was made from, where it says so."""
    return f"Made from {found['source']} ({found['data']})." if "source" in found else ""


def drawn(title: str, words: str, found: dict[str, Any], contents: Contents) -> Section:
    """Pictures as a section, with the orientation entropy of filters where that was found."""
    entropy = found.get("orientation entropy in bits", {})
    table = Table(("filters", "orientation entropy in bits"), [(name, f"{bits:.2f}") for name, bits in entropy.items()])
    pictures = list(pictured(contents, found.get("orbits", {})).values())
    return Section(title, words, table if entropy else None, pictures)


def told(found: dict[str, Any], contents: Contents, suffix: str = "") -> list[Section]:
    """What was found beyond the paper, as sections: words, and pictures with captions."""
    return [
        Section(
            part["title"] + suffix,
            part["words"],
            pictures=[
                Picture(*contents[t], caption, caption) for t, caption in part["captions"].items() if t in contents
            ],
        )
        for part in found["parts"]
    ]


def invariance(found: dict[str, Any], contents: Contents, key: str, suffix: str = "") -> list[Section]:
    """What an invariance study found, as sections; charts are kept under names that begin with the key."""
    pictures = pictured(contents, found["orbits"])
    machines = {name: pictures.pop(machine["filters"], None) for name, machine in found["explorer"]["machines"].items()}
    digits = pictures.pop(found["explorer"]["digits"], None)
    sections = [
        Section(
            f"How far features stay the same{suffix}",
            f"{NUMBER} {source(found)}".strip(),
            similarities(found),
            charts=_curves(found, key),
        ),
        Section(
            f"Learning{suffix}", "Reconstruction error of the inputs, epoch by epoch.", charts=_learning(found, key)
        ),
    ]
    if digits and all(picture and picture.orbits for picture in machines.values()):
        explorer = _explorer(found["explorer"], digits, machines)
        sections.insert(0, Section(f"Turn a digit{suffix}", EXPLORE, _stays(found["explorer"]), explorer=explorer))
    mosaics = [picture for title, picture in pictures.items() if title in found["orbits"]]
    if mosaics:
        words = "An orbit is all the poses that are one filter to the TIRBM; an RBM's filters have one pose."
        sections.append(Section(f"Filters and their orbits{suffix}", words, pictures=mosaics))
    if samples := [picture for picture in pictures.values() if picture not in mosaics]:
        words = SAMPLES.format(", ".join(map(str, found["samples"][1:])))
        sections.append(Section(f"Samples{suffix}", words, pictures=samples))
    return sections


def _explorer(found: dict[str, Any], digits: Picture, machines: dict[str, Picture | None]) -> Explorer:
    angles = found["angles"]
    labels = tuple(f"digit {label}" for label in found["labels"])
    sheet = Sheet(digits.name, digits.png, labels, tuple(f"{angle}°" for angle in angles))
    said = {name: {part: machine[part] for part in PARTS} for name, machine in found["machines"].items()}
    return Explorer(sheet, angles[1] - angles[0], {name: (p, said[name]) for name, p in machines.items() if p})


def _stays(found: dict[str, Any]) -> Table:
    """For each digit of the explorer, all around the circle: how much stays on, and how similar features are."""
    columns: dict[str, list[str]] = {}
    count = len(found["labels"])
    for name, machine in found["machines"].items():
        on = _numbers_of(machine["on"]).reshape(count, len(found["angles"]), -1)
        stay = np.minimum(on, on[:, :1]).sum((1, 2)) / (len(found["angles"]) * on[:, 0].sum(1, dtype=float))
        columns[f"{name}: stays on"] = [f"{share:.0%}" for share in stay]
        similar = _numbers_of(machine["similarity"]).reshape(count, -1).mean(1) / 100
        columns[f"{name}: similarity"] = [f"{mean:.2f}" for mean in similar]
    return Table(
        ("all around", *columns), list(zip((f"digit {n}" for n in found["labels"]), *columns.values(), strict=True))
    )


def _numbers_of(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(b64decode(text), np.uint8)


def similarities(found: dict[str, Any]) -> Table:
    """Invariance as a number: for each move and machine the mean similarity over all amounts."""
    names = list(next(iter(found["similarity"].values()))["mean"])
    rows = [
        (
            f"{move} by {of['amounts'][0]:g} to {of['amounts'][-1]:g} {of['unit']}",
            *(f"{of['mean'][name]:.3f}" for name in names),
            *(f"{of['others'][name]:.3f}" for name in names),
        )
        for move, of in found["similarity"].items()
    ]
    return Table(("mean cosine similarity", *names, *(f"{name}, different digits" for name in names)), rows)


def _curves(found: dict[str, Any], key: str) -> list[Chart]:
    """Similarity against each move."""
    charts = []
    for move, of in found["similarity"].items():
        x = of["amounts"]
        solid = [Line(name, x, y, RANKS[name]) for name, y in of["curves"].items()]
        dashed = [
            Line(f"{name}, different", [x[0], x[-1]], [y, y], RANKS[name], dashed=True)
            for name, y in of["others"].items()
        ]
        caption = f"Digits {move}, against themselves"
        every = 45.0 if of["unit"] == "degrees" else None
        lines = [*solid, *dashed]
        charts.append(Chart(f"{key}-{move}.svg", caption, of["unit"], "similarity of features", lines, (0, 1), every))
    return charts


def _learning(found: dict[str, Any], key: str) -> list[Chart]:
    """Reconstruction errors against epochs."""
    charts = []
    for move, machines in found["history"].items():
        errors = {name: history["reconstruction_error"] for name, history in machines.items()}
        lines = [Line(name, [i + 1.0 for i in range(len(e))], e, RANKS[name]) for name, e in errors.items()]
        caption = f"Learning from {move} digits"
        charts.append(Chart(f"{key}-learning-{move}.svg", caption, "epoch", "squared error a pixel", lines, (0,)))
    return charts
