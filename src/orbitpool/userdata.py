"""A user's own data: learn a model from it, and turn it into features."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orbitpool import transforms as T
from orbitpool.learners import TIRBM
from orbitpool.learners.around import AroundLearner
from orbitpool.learners.checks import one_of
from orbitpool.models import load
from orbitpool.speech import SpeechFeatures, read_table
from orbitpool.wholefile import whole


class Items(NamedTuple):
    """Inputs of a model, and columns that say what each of them is."""

    inputs: Any
    columns: dict[str, list[Any]]


@dataclass(frozen=True)
class Kind:
    """A kind of data: how it is read, what may be done to it, and what features it has."""

    read: Callable[[Path], Items]
    transforms: Mapping[str, T.TransformSet | None]  # by name, the usual one first
    learner: Mapping[str, Any]
    features: type[AroundLearner]


def _sound(path: Path) -> Items:
    """The segments of a table of file, start, end, label."""
    segments, labels = read_table(path)
    names, starts, ends = zip(*((s.recording.name, s.start, s.end) for s in segments), strict=True)
    return Items(segments, {"file": list(names), "start": list(starts), "end": list(ends), "label": labels})


KINDS = {
    "sound": Kind(
        _sound,
        {"shifts": T.time_shifts(11, 9), "none": None},
        {"visible": "gaussian", "sigma": "learned", "two_sided": True, "learning_rate": 0.005, "batch_size": 100},
        SpeechFeatures,
    )
}


def fit(source: Path, kind: str, transforms: str | None, seed: int, device: str, **settings: Any) -> AroundLearner:
    """A model of a kind of data, learned from a source of it."""
    one_of("kind", kind, KINDS)
    chosen = KINDS[kind]
    name = next(iter(chosen.transforms)) if transforms is None else transforms
    one_of("transforms", name, chosen.transforms)
    learner = TIRBM(transforms=chosen.transforms[name], **{**chosen.learner, **settings})
    model: AroundLearner = chosen.features(learner, device=device, random_state=seed)
    model.fit(chosen.read(source).inputs)
    return model


def encode(model: Path, source: Path, out: Path, device: str) -> tuple[int, int]:
    """Write the features of a source to a .npy, .npz or .csv file; how many rows and columns there are."""
    one_of("the ending of --out", out.suffix, WRITERS)
    features = load(model, device)
    kind = next((kind for kind in KINDS.values() if isinstance(features, kind.features)), None)
    if kind is None:
        raise ValueError(f"{model} is a {type(features).__name__} without a kind of data; use its transform in Python")
    items = kind.read(source)
    Z = features.transform(items.inputs)
    with whole(out) as file:
        WRITERS[out.suffix](file, Z, items.columns)
    return len(Z), Z.shape[1]


def _write_npy(file: Any, Z: NDArray[Any], columns: dict[str, list[Any]]) -> None:
    np.save(file, Z)


def _write_npz(file: Any, Z: NDArray[Any], columns: dict[str, list[Any]]) -> None:
    arrays: dict[str, Any] = {f"{name}s": np.array(column) for name, column in columns.items()}
    np.savez(file, features=Z, **arrays)


def _write_csv(file: Any, Z: NDArray[Any], columns: dict[str, list[Any]]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    table = csv.writer(text)
    table.writerow([*columns, *(f"feature{i}" for i in range(Z.shape[1]))])
    table.writerows([*row, *z.tolist()] for *row, z in zip(*columns.values(), Z, strict=True))
    text.flush()
    text.detach()


WRITERS = {".npy": _write_npy, ".npz": _write_npz, ".csv": _write_csv}
