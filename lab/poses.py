"""How poses are best learned: `PYTHONPATH=src python -m lab.poses --data-dir data --seeds 2`.

A line of results/lab/poses.csv is one try: a data set, the turns that were given or that learning started from, how
they were learned, the sparsity target, filters, epochs, a seed, and the error in percent of the classifier in
cross-validation on training and validation images. Beside it stand the pseudo-likelihood of the validation images,
which is nearer to what learning is after, and how often each pose is the likeliest one of a filter that is on. Tries
that are there are not run again.
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
    "data", "turns", "degrees", "rate", "every", "families", "target", "filters", "epochs", "seed",
    "error", "likelihood", "use", "seconds", "poses",
)  # fmt: skip
TURN, ALL = "turn", "turn+scale+stretch+shear+shift"
TRIES = [
    *(
        ("tilt", 5, step, rate, every, TURN)
        for step in (22.5, 10.0, 5.0, 45.0)
        for rate, every in ((0.0, 0), (0.9, 20))
    ),
    *(("rot", 16, 22.5, rate, every, TURN) for rate, every in ((0.0, 0), (0.9, 20))),
    *(
        ("tilt", 16, 22.5, rate, every, TURN)
        for rate, every in ((0.0, 0), (0.9, 20), (0.3, 50), (0.3, 5), (0.9, 5), (0.9, 2))
    ),
    *(("tilt", 5, step, 0.3, 50, TURN) for step in (22.5, 10.0, 5.0, 45.0)),
    ("tilt", 5, 22.5, 0.3, 50, ALL),
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
    name: str, count: int, step: float, rate: float, every: int, families: str, target: float, filters: int,
    epochs: int, seed: int, data_dir: Path | None, device: str,
) -> tuple[str, ...]:  # fmt: skip
    """The error, the pseudo-likelihood, the use of each pose, the seconds it took, and what the poses became."""
    start, data = perf_counter(), datasets.mnist_variation(name, seed, data_dir)
    poses = T.rotations(28, count, radians(step))
    poses = T.learned(poses, families.split("+"), rate, every) if rate else poses
    learner = TIRBM(filters, poses, n_iter=epochs, sparsity_target=target, device=device, random_state=seed)
    found = error(data, learner, device)
    assert data.X_valid is not None
    X = data.X_valid.reshape(len(data.X_valid), -1)
    likelihood = float(np.mean(learner.pseudo_likelihood(X, random_state=0)))
    used = np.bincount(learner.pose(X).ravel() + 1, minlength=count + 1)[1:]
    use = " ".join(f"{part:.2f}" for part in used / max(1, used.sum()))
    became = "; ".join(learner.transforms_.labels) if rate and learner.transforms_ else ""
    return f"{found:.2f}", f"{likelihood:.1f}", use, f"{perf_counter() - start:.1f}", became


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("results/lab/poses.csv"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--target", type=float, default=0.04)
    parser.add_argument("--filters", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no try after this time")
    given = parser.parse_args()
    tries = ((*one, given.target, given.filters, given.epochs, seed) for seed in range(given.seeds) for one in TRIES)
    keep(given.out, COLUMNS, tries, partial(tried, data_dir=given.data_dir, device=given.device), given.seconds)


if __name__ == "__main__":
    main()
