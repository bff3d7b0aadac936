"""How far one layer goes with very many filters: `PYTHONPATH=src python -m lab.many cifar10 --data-dir data`.

Filters come in blocks, each learned by TIOMP from other patches. What a linear classifier needs of their features is
the Gram matrix, to which every block adds its part, so that no number of filters is too large for memory. Ridge
regression on the classes is judged on a fifth of the training images, or of each of the first folds of STL-10.
"""

import argparse
import csv
from math import pi
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbitpool import TIOMP, ConvFeatures, datasets
from orbitpool import transforms as T

TURNS_6, TURNS_8 = (T.rotations(window, count=3, step=pi / 12) for window in (6, 8))
POSES = {
    "turns of scales, 8 to 6": T.compose(TURNS_6, T.scalings(8, 6, step=2)),
    "turns, 6": TURNS_6,
    "turns of scales, 10 to 8": T.compose(TURNS_8, T.scalings(10, 8, step=2)),
}
RIDGES = (3e-3, 1e-2, 3e-2, 1e-1)  # of the mean of the Gram matrix's diagonal
PART = 10_000  # features at a time


def block(X: Tensor, learner: TIOMP, **options: Any) -> Tensor:
    """Standardised features of all images by filters learned from them, (N, F)."""
    features = ConvFeatures(learner, device=str(X.device), **options).fit(X)
    Z: Tensor = torch.cat([features.transform(part) for part in torch.split(X, 5000)])
    variance, mean = torch.var_mean(Z, 0)
    return (Z - mean) / (variance + 0.001 * variance.mean()).sqrt()


def add_products(gram: Tensor, Z: Tensor) -> None:
    """Add Z Z' to the Gram matrix, of rounded factors on a GPU."""
    torch.set_float32_matmul_precision("high")
    for part in torch.split(Z, PART, dim=1):
        gram.addmm_(part, part.T)
    torch.set_float32_matmul_precision("highest")


def judged(gram: Tensor, y: Tensor, folds: list[tuple[Tensor, Tensor]]) -> tuple[float, float]:
    """The best mean accuracy in percent on held-out rows over RIDGES, and its ridge."""
    scores = np.zeros(len(RIDGES))
    for train, test in folds:
        G, Y = gram[train][:, train], 2.0 * torch.nn.functional.one_hot(y[train]) - 1
        level = G.diagonal().mean()
        for i, ridge in enumerate(RIDGES):
            L = torch.linalg.cholesky(G + ridge * level * torch.eye(len(G), device=G.device))
            guess = (gram[test][:, train] @ torch.cholesky_solve(Y, L)).argmax(1)
            scores[i] += 100 * float((guess == y[test]).double().mean()) / len(folds)
    return float(scores.max()), RIDGES[int(scores.argmax())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", choices=("cifar10", "stl10"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("results/lab/many.csv"))
    parser.add_argument("--filters", type=int, default=4000, help="of a block")
    parser.add_argument("--grid", type=int, default=3)
    parser.add_argument("--mirror", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--alpha", type=float, default=0.25)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--patches", type=int, default=400_000)
    given = parser.parse_args()
    data = getattr(datasets, given.dataset)(given.data_dir)
    X = torch.from_numpy(data.X_train[: given.images]).to(given.device)
    y = torch.from_numpy(np.asarray(data.y_train[: given.images], dtype=np.int64)).to(given.device)
    folds = _folds(data, len(X), given.device)
    where: Any = {"grid": given.grid, "mirror": given.mirror, "n_patches": given.patches}
    gram, start = torch.zeros(len(X), len(X), device=given.device), perf_counter()
    for i in range(given.blocks):
        name = list(POSES)[i % len(POSES)]
        learner = TIOMP(given.filters, POSES[name], alpha=given.alpha, n_iter=15, batch_size=2000)
        add_products(gram, block(X, learner, random_state=i, **where))
        what = (given.dataset, given.grid, given.mirror, given.alpha, (i + 1) * given.filters, name)
        line = (*what, *judged(gram, y, folds), round(perf_counter() - start, 1))
        with given.out.open("a", newline="") as file:
            csv.writer(file).writerow(line)
        print(*line, sep="  ", flush=True)


def _folds(data: Any, n: int, device: str) -> list[tuple[Tensor, Tensor]]:
    """Rows to learn from and to be judged on."""
    own = [torch.arange(n)] if data.folds is None else [torch.as_tensor(np.asarray(fold)) for fold in data.folds[:4]]
    mixed = [rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))].to(device) for rows in own]
    return [(rows[len(rows) // 5 :], rows[: len(rows) // 5]) for rows in mixed]


if __name__ == "__main__":
    main()
