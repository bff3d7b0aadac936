"""Files that are there whole or not at all: the one way in which anything is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to that takes its name when it is complete, and leaves nothing behind if that fails."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    _clear(path)
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a full disk does not say which
        raise


def _clear(path: Path) -> None:
    """Remove what processes that were killed have left of this file."""
    for left in path.parent.glob(f".{path.name}.*.partial"):
        with suppress(ValueError, PermissionError):
            try:
                os.kill(int(left.suffixes[-2][1:]), 0)
            except ProcessLookupError:
                left.unlink(missing_ok=True)


def check_place(path: Path) -> None:
    """Raise OSError before hours of work, not after, if a file of that name cannot be written."""
    if path.is_dir():
        raise OSError(f"{path} is a folder; give the name of a file")
    check_writable(path.absolute().parent)


def check_writable(folder: Path) -> None:
    """Make a folder if it is not there, and raise OSError before hours of work, not after, if that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial = folder / f".{os.getpid()}.trial"
        with whole(trial) as file:
            file.write(b"0" * 4096)
        trial.unlink()
    except OSError as error:
        raise OSError(
            f"cannot write to {folder} ({error.strerror}); make room there or choose another folder"
        ) from error
