"""SIGKILL, SIGTERM and Ctrl-C at random moments of fit, encode and reproduce, which go on to the same end."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import numpy as np

from fire.small import INTERVAL
from fire.summary import Part
from orbitpool import datasets, modelfile

KILLS = 50
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
EPOCHS, IMAGES, BATCH = 60, 300, 10
LIMIT = 120  # seconds that no run takes


@dataclass
class Job:
    """A command, where it writes, and what came out of it, without the time it took."""

    name: str
    arguments: tuple[str, ...]
    out: str
    outcome: Callable[[Path], Any]
    expected: Any = None
    begins: float = 0.0  # seconds until something is said
    length: float = 0.0  # seconds from then on

    def command(self, home: Path, folder: Path) -> list[str]:
        """What is run."""
        words = [word.replace("HOME", str(home)).replace("OUT", str(folder)) for word in self.arguments]
        return [sys.executable, "-m", "fire.small", *words]


@dataclass
class Record:
    """What was seen."""

    kills: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lost: list[tuple[int, str]] = field(default_factory=list)  # updates
    restarts: int = 0


def write_data(home: Path) -> None:
    """Digits as an array, as pictures, and as MNIST files."""
    from PIL import Image
    from scipy import ndimage
    from sklearn.datasets import load_digits

    turned = datasets.turned_digits()
    np.savez(home / "digits.npz", images=turned.X_train[:IMAGES], labels=turned.y_train[:IMAGES])
    for i, (image, label) in enumerate(zip(turned.X_test[:400], turned.y_test[:400], strict=True)):
        (home / "pictures" / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray((255 * image).astype(np.uint8)).save(home / "pictures" / str(label) / f"{i}.png")
    digits = load_digits()
    large = np.pad(ndimage.zoom(digits.images / 16, (1, 2.5, 2.5), order=1), ((0, 0), (4, 4), (4, 4)))
    (home / "mnist").mkdir()
    for part, rows in (("train", slice(1500)), ("t10k", slice(1500, None))):
        for kind, array in (
            ("images-idx3", (255 * large).astype(np.uint8)),
            ("labels-idx1", digits.target.astype(np.uint8)),
        ):
            chosen = array[rows]
            data = np.array([0x0800 + chosen.ndim, *chosen.shape], ">u4").tobytes() + chosen.tobytes()
            (home / "mnist" / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(data, 1))


def _model(path: Path) -> Any:
    content, tensors = modelfile.read(path)
    text = json.dumps({**content, "counters": _timeless(content["counters"])}, sort_keys=True)
    return text, {name: (str(t.dtype), t.numpy().tobytes()) for name, t in tensors.items()}


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in ("seconds", "peak_memory_gb")}
    return [_timeless(v) for v in value] if isinstance(value, list) else value


def _features(path: Path) -> Any:
    with np.load(path) as held:
        return {name: (held[name].dtype.str, held[name].tobytes()) for name in held.files}


def _results(folder: Path) -> Any:
    return {path.name: _timeless(json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))}


JOBS = (
    Job(
        "fit",
        ("fit", "HOME/digits.npz", "--out", "OUT/model", "--components", "40", "--epochs", str(EPOCHS), "--json"),
        "model",
        _model,
    ),
    Job("encode", ("encode", "HOME/model", "HOME/pictures", "--out", "OUT/z.npz", "--json"), "z.npz", _features),
    Job(
        "reproduce",
        (
            *("reproduce", "table1", "--rows", "rot", "--quick", "--seeds", "2"),
            *("--data-dir", "HOME", "--results", "OUT/r", "--device", "cpu", "--json"),
        ),
        "r",
        _results,
    ),
)


def run(seconds: float, seed: int, kills: int = KILLS) -> Part:
    """Kill until there are enough kills, in chains of some on the same run, each ended by a whole run."""
    start, rng, record = perf_counter(), random.Random(seed), Record()
    with TemporaryDirectory() as made:
        home = Path(made)
        write_data(home)
        for job in JOBS:
            _undisturbed(job, home)
            if job.name == "fit":
                shutil.copy(home / "whole-fit" / "model", home / "model")
        with ThreadPoolExecutor(2) as crew:
            while (left := kills - record.kills.total()) > 0 and perf_counter() - start < seconds:
                links = [min(left, rng.randint(2, 5)) for _ in JOBS]
                seeds = [rng.random() for _ in JOBS]
                list(crew.map(lambda job, n, s: _chain(job, home, random.Random(s), record, n), JOBS, links, seeds))
    count, worst = record.kills.total(), max(record.lost, default=(0, "nothing"))
    return Part(
        "kills",
        f"{count} of {kills}: " + ", ".join(f"{n} {name}" for name, n in sorted(record.kills.items())),
        f"{record.restarts} runs started again to the end, {len(record.wrong)} not the same as undisturbed",
        f"{worst[0]} updates lost ({worst[1]}), with a checkpoint every {INTERVAL}",
        record.wrong,
        perf_counter() - start,
        [] if count >= kills else [f"{kills - count} kills were left out for lack of time"],
    )


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def _undisturbed(job: Job, home: Path) -> None:
    folder = home / f"whole-{job.name}"
    folder.mkdir()
    start = perf_counter()
    process = subprocess.Popen(
        job.command(home, folder), env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    job.begins = perf_counter() - start
    _, complaint = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{job.name} does not even run undisturbed: {complaint}")
    job.length, job.expected = perf_counter() - start - job.begins, job.outcome(folder / job.out)


def _chain(job: Job, home: Path, rng: random.Random, record: Record, kills: int) -> None:
    """Kill a run some times, let it end, and compare."""
    folder = home / f"killed-{job.name}"
    folder.mkdir()
    for _ in range(kills):
        number = rng.choice(SIGNALS)
        late = rng.random() < 0.85
        moment = rng.uniform(0, job.length if late else job.begins)
        code, said = _killed(job, home, folder, number, moment, late)
        if code == 0:  # it was faster
            job.length *= 0.8
            break
        record.kills[f"{signal.Signals(number).name} of {job.name}"] += 1
        for problem in _problems(job, folder, number, code, said, record):
            record.wrong.append(f"{job.name}, {signal.Signals(number).name} after {moment:.2f} s: {problem}")
    ended = subprocess.run(
        job.command(home, folder), env=_environment(), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    record.restarts += 1
    if ended.returncode:
        record.wrong.append(f"{job.name} does not go on: {ended.stderr}")
    else:
        if job.outcome(folder / job.out) != job.expected:
            record.wrong.append(f"{job.name} went on to another result")
        if left := _names(folder) - {job.out} - {f"r/{path.name}" for path in (folder / "r").glob("table1-*.json")}:
            record.wrong.append(f"{job.name} left {', '.join(sorted(left))} behind")
    shutil.rmtree(folder)


def _killed(job: Job, home: Path, folder: Path, number: int, moment: float, late: bool) -> tuple[int, str]:
    """Run for a while, from the start or from the first word on; the exit status and what was said."""
    with (home / f"said-{job.name}").open("w+") as said:
        process = subprocess.Popen(
            job.command(home, folder), env=_environment(), stdout=said, stderr=subprocess.STDOUT, text=True
        )
        until = perf_counter() + moment
        while perf_counter() < until and process.poll() is None:
            if late and not os.fstat(said.fileno()).st_size:
                until = perf_counter() + moment
            sleep(0.002)
        process.send_signal(number)
        code = process.wait(LIMIT)
        said.seek(0)
        return code, said.read()


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def _problems(job: Job, folder: Path, number: int, code: int, said: str, record: Record) -> list[str]:
    """What must not be after a kill: half a file, a traceback, leftovers of an orderly end, lost updates."""
    problems = []
    if "Traceback" in said and "import" not in said:
        problems.append(f"a traceback:\n{said[-1500:]}")
    left = [name for name in _names(folder) if name.endswith((".partial", ".lock"))]
    if left and code > 0:
        problems.append(f"an orderly end left {', '.join(left)}")
    try:
        if job.name == "fit" and (folder / "model").exists() and _model(folder / "model") != job.expected:
            problems.append("a model that is not the one")
        if job.name == "encode" and (folder / "z.npz").exists() and _features(folder / "z.npz") != job.expected:
            problems.append("features that are not the ones")
        if job.name == "reproduce":
            _results(folder / "r")
        for path in folder.rglob(".*checkpoint"):
            content, _ = modelfile.read(path)
            if job.name == "fit":
                _count_lost(content["counters"]["update"], said, number, record)
    except (ValueError, OSError, KeyError) as error:
        problems.append(f"half a file: {error}")
    return problems


def _count_lost(kept: int, said: str, number: int, record: Record) -> None:
    """How many updates the last line of progress was ahead of the checkpoint."""
    told = [line for line in said.splitlines() if '"task": "TIRBM"' in line and line.endswith("}")]
    if told:
        done = round(json.loads(told[-1])["fraction"] * EPOCHS * IMAGES / BATCH)
        lost = done - kept
        record.lost.append((max(0, lost), f"{signal.Signals(number).name} of fit"))
        if lost > INTERVAL:
            record.wrong.append(f"fit lost {lost} updates, more than the {INTERVAL} between checkpoints")
