"""SIGKILL, SIGTERM and Ctrl-C at random moments of fit, encode and reproduce, which go on to the same end."""

import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from threading import Semaphore
from time import perf_counter, sleep

from fire.blows import ALONE, LONGEST, UNDER_TORCHRUN, Blow
from fire.jobs import Job, prepared, unfinished
from fire.small import INTERVAL
from fire.summary import Part
from orbitpool import modelfile

KILLS = {1: 50, 2: 20}  # by how many processes a command has; more than one are under torchrun


@dataclass
class Record:
    """What was seen."""

    kills: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lost: list[tuple[int, str]] = field(default_factory=list)  # updates
    restarts: int = 0


def run(seconds: float, seed: int, processes: int = 1) -> Part:
    """Kill until there are enough kills, in chains of some on the same run, each ended by a whole run."""
    start, rng, record, kills = perf_counter(), random.Random(seed), Record(), KILLS[processes]
    blows = ALONE if processes == 1 else UNDER_TORCHRUN
    home, jobs = prepared(processes)
    room = Semaphore(2)  # one run on every core

    def disturb(job: Job, own: random.Random, turn: Iterator[Blow]) -> None:
        while (left := kills - record.kills.total()) > 0 and perf_counter() - start < seconds:
            with room:
                _chain(job, home, own, record, list(islice(turn, min(left, own.randint(1, 4)))))

    turns = [cycle(blows[n % len(blows) :] + blows[: n % len(blows)]) for n in range(len(jobs))]
    with ThreadPoolExecutor(len(jobs)) as crew:
        list(crew.map(disturb, jobs, [random.Random(rng.random()) for _ in jobs], turns))
    count, worst = record.kills.total(), max(record.lost, default=(0, "nothing"))
    soft = [lost for lost, name in record.lost if any(name.startswith(b.name) for b in blows if b.orderly)]
    return Part(
        "kills" if processes == 1 else "under torchrun",
        f"{count} of {kills}: " + ", ".join(f"{n} {name}" for name, n in sorted(record.kills.items())),
        f"{record.restarts} runs went on to the end, {len(record.wrong)} not as they must",
        f"{worst[0]} updates lost ({worst[1]}), with a checkpoint every {INTERVAL}; "
        f"{max(soft, default=0)} by {len(soft)} orderly ends of fit",
        record.wrong,
        perf_counter() - start,
        [] if count >= kills else [f"{kills - count} kills, for lack of time"],
    )


def _chain(job: Job, home: Path, rng: random.Random, record: Record, blows: list[Blow]) -> None:
    """Kill a run some times, let it end, and compare."""
    folder = home / f"killed-{job.name}"
    folder.mkdir()
    code = 1
    for blow in blows:
        late = rng.random() < 0.85
        moment = rng.uniform(0, job.length / len(blows) if late else job.begins)
        before = set(unfinished(folder))  # what a SIGKILL has left goes with the next write, if there is one
        code, said, struck = _killed(job, home, folder, blow, moment, late)
        if not struck or (code == 0 and not blow.mended):  # it was faster
            job.length *= 0.8
            break
        record.kills[f"{blow.name} of {job.name}"] += 1
        for problem in _problems(job, home, folder, blow, code, said, record, before):
            record.wrong.append(f"{job.name}, {blow.name} after {moment:.2f} s: {problem}")
        if code == 0:
            break
    complaint, done = "", (folder / job.out).exists() and job.outcome(folder / job.out) == job.expected
    stale = set(unfinished(folder)) if done else set()  # whoever has nothing to do clears nothing away
    if code:
        code, complaint = job.run(home, folder)
    record.restarts += 1
    if code:
        record.wrong.append(f"{job.name} does not go on: {complaint}")
    else:
        if job.outcome(folder / job.out) != job.expected:
            record.wrong.append(f"{job.name} went on to another result")
        if left := [name for name in job.left(folder) if Path(name).name not in stale]:
            record.wrong.append(f"{job.name} left {', '.join(left)} behind")
    shutil.rmtree(folder)


def _killed(job: Job, home: Path, folder: Path, blow: Blow, moment: float, late: bool) -> tuple[int, str, bool]:
    """Run for a while, from the start or from the first word on: exit status, what was said, whether it was struck."""
    with (home / f"said-{job.name}").open("w+") as said:
        process = job.start(home, folder, stdout=said, stderr=subprocess.STDOUT)
        until = perf_counter() + moment
        while perf_counter() < until and process.poll() is None:
            if late and not os.fstat(said.fileno()).st_size:
                until = perf_counter() + moment
            sleep(0.002)
        struck = process.poll() is None and blow.strike(process.pid)
        code = process.wait(LONGEST)
        said.seek(0)
        return code, said.read(), struck


def _problems(
    job: Job, home: Path, folder: Path, blow: Blow, code: int, said: str, record: Record, before: set[str]
) -> list[str]:
    """What must not be after a kill: half a file, a traceback, leftovers of an orderly end, lost updates."""
    problems = []
    for block in said.split("Traceback")[1:]:  # torchrun has its own
        if "/orbitpool/" in block:
            problems.append(f"a traceback:\n{block[:1500]}")
    if blow.orderly and (left := set(unfinished(folder)) - before):
        problems.append(f"an orderly end left {', '.join(left)}")
    if blow.mended and code:
        problems.append(f"torchrun did not bring it to its end:\n{said[-1500:]}")
    try:
        out = folder / job.out
        if out.exists() and job.outcome(out) != job.expected and out.is_file():
            problems.append("a file that is not the one")
        kept = [modelfile.read(path)[0] for path in folder.rglob(".*checkpoint")]
        if job.name == "fit" and not out.exists():
            _count_lost(max((c["counters"]["update"] for c in kept), default=0), job.updates(home), blow, record)
    except (ValueError, OSError, KeyError) as error:
        problems.append(f"half a file: {error}")
    return problems


def _count_lost(kept: int, counted: Path, blow: Blow, record: Record) -> None:
    """How many updates were done beyond those that the checkpoint has."""
    if counted.exists() and (number := counted.read_text()):
        lost = int(number) - kept
        record.lost.append((max(0, lost), f"{blow.name} of fit"))
        if lost > (may := 0 if blow.orderly else INTERVAL):
            record.wrong.append(f"fit lost {lost} updates by {blow.name}, which may lose {may}")
