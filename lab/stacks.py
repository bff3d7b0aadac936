"""Try stacks of two layers: `PYTHONPATH=src python -m lab.stacks --data-dir data --seconds 300`.

A line of results/lab/beyond.csv is one try: the row of the table `beyond`, what is different from where tries started,
and the accuracy on held-out images: in cross-validation on the training and validation images of mnist-rot, or on the
last 10,000 training images of CIFAR-10, with filters and classifiers that learn from the first 20,000. Tries that are
there are not run again. Test images are not looked at.
"""

import argparse
import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from lab.judging import COLUMNS
from lab.keeping import keep
from lab.stacktries import START, TRIES
from orbitpool import datasets
from orbitpool.experiments import images
from orbitpool.experiments.making import fit
from orbitpool.learners import Diverged
from orbitpool.transforms import TransformSet


@lru_cache(maxsize=2)
def load(dataset: str, data_dir: Path | None) -> tuple[Any, Any, Any, Any]:
    """Images to learn from, images to judge by and their labels, and how those are held out."""
    if dataset in datasets.VARIATIONS:
        data = datasets.mnist_variation(dataset, 0, data_dir)
        assert data.X_valid is not None
        assert data.y_valid is not None
        return data.X_train, np.concatenate([data.X_train, data.X_valid]), np.r_[data.y_train, data.y_valid], 5
    data = datasets.cifar10(data_dir)
    some = np.r_[:20_000, 40_000:50_000]
    return data.X_train[:20_000], data.X_train[some], data.y_train[some], [np.split(np.arange(30_000), [20_000])]


def merged(base: Any, different: Any) -> Any:
    """A mapping with what is different in it, at any depth."""
    if not isinstance(base, Mapping) or not isinstance(different, Mapping):
        return different
    return {**base, **{name: merged(base.get(name), value) for name, value in different.items()}}


def tried(row: str, different: dict[str, Any], data_dir: Path | None, device: str) -> tuple[int, str, str, str, str]:
    """The seed, the accuracy in percent, its C, the seconds it took, and the device."""
    start, place, recipe = perf_counter(), torch.device(device), START[row]
    as_they_are = different.get("whitening") == "as they are"  # patches, not in all quarter turns
    different = {name: value for name, value in different.items() if name != "whitening"}
    recipe = replace(recipe, **{name: merged(getattr(recipe, name), value) for name, value in different.items()})
    name = torch.cuda.get_device_name(place) if place.type == "cuda" else "cpu"
    learned, X, y, cv = load(recipe.dataset, data_dir)
    with patch.object(TransformSet, "orders", []) if as_they_are else nullcontext():
        features = fit(images.make_features(recipe, 0, device), images.inputs(recipe, learned))
    Z = images.encode(features, images.inputs(recipe, X), place)
    kind, options = images.classifier_of(recipe)
    judge = kind(random_state=0, **{**options, "cv": cv}).fit(Z, y)
    score = 100 * judge.cv_results_["mean_test_score"].max()
    return 0, f"{score:.2f}", f"{judge.C_:g}", f"{perf_counter() - start:.1f}", name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("results/lab/beyond.csv"))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no try after this time")
    parser.add_argument("--rows", help="rows by name, with commas; else all")
    given = parser.parse_args()
    rows = given.rows.split(",") if given.rows else [row for row, _ in TRIES]
    tries = {(row, json.dumps(different, sort_keys=True)): different for row, different in TRIES if row in rows}

    def run(row: str, words: str) -> tuple[int, str, str, str, str]:
        try:
            return tried(row, tries[row, words], given.data_dir, given.device)
        except (Diverged, RuntimeError) as error:  # a GPU may have too little memory for what comes next, too
            return 0, f"failed: {error!r:.100}", "", "", given.device
        finally:
            torch.cuda.empty_cache()

    keep(given.out, COLUMNS, tries, run, given.seconds)


if __name__ == "__main__":
    main()
