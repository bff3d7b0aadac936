"""How processes that torchrun has started find each other, whichever of them are new."""

from __future__ import annotations

import os
from datetime import timedelta
from secrets import token_hex
from time import monotonic, sleep

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

COMING = timedelta(minutes=30)  # for others to start, as torch by itself waits for them
PAUSE = 0.02  # seconds between two looks into the store
SETTLED = 0.5  # seconds that one who is first still has to come after the others, when an earlier one has answered them
ALL, OVER = "all", "over"  # what becomes of a meeting


def begin(patience: timedelta) -> None:
    """Initialise torch's process group, each process on a GPU of its own where there are as many.

    Processes meet anew after every restart: torchrun may keep one store for all of them, and in it addresses of
    processes that have died, which `init_process_group` by itself would try to reach. They have `patience` with each
    other, but for the start no more than half an hour.
    """
    gpus, here = torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", 0))
    if gpus:
        torch.cuda.set_device(here % gpus)
    enough = gpus >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    store, rank, size = next(rendezvous("env://"))
    store = PrefixStore(name_of_start(store, rank, size, min(patience, COMING)), store)
    backend = None if enough else "gloo"  # NCCL wants a GPU for each process
    dist.init_process_group(backend, timeout=patience, store=store, rank=rank, world_size=size)


def name_of_start(store: Store, rank: int, size: int, patience: timedelta) -> str:
    """A name that the first process gives to all that have started with it, past what others left in the store.

    How often it was started is no such name, because a machine that has taken another's place counts anew. So each of
    the others asks under a name of its own, to which only an answer to this very process comes; the first
    answers whoever asks, the dead too, until all have confirmed. A first that comes later ends a meeting that is not
    complete: one value, written once, says of each whether all have come or it is over. Who is in one that is over
    waits for the next answer; its first raises ConnectionError. If the later first comes more than a moment after the
    others, they work with the earlier one, and it waits in vain. TimeoutError names those who did not come.
    """
    own, until = token_hex(8), monotonic() + patience.total_seconds()
    name = "" if rank else own
    if rank:
        store.set(f"ask {rank}", own)
    else:
        _end_earlier(store, own)
    while (fate := _read(store, f"fate {name}")) != ALL:
        if monotonic() > until:
            raise TimeoutError(_who_is_missing(store, name, size, patience))
        if rank and (not name or fate == OVER):
            name = _confirmed(store, rank, own)
        elif not rank:
            if fate == OVER:
                raise ConnectionError("another first process has come since this one; end this one, which was replaced")
            _answer(store, own, size)
        sleep(PAUSE)
    return name


def _read(store: Store, key: str) -> str:
    """What is in a store, or nothing, without waiting for it."""
    return store.get(key).decode() if store.check([key]) else ""


def _end_earlier(store: Store, own: str) -> None:
    """Be the first from now on; an earlier one that still waits for others waits in vain."""
    earlier = _read(store, "first")
    store.set("first", own)
    if earlier:
        store.compare_set(f"fate {earlier}", "", OVER)


def _confirmed(store: Store, rank: int, own: str) -> str:
    """The name of the last answer, which is confirmed; none if there is no answer yet."""
    if name := _read(store, f"answer {own}"):
        store.set(f"{name} {rank}", "here")
    return name


def _answer(store: Store, own: str, size: int) -> None:
    """Answer all who ask, and say so when all have confirmed, unless it is over."""
    for other in range(1, size):
        if asked := _read(store, f"ask {other}"):
            store.set(f"answer {asked}", own)
    if not _missing(store, own, size):
        sleep(SETTLED)
        store.compare_set(f"fate {own}", "", ALL)


def _missing(store: Store, name: str, size: int) -> list[int]:
    return [other for other in range(1, size) if not store.check([f"{name} {other}"])]


def _who_is_missing(store: Store, name: str, size: int, patience: timedelta) -> str:
    ranks = ", ".join(map(str, _missing(store, name, size) if name else [0])) or "0"
    return (
        f"of {size} processes, rank {ranks} did not come within {patience.total_seconds():g} s; see what ended or "
        "holds them up in their own output, and start all anew, as torchrun --max-restarts 3 does"
    )
