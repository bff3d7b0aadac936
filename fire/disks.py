"""Disks that fill up, and folders that turn read-only while a command works."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from fire.kills import JOBS, Job, _environment, _names, _undisturbed, write_data
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
    with TemporaryDirectory() as made:
        home = Path(made)
        write_data(home)
        for job in JOBS:
            _undisturbed(job, home)
            if job.name == "fit":
                (home / "model").write_bytes((home / "whole-fit" / "model").read_bytes())
        for size in SIZES:
            for job in JOBS:
                if perf_counter() - start > seconds:
                    left_out.append(f"{job.name} on a disk of {size} kB, for lack of time")
                    continue
                with _disk(home / "disk", size) as there:
                    if not there:
                        left_out.append(f"{job.name} on a disk of {size} kB: mounting a tmpfs is not permitted here")
                        continue
                    code, said = _run(job, home, home / "disk")
                    full, ended = full + (code != 0), ended + (code == 0)
                    wrong += [f"{job.name} on {size} kB: {p}" for p in _problems(job, home / "disk", code, said)]
                    if code:
                        _make_room(home / "disk")
                        code, said = _run(job, home, home / "disk")
                        if code or job.outcome(home / "disk" / job.out) != job.expected:
                            wrong.append(f"{job.name} on {size} kB does not go on when there is room: {said[-500:]}")
        wrong += _read_only(home, left_out)
    return Part(
        "disks",
        f"{full + ended} runs on a tmpfs of {min(SIZES)} to {max(SIZES)} kB, 3 in a folder that turns read-only",
        f"{full} found the disk full, said so and went on when there was room; {ended} had room enough",
        "",
        wrong,
        perf_counter() - start,
        left_out,
    )


def _run(job: Job, home: Path, folder: Path) -> tuple[int, str]:
    done = subprocess.run(job.command(home, folder), env=_environment(), capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


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
    if left := [name for name in _names(folder) if name.endswith((".partial", ".lock"))]:
        problems.append(f"left {', '.join(left)}")
    return problems


def _freeze(disk: Path) -> bool:
    """Whether a disk is read-only now; it cannot be while a file is open for writing, so try more than once."""
    command = ["mount", "-o", "remount,ro", str(disk)]
    return any(subprocess.run(command, capture_output=True, check=False).returncode == 0 for _ in range(200))


def _read_only(home: Path, left_out: list[str]) -> list[str]:
    """A disk that turns read-only while a command writes to it."""
    wrong = []
    for job in JOBS:
        with _disk(home / "disk", 65_536) as there:
            if not there:
                left_out.append(f"{job.name} in a folder that turns read-only: mounting is not permitted here")
                continue
            process = subprocess.Popen(
                job.command(home, home / "disk"),
                env=_environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert process.stdout is not None
            process.stdout.readline()
            frozen = _freeze(home / "disk")
            _, said = process.communicate()
            if not frozen:
                left_out.append(f"{job.name} in a folder that turns read-only: it was busy all the time")
            elif process.returncode == 0 or "Read-only" not in said or "Traceback" in said:
                wrong.append(f"{job.name} in a folder that turned read-only: {process.returncode} {said[-500:]}")
    return wrong
