"""Try settings and keep what each scored on training data alone: `PYTHONPATH=src python -m lab table2 --data-dir data`.

A line of results/lab/TABLE.csv is one try: the row it varies, what is different, and the accuracy in cross-validation
of the classifier on the training images. Tries that are there already are not run again.
"""

import argparse
import csv
import json
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from lab.tries import TRIES
from orbitpool.experiments import images
from orbitpool.experiments.making import fit
from orbitpool.experiments.recipes import Recipe, select

COLUMNS = ("row", "different", "seed", "accuracy", "C", "seconds", "device")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=TRIES)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("results/lab"))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no try after this time")
    given = parser.parse_args()
    path, start = given.out / f"{given.table}.csv", perf_counter()
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {(r["row"], r["different"]) for r in csv.DictReader(path.open())} if path.exists() else set()
    with path.open("a", newline="") as file:
        out = csv.writer(file)
        if not path.stat().st_size:
            out.writerow(COLUMNS)
        for row, different in TRIES[given.table]:
            words = json.dumps(different, sort_keys=True)
            if (row, words) in done or perf_counter() - start > given.seconds:
                continue
            line = (row, words, *tried(varied(select(given.table, [row])[0], different), given.data_dir, given.device))
            out.writerow(line)
            file.flush()
            print(*line, sep="  ", flush=True)


def varied(recipe: Recipe, different: dict[str, Any]) -> Recipe:
    """A recipe with other transformations, arguments of ConvFeatures or parameters of the learner."""
    conv = {**(recipe.conv or {}), **different.get("conv", {})}
    parameters = {**recipe.parameters, **different.get("parameters", {})}
    poses = different.get("transforms", recipe.transforms)
    return replace(recipe, conv=conv, parameters=parameters, transforms=poses)


def tried(recipe: Recipe, data_dir: Path | None, device: str, seed: int = 0) -> tuple[int, str, str, str, str]:
    """The seed, the accuracy in percent, its C, the seconds it took, and the device."""
    start, place = perf_counter(), torch.device(device)
    data = images.load_data(recipe, seed, False, data_dir)
    features = fit(images.make_features(recipe, seed, device), data.X_train)
    encoded = images.encode(features, data.X_train, place)
    kind, options = images.classifier_of(recipe)
    judge = kind(random_state=seed, **options).fit(encoded, torch.from_numpy(data.y_train))
    score = 100 * judge.cv_results_["mean_test_score"].max()
    name = torch.cuda.get_device_name(place) if place.type == "cuda" else "cpu"
    return seed, f"{score:.2f}", f"{judge.C_:g}", f"{perf_counter() - start:.1f}", name


if __name__ == "__main__":
    main()
