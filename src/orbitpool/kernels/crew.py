"""Pieces of work on a CPU, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from threading import Event, Thread
from typing import TypeVar

import torch

Item = TypeVar("Item")


def each(work: Callable[[Item], None], items: Sequence[Item], threads: int) -> None:
    """Do the work for each item, without gradients, in some threads, in each of which torch keeps to one core.

    What a core has just made is then in its own cache for the next step; torch would deal out each step anew. The first
    error ends the work and is raised.
    """
    if threads < 2:
        with torch.no_grad():
            for item in items:
                work(item)
        return
    cores, inference, turn = torch.get_num_threads(), torch.is_inference_mode_enabled(), count()
    go, errors = Event(), list[BaseException]()

    def labour(ready: Event) -> None:
        torch.get_num_threads()  # or torch would set them later, when this thread first needs them
        torch.set_num_threads(1)
        ready.set()
        go.wait()
        with torch.inference_mode(inference), torch.no_grad():
            while not errors and (place := next(turn)) < len(items):
                try:
                    work(items[place])
                except BaseException as error:
                    errors.append(error)

    crew: list[Thread] = []
    try:
        for _ in range(threads):
            ready = Event()
            thread = Thread(target=labour, args=(ready,))
            thread.start()
            crew.append(thread)
            ready.wait()
            torch.set_num_threads(cores)  # threads that others start have as many cores as the last one was given
        go.set()
        for thread in crew:
            thread.join()
    except BaseException as error:  # Ctrl-C, or no more threads
        errors.append(error)
        go.set()
        for thread in crew:
            thread.join()
    if errors:
        raise errors[0]
