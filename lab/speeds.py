"""How fast poses may be learned: `PYTHONPATH=src python -m lab.speeds`.

Five of scikit-learn's digits, each turned by -20, 0 or 20 degrees, and six filters in three poses that start 10 degrees
apart and should end 20 apart. A line of results/lab/speeds.csv is one try: pixels to a step, updates to a step, a seed,
the degrees between neighbours at the end, and the seconds it took.
"""

import argparse
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from lab.keeping import keep
from orbitpool import TIRBM, datasets
from orbitpool import transforms as T

COLUMNS = ("rate", "every", "seed", "first", "second", "seconds")
SPEEDS = ((0.05, 8), (0.1, 20), (0.2, 50), (0.3, 50), (0.6, 100), (0.1, 5), (0.3, 20), (0.3, 5), (0.9, 20), (0.9, 5))


def tried(rate: float, every: int, seed: int, digits: datasets.Dataset) -> tuple[str, ...]:
    """Degrees between the first pose and the second, and between that and the third, after 1,000 updates."""
    start, rng = perf_counter(), np.random.default_rng(seed)
    chosen = digits.X_train[rng.integers(5, size=1000)]
    X = datasets.move_digits("rot", chosen, np.radians(rng.choice([-20, 0, 20], 1000)))
    poses = T.learned(T.rotations(16, 3, np.radians(10)), learning_rate=rate, every=every)
    learner = TIRBM(6, poses, sparsity_target=0.17, batch_size=20, n_iter=20, device="cpu", random_state=seed).fit(X)
    turns = np.degrees(learner._state.tensors["poses"][:, 0].numpy())
    return *(f"{gap:.1f}" for gap in np.diff(np.sort(turns))), f"{perf_counter() - start:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/lab/speeds.csv"))
    parser.add_argument("--seeds", type=int, default=8)
    given = parser.parse_args()
    tries = ((*speed, seed) for speed in SPEEDS for seed in range(given.seeds))
    keep(given.out, COLUMNS, tries, partial(tried, digits=datasets.turned_digits()))


if __name__ == "__main__":
    main()
