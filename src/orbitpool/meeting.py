"""How processes that torchrun has started find each other, whichever of them are new."""

from __future__ import annotations

import os
from datetime import timedelta
from secrets import token_hex
from time import sleep

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous


def begin(patience: timedelta) -> None:
    """Initialise torch's process group, each process on a GPU of its own where there are as many.

    Processes meet anew after every restart: torchrun may keep one store for all of them, and in it addresses of
    processes that have died, which `init_process_group` by itself would try to reach.
    """
    gpus, here = torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", 0))
    if gpus:
        torch.cuda.set_device(here % gpus)
    enough = gpus >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    store, rank, size = next(rendezvous("env://"))
    store = PrefixStore(name_of_start(store, rank, size), store)
    backend = None if enough else "gloo"  # NCCL wants a GPU for each process
    dist.init_process_group(backend, timeout=patience, store=store, rank=rank, world_size=size)


def name_of_start(store: Store, rank: int, size: int) -> str:
    """A name that the first process gives to all that have started with it, past what others left in the store.

    How often it was started is no such name, because a machine that has taken another's place counts anew. So each of
    the others asks under a name of its own, to which only an answer to this very process comes; the first
    answers whoever asks, the dead too, until all have confirmed.
    """
    own = token_hex(8)
    if rank:
        store.set(f"ask {rank}", own)
        name: str = store.get(f"answer {own}").decode()
        store.set(f"{name} {rank}", "here")
        return name
    while not store.check([f"{own} {other}" for other in range(1, size)]):
        for asked in (f"ask {other}" for other in range(1, size)):
            if store.check([asked]):
                store.set(f"answer {store.get(asked).decode()}", own)
        sleep(0.02)
    return own
