"""Pooling over an orbit in bounded memory, against the one product that it cannot do without."""

from collections.abc import Iterator
from math import pi

import torch

from benchmarks.timing import Row, seconds
from orbitpool import orbit
from orbitpool import transforms as T
from orbitpool.kernels import reduce_orbit


def run() -> Iterator[Row]:
    """Ratios to the unchunked product, alone and with its reduction, when inputs are moved and when filters are."""
    for n in (400, 1500):
        yield from _compare(n)


def _compare(n: int) -> Iterator[Row]:
    turns, v, W = T.rotations(28, 16, pi / 8), torch.rand(n, 784), torch.randn(1000, 784) / 28
    posed = orbit.templates(W, turns).reshape(-1, 784).contiguous()

    def product() -> torch.Tensor:
        return v @ posed.T

    def unchunked() -> torch.Tensor:
        return orbit.total(product().view(n, 1000, 16))

    alone, whole, chunked = seconds(product, unchunked, lambda: reduce_orbit(v, W, turns))
    yield Row(f"reduce_orbit, N={n} K=1000 S=16 D=784: over the bare product", chunked / alone)
    yield Row(f"reduce_orbit, N={n} K=1000 S=16 D=784: over product and reduction", chunked / whole)
