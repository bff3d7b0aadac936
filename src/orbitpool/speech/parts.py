"""From frames to segments: features averaged over parts of a segment, so that long and short ones are alike.

The parts are those of Clarkson & Moreno (1999): the first three, the middle four and the last three tenths of the
segment, and 40 ms around its start and around its end; the logarithm of its length in seconds comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.speech.mfcc import SHIFT
from orbitpool.speech.recordings import Segment

PARTS = 5
AROUND = 0.02  # seconds to either side of a boundary


def n_pooled(n_features: int) -> int:
    """How many numbers stand for a segment."""
    return PARTS * n_features + 1


def pool(features: NDArray[Any], segments: Sequence[Segment]) -> NDArray[np.float32]:
    """Averages of one recording's features (T, F) over the parts of its segments, (N, 5 F + 1).

    A frame belongs to a part if its centre lies in it; a part without any takes the frame nearest to its middle.
    """
    start, end = np.array([(s.start, s.end) for s in segments]).T
    edges = [start + share * (end - start) for share in (0, 0.3, 0.7, 1)]
    spans = [*pairwise(edges), (start - AROUND, start + AROUND), (end - AROUND, end + AROUND)]
    sums = np.concatenate([np.zeros_like(features[:1], np.float64), features.cumsum(0, dtype=np.float64)])
    means = [_means(sums, *span) for span in spans]
    return np.concatenate([*means, np.log(end - start)[:, None]], axis=1, dtype=np.float32)


def _means(sums: NDArray[np.float64], start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Averages between times, (N, F), from sums over all frames before each."""
    last = len(sums) - 2
    first, after = (np.ceil(time / SHIFT - 0.5 - 1e-9).astype(int).clip(0, last + 1) for time in (start, end))
    nearest = np.floor((start + end) / 2 / SHIFT).astype(int).clip(0, last)
    none = after <= first
    first, after = np.where(none, nearest, first), np.where(none, nearest + 1, after)
    return np.asarray((sums[after] - sums[first]) / (after - first)[:, None])
