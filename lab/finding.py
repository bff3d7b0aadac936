"""Which transformations are found in the data sets, and how the error depends on what counts as found.

`PYTHONPATH=src python -m lab.finding --data-dir data` measures overlaps on each set, three seeds, and keeps what is
found at several thresholds in results/lab/finding.csv; for the sets of Table 1 also the error on the validation set of
the machine of the row with these transformations. A minute a set on a GPU.
"""

import argparse
import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orbitpool.discovery.auto import conclude, discover
from orbitpool.discovery.candidates import Move
from orbitpool.experiments import images
from orbitpool.experiments.recipes import Recipe, select
from orbitpool.transforms import TransformSet

JUDGED = ("rot", "trans", "scale")
MORE = ("rot-bgimg", "trans-bgrand", "scale-bgrand")
THRESHOLDS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85)
COLUMNS = ("set", "seed", "threshold", "poses", "validation error", "found", "overlaps")


def rows(seeds: int, data_dir: Path | None, device: str, smaller: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """A line for each set, seed and threshold; equal sets of one seed are judged once."""
    recipes: list[tuple[Recipe, int | None]] = [
        (select("table1", [f"{name} TIRBM"])[0], None) for name in (*JUDGED, *MORE)
    ]
    recipes += [(select("beyond", ["mnist auto"])[0], None), (select("beyond", ["cifar10 auto"])[0], 8)]
    for recipe, patch in recipes:
        for seed in range(seeds):
            data = images.load_data(recipe, seed, False, data_dir)
            first = discover(data.X_train[:10_000], patch=patch, random_state=seed, device=device)
            moves = [Move(f.family, f.amount) for f in first.findings]
            overlaps = [f.overlap for f in first.findings]
            assert first.examples is not None
            errors: dict[TransformSet, str] = {}
            for threshold in THRESHOLDS:
                field = None if patch is None else (patch, patch)
                found = conclude(moves, overlaps, first.judged, field, threshold, first.examples)
                if recipe.dataset in JUDGED and found.transforms not in errors:
                    errors[found.transforms] = validation_error(recipe, data, found.transforms, seed, device, smaller)
                error = errors.get(found.transforms, "")
                table = found.table().replace("\n", "; ")
                yield recipe.dataset, seed, threshold, len(found.transforms), error, found.words(), table


def validation_error(
    recipe: Recipe, data: Any, transforms: TransformSet, seed: int, device: str, smaller: dict[str, Any]
) -> str:
    """Percent of the validation set that the row's classifier gets wrong, on features with these transformations."""
    small = replace(recipe, parameters={**recipe.parameters, **smaller})
    learner = images.make_features(small, seed, device).set_params(transforms=transforms)
    learner.fit(images.inputs(small, data.X_train))
    Z, V = (images.encode(learner, images.inputs(small, X), torch.device(device)) for X in (data.X_train, data.X_valid))
    y, y_valid = (torch.from_numpy(np.asarray(labels)) for labels in (data.y_train, data.y_valid))
    kind, options = images.classifier_of(recipe)
    judge = kind(random_state=seed, **options).fit(Z, y, X_valid=V, y_valid=y_valid)
    return f"{100 - 100 * float(np.max(judge.cv_results_['mean_test_score'])):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--components", type=int)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--out", type=Path, default=Path("results/lab/finding.csv"))
    given = parser.parse_args()
    asked = {"n_components": given.components, "n_iter": given.epochs}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(COLUMNS)
        smaller = {name: value for name, value in asked.items() if value is not None}
        for line in rows(given.seeds, given.data_dir, given.device, smaller):
            out.writerow(line)
            file.flush()
            print(*line[:-1], sep="  ", flush=True)


if __name__ == "__main__":
    main()
