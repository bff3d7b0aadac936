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
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def check_writable(folder: Path) -> None:
    """Raise OSError before hours of work, not after, if a folder cannot be made or written to; leaves nothing."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole(folder / ".orbitpool-trial") as file:
            file.write(b"0" * 4096)
        (folder / ".orbitpool-trial").unlink()
    except OSError as error:
        raise OSError(
            f"cannot write to {folder} ({error.strerror}); make room there or choose another folder"
        ) from error
    finally:
        for path in made:
            with suppress(OSError):
                path.rmdir()
