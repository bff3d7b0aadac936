"""Medians of interleaved runs, so that a noisy machine is noisy for everyone alike."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    value: float
    limit: float | None = None  # what it must reach, if that was said
    timed: bool = True  # whether it is a ratio of times, which must not grow


def seconds(*works: Callable[[], object], repeats: int = 15) -> list[float]:
    """Median seconds of each piece of work, after one warm-up."""
    times: list[list[float]] = [[] for _ in works]
    for turn in range(repeats + 1):
        for work, taken in zip(works, times, strict=True):
            start = perf_counter()
            work()
            if turn:
                taken.append(perf_counter() - start)
    return [median(taken) for taken in times]
