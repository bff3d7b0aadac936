"""Two processes on one checkpoint and one cache, again and again; and a clock that jumps."""

import hashlib
import multiprocessing
import random
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import perf_counter
from typing import Any
from unittest import mock

import numpy as np

from fire.summary import Part
from orbitpool import TIRBM, load, progress
from orbitpool.datasets import store
from orbitpool.wholefile import InUse

TRIES = 100
CONTENT = bytes(range(256)) * 400


class _Server(BaseHTTPRequestHandler):
    """Hands out one file, and counts."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def _learner(path: Path) -> TIRBM:
    return TIRBM(4, n_iter=6, batch_size=20, random_state=0, checkpoint=path, checkpoint_every=2)


def _digits() -> Any:
    return np.random.default_rng(0).random((200, 16))


def _race(which: Any, gate: Any, answers: Any) -> None:
    """One of two: for every try wait for the other, then do the same as it does."""
    import os

    import torch

    torch.set_num_threads(1)
    os.environ["NO_PROXY"] = "*"
    X = _digits()
    while (task := which.get()) is not None:
        what, folder, url = task
        gate.wait()
        try:
            if what == "checkpoint":
                _learner(Path(folder) / "run").fit(X)
            else:
                origin = store.Origin(url, hashlib.md5(CONTENT, usedforsecurity=False).hexdigest(), ("file.bin",))
                store.COLLECTIONS["fire"] = store.Collection(("room",), (origin,))
                found = store.files("fire", folder)
                assert found["file.bin"].read_bytes() == CONTENT, "half a file"
            answers.put("won")
        except InUse:
            answers.put("was told")
        except BaseException as error:
            answers.put(f"WRONG {error!r}")


def run(seconds: float, seed: int) -> Part:
    """A hundred races on a checkpoint and a hundred on a cache."""
    start, wrong, counts = perf_counter(), [], {"won": 0, "was told": 0}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/file.bin"
    context = multiprocessing.get_context("spawn")
    gate, answers, queues = context.Barrier(2), context.Queue(), [context.Queue() for _ in range(2)]
    crew = [context.Process(target=_race, args=(queue, gate, answers), daemon=True) for queue in queues]
    for process in crew:
        process.start()
    tries = 0
    with TemporaryDirectory() as made:
        expected = _learner(Path(made) / "alone").fit(_digits()).components_
        for number in range(2 * TRIES):
            if perf_counter() - start > seconds:
                break
            what, folder = ("checkpoint", "cache")[number % 2], Path(made) / str(number)
            folder.mkdir()
            for queue in queues:
                queue.put((what, str(folder), url))
            ends = [answers.get(timeout=120) for _ in crew]
            tries += 1
            for end in ends:
                counts[end] = counts.get(end, 0) + 1
            wrong += _wrong(what, folder, ends, expected)
    for queue in queues:
        queue.put(None)
    server.shutdown()
    jumps, bad = _jumps(seed)
    return Part(
        "races and clocks",
        f"{tries} of {2 * TRIES} races on one checkpoint or one cache, {jumps} jumps of the clock",
        ", ".join(f"{count} {end}" for end, count in counts.items()),
        f"{_Server.asked} downloads for {tries // 2} races on a cache",
        wrong + bad,
        perf_counter() - start,
        [] if tries == 2 * TRIES else [f"{2 * TRIES - tries} races, for lack of time"],
    )


def _wrong(what: str, folder: Path, ends: list[str], expected: Any) -> list[str]:
    wrong = [f"{what}: {end}" for end in ends if end not in ("won", "was told")]
    if "won" not in ends or (what == "cache" and ends != ["won", "won"]):
        wrong.append(f"{what}: ended by {ends}")
    if what == "checkpoint" and not np.array_equal(load(folder / "run").components_, expected):
        wrong.append("checkpoint: the model is not the one")
    if left := [p.name for p in folder.rglob(".*")]:
        wrong.append(f"{what}: left {left}")
    return wrong


def _jumps(seed: int) -> tuple[int, list[str]]:
    """Progress by a clock that jumps to and fro: estimates are never negative, and nothing breaks."""
    rng, wrong, count, now = random.Random(seed), [], 0, 0.0

    def clock() -> float:
        nonlocal now
        now += rng.choice((0.1, 1.0, -1.0, 3600.0, -3600.0, 1e9, -1e9, 0.0))
        return now

    with mock.patch.object(progress, "perf_counter", clock):
        for display in (progress.Lines(), progress.JsonLines(), progress.Results()):
            mute = partial(mock.patch.object, display, "line" if isinstance(display, progress.Lines) else "result")
            with mute(), progress.showing(display), progress.task("jump", 500) as task:
                for done in range(500):
                    task.count(done, "steps")
                    count += 1
                    if (left := task.seconds_left) is not None and not 0 <= left < float("inf"):
                        wrong.append(f"{left} seconds left")
                    if "-" in task.left:
                        wrong.append(task.left)
    return count, wrong
