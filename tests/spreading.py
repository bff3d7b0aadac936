"""Functions run by several processes that work together, as torchrun would start them."""

import pickle
import traceback
from datetime import timedelta
from multiprocessing import get_context
from tempfile import TemporaryDirectory

import pytest

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(["orbitpool.classifiers", "orbitpool.images", "torch.distributed"])


def spread(function, processes, *args, timeout=120):
    """What a function of a module gives on each of so many processes."""
    with TemporaryDirectory() as folder:
        started = []
        for rank in range(processes):
            here, there = CONTEXT.Pipe(duplex=False)
            process = CONTEXT.Process(target=_run, args=(there, folder, rank, processes, function, args))
            process.start()
            there.close()
            started.append((process, here))
        results = []
        try:
            for _, here in started:
                assert here.poll(timeout), f"no answer in {timeout} seconds"
                results.append(here.recv())
        finally:
            for process, _ in started:
                process.join(5)
                process.kill()
    for failed in (r for r in results if isinstance(r, str)):
        pytest.fail(failed)
    return [pickle.loads(r) for r in results]


def _run(pipe, folder, rank, processes, function, args):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    try:
        if processes > 1:
            dist.init_process_group(
                "gloo",
                init_method=f"file://{folder}/meeting",
                rank=rank,
                world_size=processes,
                timeout=timedelta(seconds=60),
            )
        pipe.send(pickle.dumps(function(*args)))
        if processes > 1:
            dist.barrier()
            dist.destroy_process_group()
    except BaseException:
        pipe.send(traceback.format_exc())
