"""Disks that fill up, and folders that turn read-only while a command works."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from time import perf_counter

from fire.jobs import Job, prepared, unfinished
from fire.summary import Part

SIZES = (90, 8, 600)  # kilobytes of a disk: too few for anything, for a checkpoint, for the end


@contextmanager
def _disk(folder: Path, kilobytes: int) -> Iterator[bool]:
    """A small disk of its own in a folder; whether that was permitted."""
    folder.mkdir(exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def run(seconds: float, seed: int) -> Part:
    """Every command on disks of every size, then with room enough; and with a folder that turns read-only."""
    start, wrong, left_out, full, ended = perf_counter(), [], [], 0, 0
    with prepared() as (home, jobs):
        for size, job in product(SIZES, jobs):
            if perf_counter() - start > seconds:
                left_out.append(f"{job.name} on a disk of {size} kB, for lack of time")
                continue
            with _disk(home / "disk", size) as there:
                if not there:
                    left_out.append(f"{job.name} on a disk of {size} kB: mounting a tmpfs is not permitted here")
                    continue
                code, problems = _on(job, home)
                full, ended = full + (code != 0), ended + (code == 0)
                wrong += [f"{job.name} on {size} kB: {problem}" for problem in problems]
        wrong += _read_only(jobs, home, left_out)
    return Part(
        "disks",
        f"{full + ended} runs on a tmpfs of {min(SIZES)} to {max(SIZES)} kB, {len(jobs)} in one that turns read-only",
        f"{full} found the disk full, said so and went on when there was room; {ended} had room enough",
        "",
        wrong,
        perf_counter() - start,
        left_out,
    )


def _on(job: Job, home: Path) -> tuple[int, list[str]]:
    """How a job ends on a small disk, and what is wrong with that, also once there is room."""
    disk = home / "disk"
    code, said = job.run(home, disk)
    problems = _problems(job, disk, code, said)
    if code:
        _make_room(disk)
        again, said = job.run(home, disk)
        if again or job.outcome(disk / job.out) != job.expected:
            problems.append(f"does not go on when there is room: {said[-500:]}")
    return code, problems


def _make_room(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)


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


def _freeze(disk: Path) -> bool:
    """Whether a disk is read-only now; it cannot be while a file is open for writing, so try more than once."""
    command = ["mount", "-o", "remount,ro", str(disk)]
    return any(subprocess.run(command, capture_output=True, check=False).returncode == 0 for _ in range(200))


def _read_only(jobs: Sequence[Job], home: Path, left_out: list[str]) -> list[str]:
    """A disk that turns read-only while a command writes to it."""
    wrong = []
    for job in jobs:
        with _disk(home / "disk", 65_536) as there:
            if not there:
                left_out.append(f"{job.name} in a folder that turns read-only: mounting is not permitted here")
                continue
            process = job.start(home, home / "disk", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert process.stdout is not None
            process.stdout.readline()
            frozen = _freeze(home / "disk")
            _, said = process.communicate()
            if not frozen:
                left_out.append(f"{job.name} in a folder that turns read-only: it was busy all the time")
            elif process.returncode == 0 and job.outcome(home / "disk" / job.out) == job.expected:
                left_out.append(f"{job.name} in a folder that turns read-only: it had ended before")
            elif process.returncode == 0 or "Read-only" not in said or "Traceback" in said:
                wrong.append(f"{job.name} in a folder that turned read-only: {process.returncode} {said[-500:]}")
    return wrong
