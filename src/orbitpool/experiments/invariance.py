"""Invariance as a number, a curve and an explorer: how far the features of a digit stay the same when it is moved."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import radians
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool import datasets
from orbitpool.datasets import make_variation, move_digits
from orbitpool.experiments.drawing import COLUMNS, Drawn, draw_filters
from orbitpool.experiments.making import build_transforms, fit
from orbitpool.experiments.recipes import SCALES, SHIFTS, TURNS, Spec
from orbitpool.experiments.trial import Tell
from orbitpool.kernels import choose_device
from orbitpool.learners import TIRBM
from orbitpool.pictures import Bytes, mosaic, sheet
from orbitpool.progress import is_shown, task
from orbitpool.transforms import TransformSet

Array = NDArray[Any]
Models = dict[str, TIRBM]  # the RBM and the TIRBM, by their names


@dataclass(frozen=True)
class Move:
    """A way in which digits are moved, the amounts, of which the first is none, and the TIRBM's poses for it."""

    kind: str  # of `move_digits`
    unit: str
    amounts: tuple[float, ...]
    poses: Spec
    parameter: Callable[[Any], Any] = float  # what `move_digits` takes for an amount

    def __call__(self, digits: Array, amount: float) -> Array:
        """All digits moved by an amount."""
        return move_digits(self.kind, digits, np.array([self.parameter(amount)] * len(digits)))


MOVES = {
    "turned": Move("rot", "degrees", tuple(range(0, 181, 5)), TURNS, radians),
    "shifted": Move("trans", "pixels to the right", tuple(range(7)), SHIFTS, lambda pixels: (0, pixels)),
    "scaled": Move("scale", "times the size", tuple(round(1 - 0.05 * i, 2) for i in range(13)), SCALES),
}
SETTINGS = {"n_components": 200, "n_iter": 30}
IMAGES, HELD_OUT = 10_000, 1000
QUICK, QUICK_IMAGES, QUICK_HELD_OUT = {"n_components": 64, "n_iter": 15, "batch_size": 50}, 4000, 300

EXPLORED = (2, 3, 4, 5, 6, 7)  # digits that do not look the same upside down
STEP = 5  # degrees between two positions of the explorer's slider
SHOWN = COLUMNS**2  # filters
LOOKS = (0, 1, 3, 10, 30, 100)  # steps of Gibbs sampling after which the chains are shown


def invariance(quick: bool, data_dir: Path | None, device: str) -> Drawn:
    """Similarity of features before and after a move, learning, filters in every pose and an explorer, on MNIST."""
    digits = datasets.mnist(data_dir)
    images, held_out = (QUICK_IMAGES, QUICK_HELD_OUT) if quick else (IMAGES, HELD_OUT)
    study, settings = Study(), QUICK if quick else SETTINGS
    with task("invariance", 3 * len(MOVES) + 1) as progress:
        for name, move in MOVES.items():
            X, _ = make_variation(move.kind, digits.X_train[:images], np.random.default_rng(0))
            there = {"device": str(choose_device(device, None)), "verbose": is_shown()}
            models = learn(X, build_transforms(move.poses), f"{name} digits", progress.step, **there, **settings)
            progress.step(f"{name} digits: features of {held_out} held-out digits, moved")
            free = _with_room(digits.X_test, max(move.amounts)) if name == "shifted" else np.arange(len(digits.X_test))
            seen = free[:held_out]
            study.measure(name, move, models, digits.X_test[seen], digits.y_test[seen])
            if name == "turned":
                chosen = [np.flatnonzero(digits.y_test == label)[0] for label in EXPLORED]
                upright = move(digits.X_test[chosen], 0)
                study.explore(models, upright, EXPLORED)
                progress.step("turned digits: samples of the TIRBM")
                study.sample("TIRBM", models["TIRBM"], upright)
            else:
                study.draw(name, models, move(digits.X_test[seen], move.amounts[0]))
    source = f"{digits.source}: filters from training digits, similarity on test digits"
    said = {"settings": {**settings, "images": images, "held out": held_out}, "data": digits.provenance}
    return study.pictures, {**study.numbers, **said, "source": source}


def learn(X: Array, poses: TransformSet, what: str, tell: Tell, **parameters: Any) -> Models:
    """An RBM and a TIRBM, alike but for the poses."""
    models = {}
    for name, each in (("RBM", None), ("TIRBM", poses)):
        tell(f"{what}: {name}")
        models[name] = fit(TIRBM(transforms=each, random_state=0, **parameters), X)
    return models


