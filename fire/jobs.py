"""The commands that are disturbed on purpose, alone and under torchrun, and what comes out of them undisturbed."""

import atexit
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from fire.blows import LONGEST
from orbitpool import datasets, modelfile

EPOCHS = {1: 60, 2: 20}  # by how many processes a command has; messages take their time
IMAGES = 300
COUNTED = "FIRE_UPDATES"  # names the file in which a command counts its updates
RESTARTS = 2  # of workers by torchrun


@dataclass
class Job:
    """A command, where it writes, and what came out of it, without the time it took."""

    name: str
    arguments: tuple[str, ...]
    out: str
    outcome: Callable[[Path], Any]
    processes: int = 1  # more than one are started by torchrun
    expected: Any = None
    begins: float = 0.0  # seconds until something is said
    length: float = 0.0  # seconds from then on

    def command(self, home: Path, folder: Path) -> list[str]:
        """What is run."""
        known = {"HOME": str(home), "OUT": str(folder), "EPOCHS": str(EPOCHS[self.processes])}
        words = [reduce(lambda w, name: w.replace(name, known[name]), known, word) for word in self.arguments]
        start = [] if self.processes == 1 else ["-m", "torch.distributed.run", "--standalone"]
        start += [] if self.processes == 1 else [f"--nproc-per-node={self.processes}", f"--max-restarts={RESTARTS}"]
        return [sys.executable, *start, "-m", "fire.small", *words]

    def start(self, home: Path, folder: Path, **streams: Any) -> "subprocess.Popen[str]":
        """The command, running."""
        self.updates(home).unlink(missing_ok=True)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        environment[COUNTED] = str(self.updates(home))
        return subprocess.Popen(self.command(home, folder), env=environment, text=True, **streams)

    def updates(self, home: Path) -> Path:
        """Where the last run keeps the number of its last update, which outlives a kill."""
        return home / f"updates-{self.name}"

    def run(self, home: Path, folder: Path) -> tuple[int, str]:
        """The command, to its end: the exit status, and what it complained of."""
        process = self.start(home, folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        _, complaint = process.communicate(timeout=LONGEST)
        return process.returncode, complaint

    def learn(self, home: Path) -> None:
        """Run undisturbed: how long it takes, and what comes out."""
        folder = home / f"whole-{self.name}"
        folder.mkdir()
        start = perf_counter()
        process = self.start(home, folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        self.begins = perf_counter() - start
        _, complaint = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{self.name} does not even run undisturbed: {complaint}")
        self.length, self.expected = perf_counter() - start - self.begins, self.outcome(folder / self.out)

    def left(self, folder: Path) -> list[str]:
        """What should not be in a folder after the end."""
        found = sorted(path.relative_to(folder) for path in folder.rglob("*"))
        return [str(path) for path in found if path.parts[0] != self.out or path.name.startswith(".")]


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


def model(path: Path) -> Any:
    """A model file, without the time it took."""
    content, tensors = modelfile.read(path)
    text = json.dumps({**content, "counters": _timeless(content["counters"])}, sort_keys=True)
    return text, {name: (str(t.dtype), t.numpy().tobytes()) for name, t in tensors.items()}


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in ("seconds", "peak_memory_gb")}
    return [_timeless(v) for v in value] if isinstance(value, list) else value


def features(path: Path) -> Any:
    """A file of features."""
    with np.load(path) as held:
        return {name: (held[name].dtype.str, held[name].tobytes()) for name in held.files}


def parts(folder: Path) -> Any:
    """A folder of features."""
    return {path.name: features(path) for path in folder.glob("*.npz")}, results(folder)


def results(folder: Path) -> Any:
    """All JSON of a folder, without the time it took."""
    return {path.name: _timeless(json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))}


JOBS = (
    Job(
        "fit",
        ("fit", "HOME/digits.npz", "--out", "OUT/model", "--components", "40", "--epochs", "EPOCHS", "--json"),
        "model",
        model,
    ),
    Job("encode", ("encode", "HOME/model", "HOME/pictures", "--out", "OUT/z.npz", "--json"), "z.npz", features),
    Job("encode to a folder", ("encode", "HOME/model", "HOME/pictures", "--out", "OUT/z", "--json"), "z", parts),
    Job(
        "reproduce",
        (
            *("reproduce", "table1", "--rows", "rot", "--quick", "--seeds", "2"),
            *("--data-dir", "HOME", "--results", "OUT/r", "--device", "cpu", "--json"),
        ),
        "r",
        results,
    ),
)


def unfinished(folder: Path) -> list[str]:
    """What an orderly end does not leave."""
    return [path.name for path in folder.rglob(".*") if path.name.endswith((".partial", ".lock"))]


@cache
def prepared(processes: int = 1) -> tuple[Path, Sequence[Job]]:
    """A folder with data and a model, kept until the end, and the jobs, which have run there undisturbed."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    home, jobs = Path(folder.name), [replace(job, processes=processes) for job in JOBS]
    write_data(home)
    for job in jobs:
        job.learn(home)
        if job.name == "fit":
            (home / "model").write_bytes((home / "whole-fit" / "model").read_bytes())
    return home, jobs
