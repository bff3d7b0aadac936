"""What people and programs are told while a command works: on a terminal, in a file, in JSON, or not at all."""

import json
import os
import pty
import re
import subprocess
import sys
import threading

import pytest

from orbitpool import progress
from orbitpool.progress import Bars, Display, JsonLines, Lines, Results, Task


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = [1000.0]
    monkeypatch.setattr(progress, "perf_counter", lambda: now[0])

    def advance(seconds):
        now[0] += seconds

    return advance


def test_the_time_left_is_judged_by_the_work_done(clock):
    task = Task("work", 40, Display(), start=1000.0)
    assert (task.left, task.seconds_left) == ("", None)
    clock(100)
    task.move(10)
    assert task.left == "5 min left"
    task.move(30)
    assert task.left == "33 s left"
    clock(10)  # what has passed since goes off
    assert task.left == "23 s left"
    clock(100)
    assert task.left == "0 s left"


def test_what_was_done_before_the_clock_started_does_not_count(clock):
    task = Task("work", 100, Display(), before=90, start=1000.0)
    task.move(90)
    assert task.seconds_left is None
    clock(7)
    task.move(91)
    assert task.seconds_left == pytest.approx(63)


def test_steps_are_counted_and_may_be_of_different_size(clock, capsys):
    with progress.showing(Lines()), progress.task("bake", 10) as task:
        task.step("knead", of=2, work=1)
        clock(3)
        task.step("wait", of=2, work=9)
        assert (task.done, task.seconds_left) == (1, 27)
    assert task.done == 10
    assert capsys.readouterr() == ("", "[1/2] bake: knead\n[2/2, 27 s left] bake: wait\n")


def test_what_happens_often_is_told_now_and_then(clock, capsys):
    """First and last, then once a second, then less and less."""
    with progress.showing(Lines()):
        for _ in progress.counted(range(4000), "count", "things"):
            clock(0.1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "[1/4,000 things, 7 min left] count"
    assert lines[-1] == "[4,000/4,000 things, 0 s left] count"
    counts = [int(re.match(r"\[([\d,]+)/", line)[1].replace(",", "")) for line in lines]
    assert counts[1] - counts[0] == pytest.approx(10, abs=1)
    assert counts[-2] - counts[-3] > 100
    assert len(lines) < 100


def test_nothing_is_shown_unless_somebody_asks(capsys):
    progress.say("hello")
    assert list(progress.counted([1, 2], "count", "things")) == [1, 2]
    progress.result("two", count=2)
    assert not progress.is_shown()
    assert capsys.readouterr() == ("", "")


def test_quiet_shows_results_and_problems(capsys):
    with progress.showing(progress.choose(quiet=True)):
        assert progress.is_shown()
        progress.say("hello")
        progress.say("a file is damaged", problem=True)
        assert list(progress.counted([1, 2], "count", "things")) == [1, 2]
        progress.result("two", count=2)
    assert capsys.readouterr() == ("two\n", "a file is damaged\n")


@pytest.mark.parametrize(("quiet", "events"), [(False, 5), (True, 2)])
def test_json_is_one_object_a_line(quiet, events, capsys):
    with progress.showing(progress.choose(quiet, as_json=True)):
        progress.say("hello")
        progress.say("a file is damaged", problem=True)
        with progress.task("learn", 2) as task:
            for epoch in (1, 2):
                task.move(epoch)
                task.tell(f"epoch {epoch}/2", often=True, figures={"error": 0.5 if epoch == 1 else float("nan")})
        progress.result("two words", count=2)
    out, err = capsys.readouterr()
    assert err == ""
    found = [json.loads(line) for line in out.splitlines()]
    assert len(found) == events
    assert found[-1] == {"event": "result", "count": 2}
    assert {"event": "problem", "words": "a file is damaged"} in found
    steps = [each for each in found if each["event"] == "progress"]
    assert [(each["where"], each["fraction"], each["error"]) for each in steps] == (
        [] if quiet else [("epoch 1/2", 0.5, 0.5), ("epoch 2/2", 1.0, None)]
    )


def test_the_display_is_chosen_by_what_is_asked_for_and_where_it_goes(monkeypatch):
    for terminal, quiet, as_json, kind in (
        (False, False, False, Lines),
        (True, False, False, Bars),
        (True, True, False, Results),
        (True, False, True, JsonLines),
        (False, True, True, JsonLines),
    ):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        assert type(progress.choose(quiet, as_json)) is kind


@pytest.fixture(scope="session")
def fit(digit_array, tmp_path_factory):
    """A command that learns for a moment."""
    out = tmp_path_factory.mktemp("fit") / "model.safetensors"
    options = ("--components", "30", "--epochs", "3", "--transforms", "rotation", "--device", "cpu")
    return [sys.executable, "-m", "orbitpool", "fit", str(digit_array), "--out", str(out), *options]


def test_a_command_in_a_file(fit):
    """Plain lines on standard error, with what is done, how far it is and how long it will take."""
    run = subprocess.run(fit, capture_output=True, text=True, check=True)
    assert run.stdout.endswith("model.safetensors: 30 filters, 30 features\n")
    assert "\x1b" not in run.stderr
    assert "learning them whole, with binary units; 30 filters in 16 poses" in run.stderr
    assert re.search(r"^\[epoch 1/3, \d+ s left\] TIRBM: reconstruction error [\d.]+, ", run.stderr, re.M)
    assert re.search(r"^\[epoch 3/3, 0 s left\] TIRBM: ", run.stderr, re.M)


def test_a_command_on_a_terminal(fit):
    """Bars on a real (pseudo-)terminal; the result alone goes to standard output."""
    master, terminal = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    run = subprocess.Popen(fit, stdout=subprocess.PIPE, stderr=terminal, stdin=terminal, text=True, env=env)
    os.close(terminal)
    shown = b""
    while True:
        try:
            shown += (part := os.read(master, 4096))
        except OSError:  # the other end is closed
            break
        if not part:
            break
    assert run.communicate()[0].endswith("model.safetensors: 30 filters, 30 features\n")
    assert run.returncode == 0
    screen = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.decode())
    assert "━━━" in screen
    assert re.search(r"TIRBM .*epoch \d+/3, \d+ s left", screen)
    assert "\x1b[2K" in shown.decode()  # lines are drawn over


