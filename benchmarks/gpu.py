"""Absolute times on a GPU, where they mean something: `PYTHONPATH=src python -m benchmarks.gpu`."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from math import pi
from statistics import median
from time import perf_counter
from typing import Any
from unittest import mock

import torch

from orbitpool import TIOMP, TIRBM, ConvFeatures, LinearSVM
from orbitpool import transforms as T
from orbitpool.classifiers.design import Design

TURNS = T.rotations(28, count=16, step=pi / 8)
COMBINED = T.union(
    T.translations(8, 6, stride=2), T.scalings(8, 6, step=2), T.rotations(6, count=5, step=pi / 12, field=8)
)


def run() -> Iterator[tuple[str, float, str]]:
    """What was measured, the median, and its unit."""
    ceiling = _ceiling()
    yield "product of 8192 x 8192 bfloat16 numbers", ceiling, "TFLOP/s"
    digits = (torch.rand(100_000, 784, device="cuda") < 0.2).float()
    yield "TIRBM update, 784 K=1000 S=16 batch 100", _update(digits, 1000, TURNS, 100), "ms"
    patches = torch.randn(200_000, 192, device="cuda")
    options: dict[str, Any] = {"visible": "gaussian", "learning_rate": 0.002, "sigma": "learned"}
    yield "TIRBM update, r=8 colour K=1600 S=10 batch 200", _update(patches, 1600, COMBINED, 200, **options), "ms"
    many = (torch.rand(400_000, 784, device="cuda") < 0.2).float()
    large = _update(many, 1000, TURNS, 4000)
    yield "TIRBM update, 784 K=1000 S=16 batch 4000", large, "ms"
    needed = 5 * 2 * 1000 * 784 * 16 * 4000 / 1e9  # five products, in GFLOP
    yield "the same: its five products, share of the ceiling", 100 * needed / large / ceiling, "%"
    yield from _encoding()
    bandwidth = _bandwidth()
    yield "copy of 1 GiB, read and written", bandwidth, "TB/s"
    yield from _classifier(bandwidth)


def _ceiling() -> float:
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / _seconds(lambda: a @ b) / 1e12


def _bandwidth() -> float:
    a = torch.zeros(2**28, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.nbytes / _seconds(lambda: b.copy_(a)) / 1e12


def _update(X: torch.Tensor, K: int, poses: T.TransformSet, batch: int, **options: Any) -> float:
    """Milliseconds an update, the end of an epoch included."""
    model = TIRBM(K, poses, batch_size=batch, n_iter=4, random_state=0, device="cuda", **options).fit(X)
    return 1000 * median(model.history_["seconds"][1:]) / -(-len(X) // batch)


def _encoding() -> Iterator[tuple[str, float, str]]:
    images = torch.randint(256, (60_000, 32, 32, 3), dtype=torch.uint8, device="cuda")
    shared: dict[str, Any] = {"n_iter": 1, "random_state": 0, "device": "cuda"}
    for learner in (
        TIOMP(1600, COMBINED, batch_size=2000, **shared),
        TIRBM(1600, COMBINED, visible="gaussian", two_sided=True, learning_rate=0.002, **shared),
    ):
        features = ConvFeatures(learner, n_patches=20_000, random_state=0).fit(images[:1000])
        name = f"dense encoding of 60,000 images, r=8 K=1600 S=10 two-sided, {type(learner).__name__}"
        yield name, _seconds(partial(features.transform, images)), "s"


def _classifier(bandwidth: float) -> Iterator[tuple[str, float, str]]:
    X, W = torch.randn(50_000, 12_800, device="cuda"), torch.randn(12_800, 10, device="cuda")
    y = (X @ W / 113 + 2 * torch.randn(50_000, 10, device="cuda")).argmax(1)
    model = LinearSVM(C=0.001, standardize=True)
    yield "LinearSVM, 50,000 x 12,800, ten classes, one C", _seconds(lambda: model.fit(X, y)), "s"
    passes, factored = _counted(lambda: model.fit(X, y))
    yield "the same: passes over all features", passes, "times"
    yield "the same: matrices factored", factored, "times"
    yield "the same: factoring one", _seconds(_factoring(X.shape[1] + 1)), "s"
    coefficients = torch.as_tensor(model.coef_).to(X)
    read = X.nbytes / _seconds(lambda: coefficients @ X.T) / 1e12  # the product that its steps repeat
    yield "the same: reading all features once, share of the bandwidth", 100 * read / bandwidth, "%"


def _factoring(D: int) -> Callable[[], Any]:
    """What finds the factors of a matrix and their inverse, in float32."""
    M, one = torch.full((D, D), 0.1, device="cuda").fill_diagonal_(1.0), torch.eye(D, device="cuda")
    return lambda: torch.linalg.solve_triangular(torch.linalg.cholesky_ex(M)[0], one, upper=False)


def _counted(f: Callable[[], Any]) -> tuple[int, int]:
    """How often a classifier goes through all features, for responses and for sums, and how often it factors."""
    with (
        mock.patch.object(Design, "respond", autospec=True, side_effect=Design.respond) as up,
        mock.patch.object(Design, "collect", autospec=True, side_effect=Design.collect) as down,
        mock.patch.object(torch.linalg, "cholesky_ex", side_effect=torch.linalg.cholesky_ex) as factored,
    ):
        f()
    return up.call_count + down.call_count, factored.call_count


def _seconds(f: Callable[[], Any], repeats: int = 5) -> float:
    """The median over some runs after one that is not counted."""
    taken = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        start = perf_counter()
        f()
        torch.cuda.synchronize()
        taken.append(perf_counter() - start)
    return median(taken[1:])


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("there is no GPU here; on a CPU `make bench` measures ratios")
    for name, value, unit in run():
        print(f"{name:<76} {value:8.3f} {unit}", flush=True)
