"""What a data set is: arrays, and where they come from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Provenance = Literal["official", "rebuilt", "stand-in"]
Images = NDArray[Any]
Labels = NDArray[np.int64]

# The contents of the published files, by `fingerprint`; each was taken from files whose md5 is the published one.
OFFICIAL = {
    "mnist": "ff733bae99428f7259652ce41edb2a799a0582721560dd4a85d9a2c7a6d8bd49",
    "cifar10": "339b1a539eb1826a13fa9b5491adb7a017fb5357574f3f0c1f01c84764402c20",
    "stl10": "52538272e4907cfd66062ca5b4bff79d0964c2af3060013095092bb96c5c4bc3",
}


@dataclass(frozen=True)
class Dataset:
    """Images (N, H, W[, C]) and labels (N,) from 0, split as published, with a word and a sentence on their origin.

    Attributes
    ----------
    name : str
        What to call it.
    provenance : {"official", "rebuilt", "stand-in"}
        The published data; made from published data by the published recipe; or something that takes its place.
    source : str
        A sentence that says where the data came from.
    X_valid, y_valid : array, optional
        A validation set, where one is published.
    folds : array (folds, n), optional
        Rows of the training set that make up each published fold.
    """

    name: str
    provenance: Provenance
    source: str
    X_train: Images
    y_train: Labels
    X_test: Images
    y_test: Labels
    X_valid: Images | None = None
    y_valid: Labels | None = None
    folds: NDArray[np.int64] | None = None

    def first(self, **counts: int) -> Dataset:
        """The same with only the first so many images of a part, as in `first(train=5000, test=1000)`.

        Parts that are not named, and parts that have no more, stay whole; folds go when the training set is cut.
        """
        if wrong := {part: n for part, n in counts.items() if part not in ("train", "valid", "test") or n < 1}:
            raise ValueError(f"first was given {wrong}; give 1 or more for train, valid or test")
        cut: dict[str, Any] = {}
        for part, n in counts.items():
            if getattr(self, f"y_{part}") is not None and n < len(getattr(self, f"y_{part}")):
                cut |= {f"{a}_{part}": getattr(self, f"{a}_{part}")[:n] for a in "Xy"}
        if not cut:
            return self
        sizes = ", ".join(f"{len(cut[name])} {name[2:]}" for name in cut if name.startswith("y"))
        folds = None if "y_train" in cut else self.folds
        return replace(self, source=f"{self.source}, only the first {sizes}", folds=folds, **cut)


def from_files(
    name: str,
    source: str,
    train: tuple[Images, Labels],
    test: tuple[Images, Labels],
    folds: NDArray[np.int64] | None = None,
) -> Dataset:
    """The data set of files in an official layout: official if their content is the published one, else a stand-in."""
    arrays = (*train, *test) if folds is None else (*train, *test, folds)
    if fingerprint(*arrays) == OFFICIAL[name]:
        return Dataset(name, "official", source, *train, *test, folds=folds)
    other = f"{source}, but the content is not the published one (its checksum differs)"
    return Dataset(name, "stand-in", other, *train, *test, folds=folds)


def fingerprint(*arrays: NDArray[Any]) -> str:
    """The same for the same shapes, types and values, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape} {array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
