"""Pieces of work on a CPU, side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")
AHEAD = 2  # pieces for each thread that are begun before the first of them is asked for


def in_order(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """What the work gives for each item, without gradients, from some threads, in each of which torch has one core.

    What a core has just made is then in its own cache for the next step; torch would deal out each step anew.
    """
    work = torch.no_grad()(work)
    if threads < 2:
        yield from map(work, items)
        return
    begun: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as crew:
        _give_each_a_core(crew, threads)
        try:
            for item in items:
                begun.append(crew.submit(work, item))
                if len(begun) > AHEAD * threads:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:  # after an error, or Ctrl-C
            for piece in begun:
                piece.cancel()


def _give_each_a_core(crew: ThreadPoolExecutor, threads: int) -> None:
    cores, together = torch.get_num_threads(), Barrier(threads + 1)

    def begin() -> None:
        torch.get_num_threads()  # or torch would set them later, when this thread first needs them
        torch.set_num_threads(1)
        together.wait()

    try:
        for _ in range(threads):
            crew.submit(begin)
        together.wait()
    except BaseException:
        together.abort()
        raise
    finally:
        torch.set_num_threads(cores)  # threads that others start have as many cores as the last one was given
