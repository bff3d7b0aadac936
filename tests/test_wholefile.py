"""Files that are whole or not there, and locks that die with their process."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from orbitpool import together
from orbitpool.wholefile import InUse, alone, check_place, whole
from spreading import spread

HOLD = """
import sys, time
from orbitpool.wholefile import alone, whole
with alone(sys.argv[1]), whole(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that has a lock, and has begun to write."""
    run = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "x")], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "held\n"
    yield run
    run.kill()
    run.communicate()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_file_keeps_its_permissions_and_a_new_one_has_the_users(tmp_path):
    before = os.umask(0o027)
    try:
        with whole(tmp_path / "new"):
            pass
        assert mode(tmp_path / "new") == 0o640
        for kept in (0o600, 0o664, 0o444):
            (tmp_path / "new").chmod(kept)
            with whole(tmp_path / "new") as file:
                assert mode(next(tmp_path.glob(".new.*"))) == kept | 0o200  # nobody else reads what is being written
                file.write(b"other")
            assert mode(tmp_path / "new") == kept
            assert (tmp_path / "new").read_bytes() == b"other"
    finally:
        os.umask(before)


def test_a_lock_keeps_others_out_and_dies_with_its_process(holder, tmp_path):
    with (
        pytest.raises(InUse, match=r"another process is at work on .*x; wait until it has ended"),
        alone(tmp_path / "x"),
    ):
        pass
    with whole(tmp_path / "x") as file:  # what another process is writing stays
        file.write(b"ours")
    assert sum(name.endswith(".partial") for name in names(tmp_path)) == 1
    threading.Timer(0.3, os.kill, (holder.pid, signal.SIGKILL)).start()
    said, start = [], time.perf_counter()
    with alone(tmp_path / "x", lambda: said.append("waiting")):
        assert said == ["waiting"]
        assert time.perf_counter() - start > 0.2
    with whole(tmp_path / "x") as file:  # what a dead process has left goes
        file.write(b"new")
    assert names(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == b"new"


def test_threads_that_write_the_same_file_do_not_mix(tmp_path):
    def write(letter):
        for _ in range(50):
            with whole(tmp_path / "x") as file:
                for _ in range(20):
                    file.write(letter * 100)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = (tmp_path / "x").read_bytes()
    assert len(content) == 2000
    assert len(set(content)) == 1
    assert names(tmp_path) == ["x"]


def together_inside(path, waits, each=False):
    """Whether two processes got inside, how often they were told to wait, and whether they were there at one time."""
    said = []
    try:
        with alone(path, partial(said.append, "waiting") if waits else None, each):
            met = path.with_name("met").exists()
            path.with_name("met").touch()
            if not each:
                together.anywhere(True)  # nobody comes here before the other is inside
            time.sleep(0.2 * each)
            path.with_name("met").unlink(missing_ok=True)
            return "inside", len(said), met
    except InUse as error:
        return str(error), len(said), False


def test_of_processes_that_work_together_the_first_asks_for_all(tmp_path):
    assert [end for end, *_ in spread(together_inside, 2, tmp_path / "y", False)] == ["inside", "inside"]
    assert names(tmp_path) == []


def test_processes_that_work_together_are_kept_out_or_wait_together(holder, tmp_path):
    assert all("another process is at work" in end for end, *_ in spread(together_inside, 2, tmp_path / "x", False))
    threading.Timer(3, os.kill, (holder.pid, signal.SIGKILL)).start()
    assert [(end, told) for end, told, _ in spread(together_inside, 2, tmp_path / "x", True)] == [("inside", 1)] * 2


def test_processes_that_ask_for_themselves_go_one_after_the_other(tmp_path):
    results = spread(together_inside, 2, tmp_path / "x", True, True)
    assert [(end, met) for end, _, met in results] == [("inside", False)] * 2
    assert names(tmp_path) == []


def failing(path):
    try:
        with alone(path):
            return None
    except OSError as error:
        return str(error)


def test_all_fail_if_the_first_cannot_lock(tmp_path):
    first, second = spread(failing, 2, tmp_path / "nowhere" / "x")
    assert "No such file" in first
    assert "first process failed to lock" in second


def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, said in (("pipe", "is a device or pipe"), ("folder", "is a folder")):
        for write in (check_place, lambda path: whole(path).__enter__()):
            with pytest.raises(OSError, match=f"{name} {said}; give the name of a file"):
                write(tmp_path / name)
    assert (tmp_path / "pipe").is_fifo()
    assert names(tmp_path) == ["folder", "pipe"]


def test_odd_names_are_only_names(tmp_path):
    for name in ("[x]*?", "a b", "ü"):
        with whole(tmp_path / name) as file:
            file.write(b"1")
        check_place(tmp_path / name)
    assert len(names(tmp_path)) == 3


def test_a_link_stays_one(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    with whole(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there/file").read_bytes() == b"new"
