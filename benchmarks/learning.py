"""Learning, against other RBMs, a plain version, and the matrix products that an update cannot do without."""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from math import pi
from typing import Any

import numpy as np
import torch
from sklearn.neural_network import BernoulliRBM
from torch.utils.data import TensorDataset

from benchmarks.plain import PlainTIRBM
from benchmarks.timing import PRECISIONS, Row, seconds
from orbitpool import TIRBM
from orbitpool import transforms as T
from orbitpool.kernels.matrices import multiply
from orbitpool.learners.training import Updates


def run() -> Iterator[Row]:
    """Ratios of an epoch to those of others, and of an update to a plain one and to its products."""
    for precision in PRECISIONS:
        short = precision == "bfloat16"
        note = ", bfloat16 products" if short else ""
        yield from _epoch(precision, note, 0.4 if short else 0.7)
        turns, tilts = T.rotations(28, 16, pi / 8), T.rotations(28, 16, pi / 32)
        yield from _update(precision, turns, f"16 turns{note}", *((0.25, 1.4) if short else (0.55, 1.1)))
        yield from _update(precision, tilts, f"16 tilts of 6 degrees{note}", None, None)


def _epoch(precision: Any, note: str, limit: float) -> Iterator[Row]:
    X = (np.random.default_rng(0).random((10_000, 784)) < 0.2).astype(np.float32)
    sklearns = BernoulliRBM(1000, batch_size=100, n_iter=1, random_state=0)
    ours = TIRBM(1000, batch_size=100, n_iter=1, random_state=0, precision=precision, device="cpu")
    works: list[Callable[[], object]] = [lambda: ours.fit(X), lambda: sklearns.fit(X)]
    learnergys = _learnergy(X)
    own, first, *others = seconds(*works, *([learnergys] if learnergys else []), repeats=5)
    yield Row(f"RBM epoch, 10000x784 K=1000 batch 100{note}: over scikit-learn's BernoulliRBM", own / first, limit)
    for other in others:
        yield Row(f"the same: over learnergy's RBM{note}", own / other)


def _learnergy(X: Any) -> Callable[[], object] | None:
    """An epoch of learnergy's RBM, if it is installed."""
    try:
        from learnergy.models.bernoulli import RBM
    except ImportError:
        print("learnergy is not installed, so it is left out: pip install -c constraints.txt '.[bench]'", flush=True)
        return None
    logging.disable(logging.INFO)  # it would write a file
    model = RBM(n_visible=784, n_hidden=1000, steps=1, learning_rate=0.05, momentum=0.9, decay=1e-4, use_gpu=False)
    data = TensorDataset(torch.from_numpy(X), torch.zeros(len(X)))
    return lambda: model.fit(data, batch_size=100, epochs=1)


def _update(
    precision: Any, poses: T.TransformSet, name: str, over_plain: float | None, over_dense: float | None
) -> Iterator[Row]:
    K, S, N, D = 1000, len(poses), 200, 784
    model = TIRBM(K, poses, batch_size=N, random_state=0, precision=precision)
    v = (torch.rand(N, D) < 0.2).float()
    updates = Updates(model, model._start(model._source(v, reset=True), 0))
    plain = PlainTIRBM(K, poses.to_dense().float())
    factors = [torch.randn(K, D), torch.randn(D, S * N), torch.rand(K, S * N)]

    @torch.no_grad()
    def products(W: torch.Tensor, u: torch.Tensor, h: torch.Tensor) -> None:
        for _ in range(2):
            multiply(W, u)  # up, and up from the reconstruction
            multiply(h, u.T)  # statistics of both

    factors = [t.bfloat16() for t in factors] if precision == "bfloat16" else factors
    works = (lambda: updates(v)), (lambda: plain.update(v)), partial(products, *factors)
    own, theirs, alone = seconds(*works, repeats=15, row=4)
    yield Row(f"TIRBM update, 784 K=1000 batch 200, {name}: over the plain version", own / theirs, over_plain)
    yield Row(f"the same, {name}: over four dense products, two up and two of statistics", own / alone, over_dense)