def test_a_quiet_command(fit):
    run = subprocess.run([*fit, "--quiet"], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("model.safetensors: 30 filters, 30 features\n")
    assert (run.stdout.count("\n"), run.stderr) == (1, "")


def test_a_command_for_programs(fit):
    run = subprocess.run([*fit, "--json"], capture_output=True, text=True, check=True)
    *before, last = [json.loads(line) for line in run.stdout.splitlines()]
    assert (last["event"], last["filters"], last["features"]) == ("result", 30, 30)
    assert run.stderr == ""
    learned = [each for each in before if each.get("task") == "TIRBM"]
    assert learned[-1]["where"] == "epoch 3/3"
    assert all(0 < each["fraction"] <= 1 and each["reconstruction_error"] < 1 for each in learned)


def test_numbers_that_json_does_not_know_are_none_however_deep(capsys):
    with progress.showing(JsonLines()):
        progress.result("words", values=[1.0, float("nan")], beside={"spread": float("inf")})
    assert json.loads(capsys.readouterr().out) == {"event": "result", "values": [1.0, None], "beside": {"spread": None}}


def test_threads_that_overlap_leave_no_display_behind():
    inside, leave = threading.Barrier(2), threading.Barrier(2)

    def work(first):
        with progress.asked_for():
            inside.wait()
            if not first:
                leave.wait()
        if first:
            leave.wait()

    threads = [threading.Thread(target=work, args=(first,)) for first in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not progress.is_shown()


def test_bars_close_in_any_order():
    bars = Bars()
    outer, inner = (Task(name, 1, bars) for name in ("outer", "inner"))
    bars.opened(outer)
    bars.opened(inner)
    bars.closed(outer)
    assert [own for own, _ in bars.rows] == [inner]
    bars.closed(inner)
    assert not bars.live.live.is_started
