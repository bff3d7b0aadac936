"""What a model is, in words, and its filters as tiles."""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.images import ConvFeatures
from orbitpool.learners import Learner

IRRELEVANT = {"learner", "transforms", "device", "verbose", "checkpoint", "checkpoint_every"}


def in_words(model: Any) -> list[str]:
    """What a model is: classes and settings, poses, how long it learned, and where it stands."""
    learner = model if isinstance(model, Learner) else model.learner_
    lines = [f"{type(model).__name__}: {_settings(model)}"]
    if learner is None:
        return [*lines, "no learner inside"]
    if learner is not model:
        lines.append(f"around {type(learner).__name__}: {_settings(learner)}")
    history = learner.history_
    return [
        *lines,
        f"transformations: {'none' if learner.transforms is None else repr(learner.transforms)}",
        f"{len(learner.components_)} filters, {len(model.get_feature_names_out())} features",
        f"learned for {learner.n_iter_} epochs in {sum(history['seconds']):.0f} s; the last: "
        + ", ".join(f"{name.replace('_', ' ')} {values[-1]:.4g}" for name, values in history.items()),
    ]


def tiles(model: Any) -> NDArray[Any]:
    """Filters as tiles (K, h, w), or (K, h, w, 3) in colour; those of sound with time to the right."""
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
    if learner.transforms is not None:
        return tuple(learner.transforms.window_shape)
    if isinstance(model, ConvFeatures):
        return model._patch
    pixels = learner.components_.shape[1]
    side = isqrt(pixels)
    return (side, side) if side**2 == pixels else (pixels,)


def _settings(estimator: Any) -> str:
    parameters = estimator.get_params(deep=False).items()
    return ", ".join(f"{name} {value}" for name, value in parameters if name not in IRRELEVANT and value is not None)
