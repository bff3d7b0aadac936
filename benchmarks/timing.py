"""Medians of interleaved runs, so that a noisy machine is noisy for everyone alike, and how noisy it was."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Literal

from orbitpool.kernels.products import SHORT

PAUSE = 0.1  # seconds in which the threads of the work before stop waiting in busy loops, which would slow the next one
PRECISIONS: tuple[Literal["auto", "bfloat16"], ...] = ("auto", "bfloat16") if SHORT else ("auto",)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    value: float
    limit: float | None = None  # what it must reach, if that was said
    timed: bool = True  # whether it is a ratio of times, which must not grow
    noisy: bool = False  # whether others were at work


class Others:
    """How much of a core other programs take, on Linux."""

    def __init__(self) -> None:
        self.share = 0.0
        self.at, self.used = perf_counter(), self._used()

    def look(self) -> float:
        """Their share since the last look that was half a second ago or more."""
        now, used = perf_counter(), self._used()
        if now - self.at > 0.5:
            self.share = (used - self.used) / (now - self.at)
            self.at, self.used = now, used
        return self.share

    def _used(self) -> float:
        """Seconds of all cores that others have used so far."""
        stat = Path("/proc/stat")
        if not stat.exists():
            return 0.0
        user, nice, system, _, _, *interrupts = map(int, stat.read_text().split()[1:9])
        return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


def seconds(*works: Callable[[], object], repeats: int = 15, row: int = 1) -> list[float]:
    """Median seconds of each piece of work, after one warm-up.

    What takes milliseconds, and follows itself where it is used, is done several times in a row: the first time after a
    pause wakes threads, and for how long the system then has them share a core is a matter of luck.
    """
    times: list[list[float]] = [[] for _ in works]
    for turn in range(repeats + 1):
        for work, taken in zip(works, times, strict=True):
            sleep(PAUSE)
            start = perf_counter()
            for _ in range(row):
                work()
            if turn:
                taken.append((perf_counter() - start) / row)
    return [median(taken) for taken in times]
