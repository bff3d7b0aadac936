"""Damaged files by the thousand, in processes that may not hang, swell, write elsewhere, or run anything."""

import multiprocessing
import os
import random
import resource
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from fire.damage import damaged
from fire.summary import Part

SLOWEST = 5.0  # seconds of computing; who waits four times as long on a busy machine has hung
LARGEST = 1 << 30  # bytes
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.find_class", "socket.")
WRITES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.")


@dataclass
class Outcome:
    """What became of one damaged file."""

    reader: str
    case: int
    damage: str
    end: str  # "refused", "read", or what is wrong
    seconds: float
    memory: int  # bytes beyond what the process had before
    detail: str = ""

    @property
    def fine(self) -> bool:
        """Whether it ended as it must."""
        return self.end in ("refused", "read")


@dataclass
class Tally:
    """What became of all of them."""

    ends: Counter[str] = field(default_factory=Counter)
    per_reader: Counter[str] = field(default_factory=Counter)
    slowest: Outcome | None = None
    largest: Outcome | None = None
    wrong: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count one more."""
        self.ends[outcome.end] += 1
        self.per_reader[outcome.reader] += 1
        if self.slowest is None or outcome.seconds > self.slowest.seconds:
            self.slowest = outcome
        if self.largest is None or outcome.memory > self.largest.memory:
            self.largest = outcome
        if not outcome.fine:
            self.wrong.append(outcome)


class Guard:
    """Notices what a reader does besides reading, by Python's audit events."""

    def __init__(self) -> None:
        self.room: str | None = None
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.room is None:
            return
        if event.startswith(FORBIDDEN):
            self.seen.append(f"{event} {arguments!r:.200}")
        elif event == "open" and self._writes(arguments) and not self._inside(arguments[0]):
            self.seen.append(f"wrote {arguments[0]!r}")
        elif event.startswith(WRITES) and not self._inside(arguments[0]):
            self.seen.append(f"{event} {arguments!r:.200}")

    @staticmethod
    def _writes(arguments: tuple[Any, ...]) -> bool:
        _, mode, flags = arguments
        if isinstance(mode, str):
            return any(letter in mode for letter in "wax+")
        return bool((flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))

    def _inside(self, path: Any) -> bool:
        return isinstance(path, int) or os.path.realpath(os.fsdecode(path)).startswith(str(self.room))


def work(pipe: Connection, folder: str) -> None:
    """Read damaged files for the process at the other end: it sends (reader, case), and gets an Outcome each time."""
    import warnings

    import torch

    from fire.readers import readers

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    all_readers = readers()
    for reader in (r for r in all_readers if not r.odd):  # read whole, so that what is imported late is there
        _fill(Path(folder), reader.files)
        reader.check(reader.read(Path(folder)))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libtiff speaks of every damage there
    guard = Guard()
    os.chdir(folder)
    limit = _status("VmSize") + LARGEST
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe.send([(reader.name, bool(reader.odd)) for reader in all_readers])
    while (task := pipe.recv()) is not None:
        number, case = task
        pipe.send(attempt(all_readers[number], case, Path(folder), guard))


def attempt(reader: Any, case: int, folder: Path, guard: Guard | None = None) -> Outcome:
    """Damage a file in the way that a number says, and have it read."""
    rng = random.Random(f"{reader.name} {case}")
    whole = reader.take(reader.files[reader.victim])
    damage, inside = ("as it is", whole) if reader.odd else damaged(whole, rng)
    try:
        content = reader.pack(inside)
    except (ValueError, KeyError, TypeError, RecursionError):  # too broken to be put together again
        content = inside
    _fill(folder, reader.files)
    (folder / reader.victim).write_bytes(content)
    _forget_peak()
    before, start, detail = _status("VmRSS"), process_time(), ""
    if guard:
        guard.room, guard.seen = str(folder.resolve()), []
    try:
        found = reader.read(folder)
        end = "read"
        try:
            reader.check(found)
        except Exception:
            end, detail = "read as nonsense", traceback.format_exc(limit=-3)
        del found
    except (ValueError, OSError, FloatingPointError) as error:
        told = str(error)
        named = any(Path(name).name in told for name in reader.files) or str(folder) in told
        clear = (named or bool(reader.odd)) and not isinstance(error, UnicodeDecodeError)
        end, detail = ("refused", told) if clear else ("refused without saying what", traceback.format_exc(limit=-3))
    except BaseException:
        end, detail = "crashed", traceback.format_exc(limit=-4)
    if guard:
        guard.room = None
        if guard.seen:
            end, detail = "did more than read", "; ".join(guard.seen)
    if reader.odd and end in ("read", "refused") and end != reader.odd:
        end, detail = f"{end}, but should be {reader.odd}", ""
    seconds, memory = process_time() - start, _status("VmHWM") - before
    if memory > LARGEST and end in ("read", "refused"):
        end = "swelled"
    return Outcome(reader.name, case, damage, end, seconds, memory, detail)


