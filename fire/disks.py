"""Disks that fill up, and folders that turn read-only while a command works."""

import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from time import perf_counter

from fire.jobs import Job, prepared, unfinished
from fire.summary import Part

TRIES = 4  # to be faster than a command
SIZES = (90, 8, 600)  # kilobytes of a disk: too few for anything, for a checkpoint, for the end


@contextmanager
def _disk(folder: Path, kilobytes: int) -> Iterator[Path | None]:
    """A small disk of its own in a folder; None if that is not permitted."""
    folder.mkdir(exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def run(seconds: float, seed: int) -> Part:
    """Every command on disks of every size, then with room enough; and with a folder that turns read-only."""
    start, part = perf_counter(), Part("disks", "", "", "", [], 0.0)
    home, jobs = prepared()

    def small(task: tuple[int, Job]) -> int | None:
        size, job = task
        if perf_counter() - start > seconds:
            part.left_out.append(f"{job.name} on a disk of {size} kB, for lack of time")
            return None
        with _disk(home / f"disk-{size}-{job.name}", size) as disk:
            if disk is None:
                part.not_here.append(f"{job.name} on a disk of {size} kB: mounting a tmpfs is not permitted here")
                return None
            code, problems = _on(job, home, disk)
            part.wrong += [f"{job.name} on {size} kB: {problem}" for problem in problems]
            return code

    with ThreadPoolExecutor(2) as crew:
        codes = [code for code in crew.map(small, product(SIZES, jobs)) if code is not None]
        list(crew.map(lambda job: _read_only(job, home, part), jobs))
    full = sum(map(bool, codes))
    part.tried = f"{len(codes)} runs on a tmpfs of {min(SIZES)} to {max(SIZES)} kB, {len(jobs)} that turn read-only"
    part.ended = f"{full} found the disk full, said so and went on when there was room; {len(codes) - full} had enough"
    part.seconds = perf_counter() - start
    return part


def _on(job: Job, home: Path, disk: Path) -> tuple[int, list[str]]:
    """How a job ends on a small disk, and what is wrong with that, also once there is room."""
    code, said = job.run(home, disk)
    problems = _problems(job, disk, code, said)
    if code:
        _make_room(disk)
        again, said = job.run(home, disk)
        if again or job.outcome(disk / job.out) != job.expected:
            problems.append(f"does not go on when there is room: {said[-500:]}")
    return code, problems


def _make_room(disk: Path) -> None:
    _mount("-o", "remount,size=64m", disk)


def _problems(job: Job, folder: Path, code: int, said: str) -> list[str]:
    problems = []
    if "Traceback" in said:
        problems.append(f"a traceback: {said[-800:]}")
    if code and not any(words in said for words in ("No space left", "make room", "Read-only")):
        problems.append(f"no word on what is wrong: {said[-300:]}")
    if code == 0 and job.outcome(folder / job.out) != job.expected:
        problems.append("another result")
    if left := unfinished(folder):
        problems.append(f"left {', '.join(left)}")
    return problems


def _freeze(disk: Path) -> None:
    """Put a read-only copy in a disk's place: a disk with open files, such as locks, cannot be made so itself."""
    copy = disk.with_name(f"{disk.name}-copy")
    copy.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "tmpfs", copy)
    with suppress(shutil.Error):  # what went away meanwhile
        shutil.copytree(disk, copy, dirs_exist_ok=True)
    _mount("-o", "remount,ro", copy)
    _mount("--bind", copy, disk)
    subprocess.run(["umount", "-l", str(copy)], check=True)


def _mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


def _read_only(job: Job, home: Path, part: Part) -> None:
    """A disk that turns read-only while a command writes to it, tried again if the command was faster."""
    name = f"{job.name} in a folder that turns read-only"
    for _ in range(TRIES):
        with _disk(home / f"frozen-{job.name}", 65_536) as disk:
            if disk is None:
                part.not_here.append(f"{name}: mounting is not permitted here")
                return
            process = job.start(home, disk, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert process.stdout is not None
            process.stdout.readline()
            _freeze(disk)
            _, said = process.communicate()
            subprocess.run(["umount", "-l", str(disk)], check=True)  # to what lies below
            ended = process.returncode == 0 and job.outcome(disk / job.out) == job.expected
        if not ended:
            if process.returncode == 0 or "Read-only" not in said or "Traceback" in said:
                part.wrong.append(f"{name}: {process.returncode} {said[-500:]}")
            return
    part.left_out.append(f"{name}: {TRIES} times it had ended before")
