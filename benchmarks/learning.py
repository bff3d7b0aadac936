"""Learning, against scikit-learn's RBM and against the matrix products that an update cannot do without."""

from collections.abc import Iterator
from math import pi

import numpy as np
import torch
from sklearn.neural_network import BernoulliRBM

from benchmarks.timing import seconds
from orbitpool import TIRBM
from orbitpool import transforms as T


def run() -> Iterator[tuple[str, float]]:
    """Ratios of an epoch to scikit-learn's, and of an update to its products."""
    yield from _epoch()
    yield from _update()


def _epoch() -> Iterator[tuple[str, float]]:
    X = (np.random.default_rng(0).random((10_000, 784)) < 0.2).astype(np.float32)
    theirs = BernoulliRBM(1000, batch_size=100, n_iter=1, random_state=0)
    ours = TIRBM(1000, batch_size=100, n_iter=1, random_state=0)
    sklearn_time, own_time = seconds(lambda: theirs.fit(X), lambda: ours.fit(X), repeats=5)
    yield "RBM epoch, 10000x784 K=1000 batch 100, over BernoulliRBM float32", own_time / sklearn_time


def _update() -> Iterator[tuple[str, float]]:
    K, S, N, D = 1000, 16, 200, 784
    model = TIRBM(K, T.rotations(28, S, pi / 8), batch_size=N, random_state=0)
    v = (torch.rand(N, D) < 0.2).float()
    state = model._start(model._source(v, reset=True), 0)
    W, u, h = torch.randn(K, D), torch.randn(D, S * N), torch.rand(K, S * N)

    def products() -> None:
        for _ in range(2):
            W @ u  # up, and up from the reconstruction
            h @ u.T  # statistics of both
        W.T @ h  # down

    alone, whole = seconds(products, lambda: model._update(state, v), repeats=9)
    yield "TIRBM update, 784 K=1000 S=16 batch 200, over its 5 dense products", whole / alone
    yield "the same over 4 products, since sampled units are sparse on the way down", whole / alone * 5 / 4
