"""How the time of an update grows with the size of everything: exponents fitted to a few sizes."""

from collections.abc import Iterator
from math import pi

import numpy as np
import torch

from benchmarks.timing import Row, seconds
from orbitpool import TIRBM
from orbitpool import transforms as T
from orbitpool.learners.training import Updates

BASE = {"N": 200, "K": 500, "S": 8, "side": 20}
SIZES = {"N": (100, 200, 400, 800), "K": (250, 500, 1000, 2000), "S": (4, 8, 16, 32), "side": (14, 20, 28, 40)}


def run() -> Iterator[Row]:
    """Slopes of log time against log size; D is the number of pixels."""
    for letter, sizes in SIZES.items():
        taken = [_update(**(BASE | {letter: size})) for size in sizes]
        slope = float(np.polyfit(np.log(sizes), np.log(taken), 1)[0])
        name, slope = ("D", slope / 2) if letter == "side" else (letter, slope)
        yield Row(f"growth of a TIRBM update with {name}: exponent", slope, timed=False)


def _update(N: int, K: int, S: int, side: int) -> float:
    poses = T.rotations(side, S, pi / 64)
    model = TIRBM(K, poses, batch_size=N, random_state=0)
    v = (torch.rand(N, side**2) < 0.2).float()
    updates = Updates(model, model._start(model._source(v, reset=True), 0))
    return seconds(lambda: updates(v), repeats=5, row=8)[0]
