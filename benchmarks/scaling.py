"""How much faster several processes are: `OMP_NUM_THREADS=1 torchrun --nproc-per-node 2 -m benchmarks.scaling`.

The same processes take turns: the first does the work alone while the others wait; each does all of it at once, which
is what cores that share memory, and others' load, can give; all of them do it together. Efficiency is the time of one
over that of all times their number; of the cores, the same with all at once in place of one; of the work, the processor
time of one over that of all, which tells what is done twice or sent, whatever else is running.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import pi
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from orbitpool import TIOMP, TIRBM, ConvFeatures, LinearSVM, together
from orbitpool import transforms as T

REPEATS = 5
TURNS = T.rotations(28, count=16, step=pi / 8)
COMBINED = T.union(
    T.translations(8, 6, stride=2), T.scalings(8, 6, step=2), T.rotations(6, count=5, step=pi / 12, field=8)
)


def works() -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is measured, and the work."""
    rng = np.random.default_rng(0)
    digits = (rng.random((6000, 784)) < 0.2).astype(np.float32)
    patches = rng.standard_normal((20_000, 192), np.float32)
    images = rng.integers(256, size=(100, 32, 32, 3), dtype=np.uint8)
    shared: Any = {"batch_size": 2000, "random_state": 0}
    turned = TIRBM(300, TURNS, n_iter=1, **shared)
    yield "TIRBM, 784 K=300 S=16 batch 2000", lambda: turned.fit(digits)
    plain = TIRBM(500, n_iter=3, **shared)
    yield "TIRBM, 784 K=500 S=1 batch 2000", lambda: plain.fit(digits)
    colour = TIRBM(300, COMBINED, visible="gaussian", learning_rate=0.002, n_iter=1, **shared)
    yield "TIRBM, r=8 colour K=300 S=10 batch 2000", lambda: colour.fit(patches)
    pursuit = TIOMP(300, COMBINED, n_iter=2, **shared)
    yield "TIOMP, r=8 colour K=300 S=10 batch 2000", lambda: pursuit.fit(patches)
    with together.apart():
        features = ConvFeatures(pursuit, n_patches=2000, random_state=0).fit(images)
    yield "dense encoding, 100 images, r=8 K=300 S=10", lambda: features.transform(images)
    X = rng.standard_normal((20_000, 1000), np.float32)
    y = (X[:, :10] + 2 * rng.standard_normal((20_000, 10))).argmax(1)
    yield "LinearSVM, 20,000 x 1,000, ten classes", lambda: LinearSVM(C=0.01, standardize=True).fit(X, y)


@dataclass
class Taken:
    """Seconds by the clock: one process, all at once on their own, all together; of processors: one, and together."""

    one: float
    each: float
    shared: float
    work_one: float
    work_shared: float
    others: float  # cores that other programs took meanwhile


def measure(work: Callable[[], Any]) -> Taken:
    """Medians over turns, after one that is not counted."""
    begun, before = perf_counter(), _used_by_others()
    taken: list[list[tuple[float, float]]] = [[], [], []]
    for turn in range(REPEATS + 1):
        for how, times in enumerate(taken):
            dist.barrier()
            start, spent = perf_counter(), process_time()
            if how or together.first():
                with nullcontext() if how == 2 else together.apart():
                    work()
            used = process_time() - spent
            dist.barrier()
            if turn:
                times.append((perf_counter() - start, _over_processes(used)))
    (one, work_one), (each, _), (shared, work_shared) = (
        [median(t) for t in zip(*times, strict=True)] for times in taken
    )
    others = (_used_by_others() - before) / (perf_counter() - begun)
    return Taken(one, each, shared, work_one, work_shared, others)


def _used_by_others() -> float:
    """Seconds of all cores that other programs have used so far, on Linux."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK") - _over_processes(process_time())


def _over_processes(number: float) -> float:
    total = torch.tensor(number, dtype=torch.float64)
    dist.all_reduce(total)
    return float(total)


def costs() -> Iterator[tuple[str, float, str]]:
    """What processes do besides their share of the work, by itself: the shortest time, and its unit."""
    generator = torch.Generator().manual_seed(0)
    yield "a random number", _shortest(lambda: torch.rand(10**6, generator=generator)) * 1e3, "ns"
    short, long = torch.zeros(1), torch.zeros(10**6)
    small, large = (_shortest(partial(dist.all_reduce, t)) for t in (short, long))
    yield "a message", small * 1e3, "ms"
    yield "a megabyte more of it", (large - small) / 4 * 1e3, "ms"


def _shortest(work: Callable[[], Any]) -> float:
    taken = []
    for _ in range(30):
        dist.barrier()
        start = perf_counter()
        work()
        taken.append(perf_counter() - start)
    return min(taken)


def main() -> None:
    """Print a table."""
    torch.set_num_threads(1)
    with together.joined():
        n = together.processes()
        if together.first():
            columns = ("alone", "together", "efficiency", "of the cores", "of the work", "others")
            print(f"{f'{n} processes, one thread each':<42}", *(f"{column:>12}" for column in columns), flush=True)
        for name, work in works():
            t = measure(work)
            shares = t.one / t.shared / n, t.each / t.shared / n, t.work_one / t.work_shared
            figures = (f"{t.one:.2f} s", f"{t.shared:.2f} s", *(f"{share:.0%}" for share in shares), f"{t.others:.1f}")
            if together.first():
                print(f"{name:<42}", *(f"{figure:>12}" for figure in figures), flush=True)
        for name, value, unit in costs():
            if together.first():
                print(f"{name:<42} {value:>9.3f} {unit}", flush=True)


if __name__ == "__main__":
    main()
