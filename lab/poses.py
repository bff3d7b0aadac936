"""How poses are best learned: `PYTHONPATH=src python -m lab.poses --data-dir data --seeds 2`.

A line of results/lab/poses.csv is one try: a data set, the turns that were given or that learning started from, how
they were learned, filters, epochs, a seed, and the error in percent of the classifier in cross-validation on training
and validation images. Tries that are there are not run again.
"""

import argparse
from functools import partial
from math import radians
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from lab.keeping import keep
from orbitpool import TIRBM, SoftmaxRegression, datasets
from orbitpool import transforms as T

COLUMNS = (
    "data", "turns", "degrees", "rate", "every", "families", "filters", "epochs", "seed", "error", "seconds", "poses"
)  # fmt: skip
TURN, ALL = "turn", "turn+scale+stretch+shear+shift"
TRIES = [
    *(("tilt", 5, step, 0.0, 0, TURN) for step in (22.5, 10.0)),
    *(("tilt", 5, 22.5, rate, 50, TURN) for rate in (0.3, 0.9, 0.1)),
    ("tilt", 5, 22.5, 0.3, 50, ALL),
    ("rot", 16, 22.5, 0.0, 0, TURN),
    *(("rot", 16, 22.5, rate, 50, TURN) for rate in (0.3, 0.1)),
    *(("tilt", 5, step, 0.0, 0, TURN) for step in (15.0, 5.0)),
    ("tilt", 5, 22.5, 0.3, 20, TURN),
]


def error(data: datasets.Dataset, learner: TIRBM, device: str) -> float:
    """Of the classifier in cross-validation, percent, with the C that suits it best."""
    learner.fit(data.X_train)
    X, y = np.concatenate([data.X_train, data.X_valid]), np.concatenate([data.y_train, data.y_valid])
    Z = torch.from_numpy(learner.transform(X)).to(device)
    judge = SoftmaxRegression(C=(0.1, 1.0, 10.0), random_state=0).fit(Z, torch.from_numpy(y))
    assert judge.cv_results_ is not None
    return float(100 * (1 - judge.cv_results_["mean_test_score"].max()))


def tried(
    name: str, count: int, step: float, rate: float, every: int, families: str, filters: int, epochs: int, seed: int,
    data_dir: Path | None, device: str,
) -> tuple[str, str, str]:  # fmt: skip
    """The error, the seconds it took, and what the poses became."""
    start, data = perf_counter(), datasets.mnist_variation(name, seed, data_dir)
    poses = T.rotations(28, count, radians(step))
    poses = T.learned(poses, families.split("+"), rate, every) if rate else poses
    learner = TIRBM(filters, poses, n_iter=epochs, sparsity_target=0.04, device=device, random_state=seed)
    found = error(data, learner, device)
    became = "; ".join(learner.transforms_.labels) if rate and learner.transforms_ else ""
    return f"{found:.2f}", f"{perf_counter() - start:.1f}", became


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("results/lab/poses.csv"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--filters", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no try after this time")
    given = parser.parse_args()
    tries = ((*one, given.filters, given.epochs, seed) for seed in range(given.seeds) for one in TRIES)
    keep(given.out, COLUMNS, tries, partial(tried, data_dir=given.data_dir, device=given.device), given.seconds)


if __name__ == "__main__":
    main()
