"""Operators that a row learns from pairs of its own training images, turned by angles that are not told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import degrees, radians
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.datasets import move_digits
from orbitpool.discovery import learn_transforms
from orbitpool.transforms import TransformSet, rotations
from orbitpool.transforms.motions import read


def give(learner: Any, pairs: Mapping[str, Any], images: NDArray[Any], seed: int) -> dict[str, Any]:
    """Give a learner operators that are learned from pairs as a recipe has them; how near the true ones they are."""
    angles = np.radians(pairs["degrees"])
    X, Y = turned_pairs(images, angles, pairs["count"], seed)
    learned = learn_transforms(X, Y, len(angles), images.shape[1:3], random_state=seed)
    learner.set_params(transforms=learned)
    return {"operators": judged(learned, pairs["degrees"])}


def turned_pairs(
    images: NDArray[Any], angles: NDArray[Any], count: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """So many images, each as often as needed, and each of them turned by one of some angles in radians."""
    rng = np.random.default_rng(seed)
    X = np.asarray(images, np.float32)[rng.permutation(count) % len(images)]
    return X, move_digits("rot", X, rng.choice(angles, count))


def judged(learned: TransformSet, true: Sequence[float]) -> list[dict[str, Any]]:
    """Of each operator its label, the true angle whose matrix is nearest, the cosine, and the error of its angle."""
    size = learned.field_shape
    known = {angle: rotations(size, 2, radians(angle), border="zero")[1].to_dense()[0] for angle in true}
    rows = []
    for label, T in zip(learned.labels, learned.to_dense(), strict=True):
        cosines = {angle: float((T * R).sum() / (T.norm() * R.norm())) for angle, R in known.items()}
        nearest = max(cosines, key=lambda angle: cosines[angle])
        motion, _, _ = read(T, size, learned.window_shape, clamp=False)
        off = (degrees(float(motion[0])) - nearest + 180) % 360 - 180
        rows.append({"label": label, "nearest": nearest, "cosine": cosines[nearest], "degrees off": off})
    return rows
