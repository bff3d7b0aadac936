"""A library in C that the machine's own compiler builds for its processor, once; it shares the threads of torch."""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import torch

from orbitpool.wholefile import whole

SOURCE = Path(__file__).with_name("native.c")
LANES = 16  # numbers of a vector
OPTIONS = ["-std=gnu11", "-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-fPIC"]
OPTIONS.append(f"-DLANES={LANES}")
if platform.machine() == "x86_64":
    OPTIONS.append("-mprefer-vector-width=512")  # compilers leave them alone for Intel, whose first ones were slow
PATIENCE = 30  # seconds for a compiler, which takes one
HINDRANCES = (OSError, subprocess.SubprocessError, ValueError, RuntimeError)  # no compiler, no space, $CC, no home
_lock = Lock()


def library() -> ctypes.CDLL | None:
    """What `native.c` becomes, or None where nothing builds it: then torch does the same, in more time."""
    with _lock:  # threads that ask at once get what one of them builds
        return _library()


def _forget() -> None:
    global _lock
    _lock = Lock()  # a forked process has not the thread that may have held the other one


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)


@cache
def _library() -> ctypes.CDLL | None:
    if not wanted():
        return None
    with suppress(*HINDRANCES):
        compiler = shlex.split(os.environ.get("CC") or "cc")
        kept = _folder() / f"{_key(compiler)}.so"
        with suppress(OSError):
            return _load(kept)
        return _built(compiler, kept)
    return None


def wanted() -> bool:
    """Whether there is to be a library, if there can be."""
    return sys.platform == "linux" and os.environ.get("ORBITPOOL_NATIVE", "").lower() not in ("0", "no", "false", "off")


def _load(kept: Path) -> ctypes.CDLL:
    """What was kept, if only its user could write there, and it is as it was written."""
    folder = kept.parent.lstat()
    if folder.st_uid != os.getuid() or folder.st_mode & 0o077:
        raise PermissionError(f"{kept.parent} is not its user's alone; chmod 700 makes it so")
    content = kept.read_bytes()
    if sha256(content[:-32]).digest() != content[-32:]:
        raise OSError(f"{kept} is damaged")
    return ctypes.CDLL(str(kept))


def _built(compiler: list[str], kept: Path) -> ctypes.CDLL:
    """The library, fresh from the compiler, and kept for the next program, if it may be."""
    with TemporaryDirectory(prefix="orbitpool-") as folder:
        built, parts = Path(folder) / "native.so", Path(folder) / "native.o"
        # Not linked to a library of threads: names that are left open are found in the one that torch has loaded.
        for step in ([*OPTIONS, "-c", str(SOURCE), "-o", str(parts)], ["-shared", str(parts), "-o", str(built)]):
            _run([*compiler, *step])
        content = built.read_bytes()
        with suppress(OSError):
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with whole(kept) as file:
                file.write(content + sha256(content).digest())
            return _load(kept)
        return ctypes.CDLL(str(built))


def _run(command: list[str]) -> None:
    """Have a compiler work, which Ctrl-C does not reach, and which is ended with all it has started if it hangs."""
    none = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=none, stdout=none, stderr=none, start_new_session=True) as compiler:  # noqa: S603
        try:
            status = compiler.wait(PATIENCE)
        except BaseException:
            os.killpg(compiler.pid, signal.SIGKILL)
            raise
    if status:
        raise subprocess.CalledProcessError(status, command)


def _folder() -> Path:
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (chosen if chosen.is_absolute() else Path.home() / ".cache") / "orbitpool" / "native"


def _key(compiler: list[str]) -> str:
    """Of what another library would come from: source, the compiler's name, and processors, who may share a home."""
    processor = platform.machine(), sorted(torch.cpu.get_capabilities().items())
    return sha256(repr((SOURCE.read_bytes(), OPTIONS, compiler, processor)).encode()).hexdigest()[:16]
