"""A library in C that the machine's own compiler builds for its processor, once; it shares the threads of torch."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from orbitpool.wholefile import whole

SOURCE = Path(__file__).with_name("native.c")
OPTIONS = ["-std=gnu11", "-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-fPIC"]
PATIENCE = 60  # seconds for a compiler, which takes one
HINDRANCES = (OSError, subprocess.SubprocessError, ValueError, RuntimeError)  # no compiler, no space, $CC, no home


@cache
def library() -> ctypes.CDLL | None:
    """What `native.c` becomes, or None where nothing builds it: then torch does the same, in more time."""
    if sys.platform != "linux" or os.environ.get("ORBITPOOL_NATIVE") == "0":
        return None
    with suppress(*HINDRANCES):
        compiler = shlex.split(os.environ.get("CC") or "cc")
        kept = _folder() / f"native-{_key(compiler)}.so"
        with suppress(OSError):  # not there yet, or damaged
            if kept.stat().st_uid == os.getuid():  # what others have left there is not run
                return ctypes.CDLL(str(kept))
        return _built(compiler, kept)
    return None


def _built(compiler: list[str], kept: Path) -> ctypes.CDLL:
    """The library, fresh from the compiler, and kept for the next program, if it may be."""
    with TemporaryDirectory() as folder:
        built, parts = Path(folder) / "native.so", Path(folder) / "native.o"
        # Not linked to a library of threads: names that are left open are found in the one that torch has loaded.
        for step in ([*OPTIONS, "-c", str(SOURCE), "-o", str(parts)], ["-shared", str(parts), "-o", str(built)]):
            subprocess.run([*compiler, *step], check=True, capture_output=True, timeout=PATIENCE)  # noqa: S603
        loaded = ctypes.CDLL(str(built))
        with suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            with whole(kept) as file:
                file.write(built.read_bytes())
    return loaded


def _folder() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME")
    return (Path(chosen) if chosen else Path.home() / ".cache") / "orbitpool"


def _key(compiler: list[str]) -> str:
    """Of what another library would come from: source, compiler, and processors, who may share a home."""
    processor = platform.machine(), sorted(torch.cpu.get_capabilities().items())
    return hashlib.sha256(repr((SOURCE.read_bytes(), OPTIONS, compiler, processor)).encode()).hexdigest()[:16]
