"""Pieces of work on a CPU, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")


def each(work: Callable[[Item], None], items: Sequence[Item], threads: int) -> None:
    """Do the work for each item, without gradients, in some threads, in each of which torch keeps to one core.

    What a core has just made is then in its own cache for the next step; torch would deal out each step anew.
    """
    work = torch.no_grad()(work)
    if min(threads, len(items)) < 2:
        for item in items:
            work(item)
        return
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as crew:
            for _ in crew.map(work, items):  # raises what work raises, and then starts no more
                pass
    finally:
        torch.set_num_threads(before)  # for threads that others start: they do as the last one was told