class Study:
    """What is seen of models: pictures by their titles, and numbers as a file can hold them."""

    def __init__(self) -> None:
        self.pictures: dict[str, Bytes] = {}
        self.numbers: dict[str, Any] = {"similarity": {}, "history": {}, "orbits": {}}

    def measure(self, name: str, move: Move, models: Models, digits: Array, labels: Array) -> None:
        """Add the similarity curves of models, and how they learned."""
        self.numbers["similarity"][name] = similarity(move, models, digits, labels)
        self.numbers["history"][name] = {
            model: {what: [float(f"{v:.6g}") for v in values] for what, values in fitted.history_.items()}
            for model, fitted in models.items()
        }

    def draw(self, name: str, models: Models, images: Array) -> dict[str, tuple[str, Array]]:
        """Add the filters that are on most for some images, in every pose; their titles and numbers by model."""
        drawn = {}
        for model, fitted in models.items():
            on = fitted.transform(images)
            chosen = np.sort(np.argsort(on.mean(0))[::-1][:SHOWN])
            title = f"filters of the {model} on {name} digits"
            window = images.shape[1:] if fitted.transforms_ is None else fitted.transforms_.window_shape
            W = fitted.components_[chosen].reshape(-1, *window)
            pictures, orbits = draw_filters(title, W, fitted.transforms_, images.shape[1], chosen)
            self.pictures |= pictures
            self.numbers["orbits"][title] = orbits
            drawn[model] = title, chosen
        return drawn

    def explore(self, models: Models, digits: Array, labels: Any) -> None:
        """Add what an explorer shows: digits all around the circle, and which filters are on, in which pose.

        The bytes of each model are, in this order of axes, for every digit, angle and filter: how likely the filter is
        on, in percent; its likeliest pose, counted from 0; and for every digit and angle the similarity of all features
        to those at the first angle, in percent.
        """
        angles = range(0, 360, STEP)
        turned = np.stack([MOVES["turned"](digits, angle) for angle in angles], axis=1)  # (digits, angles, w, w)
        images = turned.reshape(-1, *digits.shape[1:])
        machines = {}
        for name, (title, chosen) in self.draw("turned", models, images).items():
            on = models[name].transform(images)
            features = _unit(on).reshape(len(digits), len(angles), -1)
            machines[name] = {
                "filters": title,
                "on": _bytes(100 * on[:, chosen]),
                "pose": _bytes(models[name].posterior(images)[:, chosen].argmax(-1)),
                "similarity": _bytes(100 * (features * features[:, :1]).sum(-1)),
            }
        self.pictures["turned digits"] = sheet(turned)
        self.numbers["explorer"] = {
            "digits": "turned digits",
            "labels": [int(label) for label in labels],
            "angles": list(angles),
            "machines": machines,
        }

    def sample(self, name: str, model: TIRBM, digits: Array) -> None:
        """Add images drawn from a model: what becomes of digits (N, w, w) in ever longer chains, one row a look."""
        rows, v = [digits], digits.reshape(len(digits), -1)
        for seed, (before, steps) in enumerate(pairwise(LOOKS)):
            v = model.sample(steps=steps - before, start=v, random_state=seed)
            rows.append(model.reconstruct(v).reshape(digits.shape))
        self.numbers["samples"] = list(LOOKS)
        self.pictures[f"samples of the {name}"] = mosaic(np.concatenate(rows), len(digits))


def similarity(move: Move, models: Models, digits: Array, labels: Array) -> dict[str, Any]:
    """Mean cosine between the features of digits (N, w, w) and of the same digits moved, for each model and amount.

    `mean` is that over all amounts; `others` is the mean between different digits, which tells invariance from features
    that are always the same.
    """
    curves, others = {}, {}
    for name, model in models.items():
        features = [_unit(model.transform(move(digits, amount))) for amount in move.amounts]
        curves[name] = [float((features[0] * moved).sum(1).mean()) for moved in features]
        others[name] = float((features[0] @ features[0].T)[labels[:, None] != labels].mean())
    mean = {name: float(np.mean(curve)) for name, curve in curves.items()}
    amounts = [float(amount) for amount in move.amounts]
    return {"unit": move.unit, "amounts": amounts, "curves": curves, "mean": mean, "others": others}


def _with_room(digits: Array, pixels: float) -> Array:
    """The digits that can be moved so far to the right and stay whole."""
    return np.flatnonzero(~digits[:, :, -int(pixels) :].any((1, 2)))


def _unit(features: Array) -> Array:
    length: Array = np.linalg.norm(features, axis=-1, keepdims=True)
    return features / length


def _bytes(numbers: Array) -> str:
    """Numbers from 0 to 255, rounded, as text."""
    return b64encode(np.asarray(numbers).round().astype(np.uint8).tobytes()).decode()
