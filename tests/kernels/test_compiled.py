"""A library that the machine's own compiler builds: kept, built anew if damaged, done without if that fails."""

import ctypes
import multiprocessing
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier

import pytest
import torch

from compilers import CALLED, COMPILER, needs_compiler
from orbitpool.kernels import compiled, native

fresh = compiled._library.__wrapped__


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where libraries are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "orbitpool" / "native"


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """How often the compiler was called."""
    calls, script = tmp_path / "calls", tmp_path / "my cc"
    script.write_text(f'#!/bin/sh\necho >> {calls}\nexec {COMPILER} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", f"'{script}'")
    return lambda: len(calls.read_text().splitlines()) if calls.exists() else 0


def works(loaded):
    """Whether there is a library with all that is asked of it."""
    return isinstance(loaded, ctypes.CDLL) and hasattr(loaded, "infer")


@needs_compiler
def test_what_was_built_is_kept(folder, compiler):
    assert works(fresh())
    assert [path.suffix for path in folder.iterdir()] == [".so"]
    built = compiler()
    assert works(fresh())
    assert compiler() == built > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_need_not_wait_for_a_thread_that_it_has_not():
    with compiled._lock:
        child = os.fork()
        if not child:
            os._exit(0 if compiled._lock.acquire(timeout=10) else 1)
        _, status = os.waitpid(child, 0)
    assert status == 0


@needs_compiler
def test_threads_that_ask_at_once_call_one_compiler(compiler, monkeypatch):
    together = Barrier(4)
    monkeypatch.setattr(compiled, "_library", cache(fresh))

    def ask(_):
        together.wait()
        return compiled.library()

    with ThreadPoolExecutor(4) as crew:
        first, *others = crew.map(ask, range(4))
    assert works(first)
    assert all(other is first for other in others)
    assert compiler() == 2  # to compile and to link


@needs_compiler
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: bytes([*whole[:-40], whole[-40] ^ 1, *whole[-39:]]),
    ],
    ids=["empty", "cut", "changed"],
)
def test_what_is_damaged_is_built_anew(folder, compiler, damage):
    assert works(fresh())
    (kept,) = folder.iterdir()
    whole, built = kept.read_bytes(), compiler()
    kept.unlink()  # the file that is in use stays as it is
    kept.write_bytes(damage(whole))
    assert works(fresh())
    assert kept.read_bytes() == whole
    assert compiler() == 2 * built


@needs_compiler
def test_what_others_left_is_not_run(folder, compiler, monkeypatch):
    assert works(fresh())
    built = compiler()
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert works(fresh())
    assert compiler() == 2 * built


@needs_compiler
@pytest.mark.parametrize("mode", [0o770, 0o755, 0o702])
def test_where_others_could_write_nothing_is_run(folder, compiler, mode):
    assert works(fresh())
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(mode)
    built = compiler()
    assert works(fresh())
    assert compiler() == 2 * built


@needs_compiler
def test_a_folder_that_is_relative_is_not_meant(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert works(fresh())
    assert list(tmp_path.iterdir()) == [tmp_path / ".cache"]


def test_another_source_compiler_or_processor_is_another_library(tmp_path, monkeypatch):
    keys = [compiled._key(["cc"]), compiled._key(["cc", "-m32"])]
    (tmp_path / "native.c").write_text("int other;")
    monkeypatch.setattr(compiled, "SOURCE", tmp_path / "native.c")
    keys.append(compiled._key(["cc"]))
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_f": False})
    keys.append(compiled._key(["cc"]))
    monkeypatch.setattr(compiled, "OPTIONS", ["-O1"])
    keys.append(compiled._key(["cc"]))
    assert len(set(keys)) == 5


@needs_compiler
def test_a_folder_that_cannot_be_written_to_is_done_without(folder):
    folder.parent.mkdir(parents=True)
    folder.write_text("in the way")
    assert works(fresh())
    assert folder.read_text() == "in the way"


@pytest.mark.parametrize("compiler", ["false", "/no/such/compiler", "'not closed", "true"])
def test_without_a_compiler_there_is_none(folder, monkeypatch, compiler):
    monkeypatch.setenv("CC", compiler)
    assert fresh() is None
    assert not folder.exists()


def test_a_compiler_that_hangs_is_given_up_with_all_it_started(monkeypatch, tmp_path):
    script, left = tmp_path / "slow", tmp_path / "left"
    script.write_text(f"#!/bin/sh\n(sleep 1; touch {left}) &\nsleep 60\n")
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    monkeypatch.setattr(compiled, "PATIENCE", 0.2)
    assert fresh() is None
    time.sleep(1.5)
    assert not left.exists()


@needs_compiler
def test_ctrl_c_does_not_reach_the_compiler(folder, tmp_path, monkeypatch):
    """A terminal tells all of a program's process group; here the compiler does, and goes on."""
    script, program = tmp_path / "interrupting", tmp_path / "program.py"
    script.write_text(f'#!/bin/sh\nkill -INT -$PROGRAM\nsleep 0.2\nexec {COMPILER} "$@"\n')
    script.chmod(0o755)
    program.write_text(
        "import os, signal\n"
        "from orbitpool.kernels.compiled import library\n"
        "os.environ['PROGRAM'], told = str(os.getpgrp()), []\n"
        "signal.signal(signal.SIGINT, lambda *_: told.append(1))\n"
        "print(library() is not None, bool(told))\n"
    )
    monkeypatch.setenv("CC", str(script))
    run = subprocess.run([sys.executable, program], capture_output=True, text=True, start_new_session=True, check=True)
    assert run.stdout == "True True\n"


def test_a_library_without_what_is_asked_of_it_is_none(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: ctypes.CDLL(None))
    assert native._functions.__wrapped__() == {}


def test_without_a_home_there_is_none(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(compiled.Path, "home", homeless)
    assert fresh() is None


@pytest.mark.parametrize(
    ("name", "value"), [("ORBITPOOL_NATIVE", "0"), ("ORBITPOOL_NATIVE", "False"), ("platform", "darwin")]
)
def test_who_wants_none_gets_none(folder, monkeypatch, name, value):
    monkeypatch.setattr(sys, name, value) if name == "platform" else monkeypatch.setenv(name, value)
    assert fresh() is None
    assert not folder.exists()


def _build(_):
    return works(fresh())


@needs_compiler
def test_several_programs_may_build_at_once(folder):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert pool.map(_build, range(8)) == [True] * 8
    assert [path.suffix for path in folder.iterdir()] == [".so"]


@needs_compiler
def test_the_compiler_warns_of_nothing(tmp_path):
    strict = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    command = [CALLED, *compiled.OPTIONS, *strict, "-c", str(compiled.SOURCE), "-o", str(tmp_path / "x.o")]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""
