"""A library that the machine's own compiler builds: kept, built anew if damaged, done without if that fails."""

import ctypes
import multiprocessing
import os
import shutil
import subprocess
import sys

import pytest

from orbitpool.kernels import compiled

fresh = compiled.library.__wrapped__
needs_compiler = pytest.mark.skipif(compiled.library() is None, reason="needs a C compiler")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where libraries are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "orbitpool"


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """How often the compiler was called."""
    calls, script = tmp_path / "calls", tmp_path / "my cc"
    script.write_text(f'#!/bin/sh\necho >> {calls}\nexec {shutil.which("cc")} "$@"\n')
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


@needs_compiler
@pytest.mark.parametrize("damage", [b"", b"\x7fELF and no more"])
def test_what_is_damaged_is_built_anew(folder, compiler, damage):
    folder.mkdir(parents=True)
    kept = folder / f"native-{compiled._key([str(folder.parent.parent / 'my cc')])}.so"
    kept.write_bytes(damage)
    assert works(fresh())
    assert kept.stat().st_size > 1000
    built = compiler()
    assert works(fresh())
    assert compiler() == built


@needs_compiler
def test_what_others_left_is_not_run(folder, compiler, monkeypatch):
    assert works(fresh())
    built = compiler()
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert works(fresh())
    assert compiler() == 2 * built


@needs_compiler
def test_a_folder_that_cannot_be_written_to_is_done_without(folder):
    folder.parent.mkdir()
    folder.write_text("in the way")
    assert works(fresh())
    assert folder.read_text() == "in the way"


@pytest.mark.parametrize("compiler", ["false", "/no/such/compiler", "'not closed", "true"])
def test_without_a_compiler_there_is_none(folder, monkeypatch, compiler):
    monkeypatch.setenv("CC", compiler)
    assert fresh() is None
    assert not folder.exists()


def test_a_compiler_that_hangs_is_given_up(monkeypatch, tmp_path):
    script = tmp_path / "slow"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    monkeypatch.setattr(compiled, "PATIENCE", 0.2)
    assert fresh() is None


def test_without_a_home_there_is_none(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(compiled.Path, "home", homeless)
    assert fresh() is None


@pytest.mark.parametrize(("name", "value"), [("ORBITPOOL_NATIVE", "0"), ("platform", "darwin")])
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
    command = ["cc", *compiled.OPTIONS, *strict, "-c", str(compiled.SOURCE), "-o", str(tmp_path / "x.o")]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""