def _fill(folder: Path, files: dict[str, bytes]) -> None:
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _status(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


class Worker:
    """A process that reads damaged files; one that hangs or dies is replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.task: tuple[int, int] | None = None
        self.begin()

    def begin(self) -> None:
        """Start it, and wait until it is ready."""
        self.folder.mkdir(exist_ok=True)
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, str(self.folder)), daemon=True)
        self.process.start()
        other.close()
        self.names: list[str] = []
        self.odd: list[int] = []
        for number, (name, odd) in enumerate(self.pipe.recv()):
            self.names.append(name)
            self.odd += [number] * odd

    def give(self, reader: int, case: int) -> None:
        """Have one file read."""
        self.task, self.since = (reader, case), perf_counter()
        self.pipe.send(self.task)

    def take(self) -> Outcome | None:
        """What came out, if it has; a process that hangs or died gives an outcome, too."""
        assert self.task is not None
        name, seconds = self.names[self.task[0]], perf_counter() - self.since
        try:
            if self.pipe.poll(0.002):
                outcome: Outcome = self.pipe.recv()
                if outcome.seconds > SLOWEST and outcome.fine:
                    outcome.end = "took too long"
                return outcome
        except EOFError:
            self.process.join()
            lost = Outcome(name, self.task[1], "", f"process died ({self.process.exitcode})", seconds, 0)
            self.begin()
            return lost
        if seconds > 4 * SLOWEST:
            self.process.kill()
            self.process.join()
            self.begin()
            return Outcome(name, self.task[1], "", "hung", seconds, 0)
        return None

    def end(self) -> None:
        """Stop it."""
        self.pipe.send(None)
        self.process.join()


def run(seconds: float, seed: int, count: int = 10_000, workers: int = 2) -> Part:
    """So many damaged files, spread evenly over all readers."""
    tally, start = Tally(), perf_counter()
    with TemporaryDirectory() as made:
        crew = [Worker(Path(made) / str(i)) for i in range(workers)]
        once, n_readers = crew[0].odd, len(crew[0].names) - len(crew[0].odd)
        others = [number for number in range(len(crew[0].names)) if number not in once]
        rest = ((others[case % n_readers], seed * count + case) for case in range(count - len(once)))
        todo = chain(((number, 0) for number in once), rest)
        for outcome in _outcomes(crew, todo, perf_counter() + seconds):
            tally.add(outcome)
        for worker in crew:
            worker.end()
    return _part(tally, n_readers, count, perf_counter() - start)


def _outcomes(crew: list[Worker], todo: Iterator[tuple[int, int]], until: float) -> Iterator[Outcome]:
    busy = []
    for worker, first in zip(crew, todo, strict=False):
        worker.give(*first)
        busy.append(worker)
    while busy:
        for worker in list(busy):
            if (outcome := worker.take()) is None:
                continue
            yield outcome
            task = next(todo, None) if perf_counter() < until else None
            if task is None:
                busy.remove(worker)
            else:
                worker.give(*task)


def _part(tally: Tally, n_readers: int, wanted: int, seconds: float) -> Part:
    tried = tally.ends.total()
    slow, large = tally.slowest, tally.largest
    assert slow is not None
    assert large is not None
    return Part(
        "damaged inputs",
        f"{tried:,} of {wanted:,} over {n_readers} readers",
        ", ".join(f"{count:,} {end}" for end, count in tally.ends.most_common()),
        f"slowest {slow.seconds:.2f} s ({slow.reader}, {slow.damage}); "
        f"largest {large.memory / 2**20:.0f} MB ({large.reader}, {large.damage})",
        [f"{o.reader} [{o.case}] {o.damage}: {o.end}\n{o.detail}" for o in tally.wrong],
        seconds,
        [] if tried == wanted else [f"{wanted - tried:,} damaged inputs were not tried for lack of time"],
    )
