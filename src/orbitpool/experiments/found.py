"""Beyond the paper in pictures: which transformations were found or learned, for readers who know nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.discovery import discover
from orbitpool.discovery.sheet import operator_sheet
from orbitpool.experiments import pairs
from orbitpool.experiments.drawing import Drawn
from orbitpool.experiments.images import encode, inputs, load_data, make_features
from orbitpool.experiments.making import fit
from orbitpool.experiments.recipes import Recipe, select
from orbitpool.kernels import choose_device
from orbitpool.pictures import mosaic
from orbitpool.progress import task

SETS = {  # of the rows whose transformations are found, and what they hold
    "rot auto": "digits turned by any angle",
    "trans auto": "digits moved to anywhere",
    "scale auto": "digits of many sizes",
    "mnist auto": "upright digits",
    "cifar10 auto": "photographs by patches",
}
PATCH = 8
SHAPES, BEST = 10, 12  # of the second layer: how many are shown, by how many digits each
DIGIT = 1  # which training image operators and poses are shown on: a 4, which looks different in every turn


def found(quick: bool, data_dir: Path | None, device: str) -> Drawn:
    """Pictures of what was found in five data sets, of learned operators and poses, and of shapes of two layers."""
    place, pictures, told = str(choose_device(device, None)), {}, []
    with task("found", len(SETS) + len(PARTS)) as progress:
        for row, what in SETS.items():
            progress.step(f"which transformations there are in {what}", len(SETS) + len(PARTS))
            recipe, data = _loaded(row, quick, data_dir)
            seen = discover(data.X_train, patch=PATCH if recipe.conv else None, random_state=0, device=place)
            pictures[what] = seen.drawn(what)
            told.append((what, f"{what[0].upper()}{what[1:]}: {seen.words()}."))
        parts = [{"title": FINDING[0], "words": FINDING[1], "captions": dict(told)}]
        for title, words, draw in PARTS:
            progress.step(title, len(SETS) + len(PARTS))
            drawn, captions = draw(quick, data_dir, place)
            pictures |= drawn
            parts.append({"title": title, "words": words, "captions": captions})
    return pictures, {"parts": parts}


def _loaded(row: str, quick: bool, data_dir: Path | None) -> tuple[Recipe, Any]:
    recipe = select("beyond", [row])[0]
    recipe = recipe.quick() if quick else recipe
    return recipe, load_data(recipe, 0, quick, data_dir)


Captioned = tuple[dict[str, NDArray[np.uint8]], dict[str, str]]


def _operators(quick: bool, data_dir: Path | None, device: str) -> Captioned:
    recipe, data = _loaded("rot TIRBM operators", quick, data_dir)
    assert recipe.pairs is not None
    learner = make_features(recipe, 0, device)
    judged = pairs.give(learner, recipe.pairs, data.X_train, 0)["operators"]
    before, after = pairs.turned_pairs(data.X_train, np.radians(recipe.pairs["degrees"]), SHAPES, 0)
    shown = np.stack([before, after], 1).reshape(-1, *data.X_train.shape[1:3])
    off = max(abs(each["degrees off"]) for each in judged)
    captions = {
        "pairs of digits": f"Some of {recipe.pairs['count']:,} pairs: a digit, and the same digit after it was moved.",
        "learned operators": f"What was learned from them, with names; angles are right to {max(off, 0.01):.2g}°.",
    }
    sheet = operator_sheet(learner.transforms, data.X_train[DIGIT])
    return dict(zip(captions, (mosaic(shown, SHAPES, zoom=2), sheet), strict=True)), captions


def _poses(quick: bool, data_dir: Path | None, device: str) -> Captioned:
    recipe, data = _loaded("tilt TIRBM by 5 poses", quick, data_dir)
    learner = make_features(recipe, 0, device)
    fit(learner, inputs(recipe, data.X_train))
    image, shape = data.X_train[DIGIT], data.X_train.shape[1:3]
    pictures, captions = {}, {}
    for name, poses in (("poses given", learner.transforms), ("poses learned", learner.transforms_)):
        pictures[name] = mosaic(poses.apply(image.reshape(1, -1)).reshape(-1, *shape), len(poses), zoom=3)
        captions[name] = f"{name.capitalize()}: {'; '.join(poses.labels)}."
    return pictures, captions


def _shapes(quick: bool, data_dir: Path | None, device: str) -> Captioned:
    recipe, data = _loaded("rot stack", quick, data_dir)
    features = make_features(recipe, 0, device)
    fit(features, inputs(recipe, data.X_train))
    assert data.X_valid is not None
    on = encode(features, inputs(recipe, data.X_valid), choose_device(device, None)).cpu().numpy()
    often = np.flatnonzero((on > 0).sum(0) >= min(BEST, len(on)))
    chosen = np.random.default_rng(0).choice(often, min(SHAPES, len(often)), replace=False)
    rows = np.concatenate([np.argsort(on[:, k])[::-1][:BEST] for k in chosen])
    edges = features.first_.learner_
    turned = edges.transforms_.orbit(edges.components_).reshape(-1, *edges.transforms_.field_shape)
    captions = {
        "edges": f"The first layer: {len(edges.components_)} small patterns, most of them edges, in "
        f"{len(edges.transforms_)} turns, a row each.",
        "digits by shape": "The second layer: a row for each of some shapes, chosen at random, with those of the "
        "validation digits that have most of it.",
    }
    sheets = (mosaic(turned, len(edges.transforms_), zoom=6), mosaic(data.X_valid[rows], BEST, zoom=1))
    return dict(zip(captions, sheets, strict=True)), captions


FINDING = (
    "Which moves does the data have?",
    "Nobody says what kind of images these are, and there are no labels. A small network is taught to tell images that "
    "were moved from images as they are. Where it cannot, the data has that move: a turned digit among turned digits "
    "looks like the others. Filters are then given poses as far as that goes.",
)
PARTS = (
    (
        "Moves learned from pairs",
        "Pairs of images before and after one of eight moves that nobody names. Each pair is given to the operator "
        "that explains it best, and each operator is fitted to its pairs, in turn. Orange lines show where an operator "
        "takes its pixels from.",
        _operators,
    ),
    (
        "Poses that are learned with the filters",
        "Digits here lean by up to 20° to either side. The five poses that filters are given at first are too near "
        "each other to make up for that; as filters are learned, poses move to where they explain more of the digits.",
        _poses,
    ),
    (
        "Shapes of edges",
        "Two layers, learned one after the other without labels. The first knows edges in every direction; the second "
        "knows shapes, arrangements of edges, and finds them however they are turned.",
        _shapes,
    ),
)
