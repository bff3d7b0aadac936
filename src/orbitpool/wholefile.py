"""Files that are there whole or not at all, the one way in which anything is written; and who may write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from secrets import token_hex
from stat import S_IMODE, S_IWUSR
from tempfile import TemporaryFile
from time import sleep
from typing import IO

try:
    import fcntl
except ImportError:  # a system without it has no locks, and all else works
    fcntl = None  # type: ignore[assignment]

AGAIN = 0.05  # seconds between two looks at whether somebody has ended


class InUse(OSError):
    """What another process is at work on."""


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to that takes its name when it is complete, and leaves nothing behind if that fails.

    It may be read and written by whom the file may whose place it takes.
    """
    path = Path(os.path.realpath(path))  # a link stays one
    _check_plain(path)
    _clear(path)
    mode = S_IMODE(path.stat().st_mode) if path.exists() else None
    partial, file = _begin(path)
    try:
        with file:
            _allow(partial, mode, S_IWUSR)  # so that what a killed process leaves can be cleared away
            yield file
            file.flush()
            os.fsync(file.fileno())
            _allow(partial, mode)
            os.replace(partial, path)
            _settle(path.parent)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a full disk does not say which
        raise


def _allow(path: Path, mode: int | None, more: int = 0) -> None:
    """Set the mode of a file, if one is given and the disk has such things."""
    if mode is not None:
        with suppress(PermissionError):
            path.chmod(mode | more)


def _settle(folder: Path) -> None:
    """Have the names of a folder's files outlive a power failure, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file that is there whole or not at all; of processes that work together the first writes it for all."""
    from orbitpool import together  # not before it is needed, because torch takes long to import

    def write(path: str | os.PathLike[str]) -> None:
        with whole(path) as file:
            file.write(content)

    together.once(write)(path)


def _begin(path: Path) -> tuple[Path, IO[bytes]]:
    """An empty file beside another, locked, which says that it is not what a killed process has left."""
    while True:
        partial = path.with_name(f".{path.name}.{token_hex(4)}.partial")
        file = partial.open("xb")
        ours = fcntl is None or _may(file.fileno())
        if ours and _same(file.fileno(), partial):  # else somebody clears it away, who came before it was locked
            return partial, file
        file.close()


def _clear(path: Path) -> None:
    """Remove what processes that were killed have left of this file."""
    for left in path.parent.glob(f".{escape(path.name)}.*.partial"):
        with suppress(OSError), left.open("r+b") as file:
            if fcntl and _lock(file.fileno()):
                left.unlink()


@contextmanager
def alone(
    path: str | os.PathLike[str], waiting: Callable[[], None] | None = None, each: bool = False
) -> Iterator[None]:
    """No other process that asks for the same path is inside at the same time.

    A file `.NAME.lock` beside the path is locked, and removed at the end. The system lets go of it when a process
    dies, however that happens, so that what a killed one leaves behind is in nobody's way. If another process is
    inside, InUse is raised, or `waiting` is called and the other one waited for. Of processes that work together the
    first asks for all, and they go inside together; if `each` asks for itself, they go one after the other, and not
    all of them have to come. Where files cannot be locked, nobody is kept out.
    """
    path = Path(path)
    if fcntl is None:
        yield
        return
    file = _held(path, waiting, each)
    try:
        yield
    finally:
        if file is not None:
            with suppress(OSError):
                _lock_of(path).unlink()
            os.close(file)


def _held(path: Path, waiting: Callable[[], None] | None, each: bool) -> int | None:
    """The lock of a path, once nobody else has it; None where the first of our processes has it for all."""
    told = False
    while True:
        file, ours = _asked(path, each)
        if ours:
            return file
        if waiting is None:
            raise InUse(f"another process is at work on {path}; wait until it has ended, or give another name")
        if not told:
            waiting()
            told = True
        sleep(AGAIN)  # rather than wait in the system: others who wait for the first may not do so for hours


def _asked(path: Path, each: bool) -> tuple[int | None, bool]:
    """The lock of a path, if nobody else has it, and whether it is ours."""
    if each:
        file = _taken(path)
        return file, file is not None
    from orbitpool import together  # as above

    held: list[int | None] = [None]

    def lock(path: Path) -> None:
        held[0] = _taken(path)

    together.once(lock)(path)
    return held[0], bool(together.agreed(int(held[0] is not None)))


def _taken(path: Path) -> int | None:
    """The lock of a path, or None if another process has it."""
    lock = _lock_of(path)
    while True:
        file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        free = _may(file)
        if free and _same(file, lock):  # else the one who had it has removed it, and somebody may hold a new one
            return file
        os.close(file)
        if not free:
            return None


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _may(file: int) -> bool:
    """Whether nobody else has a lock; also where there are no locks."""
    try:
        return _lock(file)
    except OSError:
        return True


def _lock(file: int) -> bool:
    """Whether a file is ours alone now; raises OSError where files cannot be locked."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same(file: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(file)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def check_place(path: Path) -> None:
    """Raise OSError before hours of work, not after, if a file of that name cannot be written."""
    _check_plain(path)
    check_writable(path.absolute().parent)


def _check_plain(path: Path) -> None:
    """Raise OSError if something other than a file would be replaced: a folder, or a device such as /dev/null."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is a {'folder' if path.is_dir() else 'device or pipe'}; give the name of a file")


def check_writable(folder: Path) -> None:
    """Make a folder if it is not there, and raise OSError before hours of work, not after, if that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:  # without a name, so that nothing stays if the process is killed
            file.write(b"0" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(
            f"cannot write to {folder} ({error.strerror}); make room there or choose another folder"
        ) from error
