"""What a model is, in words, and its filters as tiles."""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.images import ConvFeatures, Stack
from orbitpool.learners import Learner

EPOCHS = 10  # of which at most the history is shown
IRRELEVANT = {"learner", "transforms", "device", "verbose", "checkpoint", "checkpoint_every"}


def in_words(model: Any) -> list[str]:
    """What a model is: classes and settings, poses, how long it learned, and where it stands."""
    if isinstance(model, Stack):
        return [
            f"layer {i}, {line}" if not n else line
            for i, layer in enumerate(model.layers(), 1)
            for n, line in enumerate(in_words(layer))
        ]
    learner = model if isinstance(model, Learner) else model.learner_
    lines = [f"{type(model).__name__}: {_settings(model)}"]
    if learner is None:
        return [*lines, "no learner inside"]
    if learner is not model:
        lines.append(f"around {type(learner).__name__}: {_settings(learner)}")
    history = learner.history_
    return [
        *lines,
        f"transformations: {'none' if learner.transforms_ is None else repr(learner.transforms_)}",
        *([] if learner.discovery_ is None else [f"found in the data: {learner.discovery_.words()}"]),
        f"{len(learner.components_)} filters, {len(model.get_feature_names_out())} features",
        f"learned for {learner.n_iter_} epochs in {sum(history['seconds']):.0f} s:",
        *_history(history),
    ]


def _history(history: dict[str, list[float]]) -> list[str]:
    """A line for each of some epochs, evenly spread, the first and the last among them."""
    count = len(history["seconds"])
    epochs = sorted({round(i) for i in np.linspace(1, count, min(count, EPOCHS))})
    lines = [["epoch", *(name.replace("_", " ") for name in history)]]
    lines += [[str(epoch), *(f"{values[epoch - 1]:.4g}" for values in history.values())] for epoch in epochs]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines]


def tiles(model: Any) -> NDArray[Any]:
    """Filters as tiles (K, h, w), or (K, h, w, 3) in colour; those of sound with time to the right; a stack's first."""
    if isinstance(model, Stack):
        return tiles(model.layers()[0])
    learner = model if isinstance(model, Learner) else model.learner_
    if learner is None:
        raise ValueError(f"this {type(model).__name__} has no learner and so no filters; leave out --out")
    window = _window(model, learner)
    W: NDArray[Any] = learner.components_.reshape(len(learner.components_), *window, -1)
    if len(window) == 1:
        return W.swapaxes(1, 2)
    return W if W.shape[3] == 3 else np.asarray(W.mean(3))


def _window(model: Any, learner: Learner) -> tuple[int, ...]:
    """Pixels of a filter: as its transformations have it, or a square where nobody says."""
    if learner.transforms_ is not None:
        return tuple(learner.transforms_.window_shape)
    if isinstance(model, ConvFeatures):
        return model._patch
    pixels = learner.components_.shape[1]
    side = isqrt(pixels)
    return (side, side) if side**2 == pixels else (pixels,)


def _settings(estimator: Any) -> str:
    parameters = estimator.get_params(deep=False).items()
    known = {name: value for name, value in parameters if name not in IRRELEVANT and value is not None}
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in known.items()
    )
