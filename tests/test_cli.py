"""The command line: what it prints, and what it says when something is wrong."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import orbitpool
from orbitpool.cli import app
from orbitpool.report import Page, Picture, Section, write


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "orbitpool", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_rows_are_run_listed_and_reported(tiny, tmp_path):
    """The whole way, with the results of one command in the next."""
    results, out = tmp_path / "results", tmp_path / "report"
    rows = ("--rows", "rot", "--quick", "--device", "cpu", "--data-dir", str(tiny), "--results", str(results))
    run = CliRunner().invoke(app, ["reproduce", "table1", *rows])
    assert run.exit_code == 0
    assert run.stdout.count("(1 value, stand-in data)") == 3
    assert re.search(r"\[2/3, \d+ s left\] table1: rot TIRBM, seed 0: learn", run.stderr)
    listed = command("list", "--results", str(results)).stdout
    assert "  rot TIRBM           paper 4.2         not run yet\n" in listed
    assert "  rot TIRBM 32 turns  not in the paper  not run yet\n" in listed
    assert listed.count("quick    ") == 3
    assert command("report", str(results), "--out", str(out)).stdout == f"{out / 'index.html'}\n"
    ours = json.loads((results / "table1-rot-tirbm-quick.json").read_text())["mean"]
    for page in ("index.html", "index.md"):
        text = (out / page).read_text()
        assert "(quick: in small)" in text
        assert f"{ours:.1f}" in text


def test_help_and_version_are_instant():
    """Nothing heavy is imported before a command is chosen."""
    code = "import sys, orbitpool.cli; print('torch' in sys.modules, 'sklearn' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\n"
    assert "reproduce" in command("--help").stdout
    assert command("--version").stdout == f"orbitpool {orbitpool.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("reproduce", "table9"), "there is no 'table9'; choose one of table1"),
        (("reproduce", "table1", "--rows", "rot,tilt"), "table1 has no row 'tilt'"),
        (("reproduce", "figure4", "--rows", "rot"), "figure4 has neither rows nor seeds"),
        (("reproduce", "table1", "--data-dir", "{tmp}/nowhere"), "/nowhere is not there; create it"),
        (("reproduce", "table1", "--rows", "rot", "--device", "gpu"), "device is 'gpu'"),
        (("reproduce", "table1", "--rows", "rot", "--data-dir", "{tmp}/empty"), "train-images-idx3-ubyte"),
        (("reproduce", "table1", "--rows", "rot", "--data-dir", "{tmp}/broken"), "is damaged"),
        (("reproduce", "figure3", "--data-dir", "{tmp}/empty"), "train-images-idx3-ubyte"),
    ],
)
def test_what_goes_wrong_is_one_sentence(arguments, says, tmp_path, small_mnist):
    (tmp_path / "empty").mkdir()
    shutil.copytree(small_mnist, tmp_path / "broken")
    images = tmp_path / "broken" / "mnist" / "train-images-idx3-ubyte.gz"
    images.write_bytes(images.read_bytes()[:1000])
    arguments = [a.format(tmp=tmp_path) for a in arguments]
    run = command(
        *arguments,
        "--results",
        str(tmp_path / "results"),
        https_proxy="http://127.0.0.1:9",
        HTTPS_PROXY="http://127.0.0.1:9",
    )
    assert run.returncode == 1
    assert says in run.stderr
    assert "Traceback" not in run.stderr
    assert list(tmp_path.glob("results/*")) == []
    assert list((tmp_path / "empty").iterdir()) == []


def test_an_interrupt_ends_at_once_and_says_so(tiny, tmp_path):
    """Ctrl-C in the middle of learning, from outside."""
    arguments = ("reproduce", "figure4", "--device", "cpu", "--data-dir", str(tiny), "--results", str(tmp_path / "r"))
    run = subprocess.Popen([sys.executable, "-m", "orbitpool", *arguments], stderr=subprocess.PIPE, text=True)
    assert "filters of natural images: RBM" in run.stderr.readline()
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "orbitpool: interrupted; rows that are finished are kept" in said
    assert "Traceback" not in said
    assert list((tmp_path / "r").iterdir()) == []


def test_results_that_are_none_are_named(tmp_path):
    assert "holds no results; make some with: orbitpool reproduce" in command("report", str(tmp_path)).stderr
    (tmp_path / "table1-rot-rbm.json").write_text("{")
    run = command("report", str(tmp_path), "--out", str(tmp_path / "out"))
    assert run.returncode == 1
    assert "table1-rot-rbm.json is not a result of orbitpool" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "content",
    [
        {"table": "table1", "row": "rot RBM", "runs": 5, "values": "x", "quick": True},
        {"table": "table1", "row": "rot RBM", "quick": False, "runs": []},
        {"figure": "figure4", "quick": False, "pictures": []},
        {
            "figure": "invariance",
            "quick": False,
            "pictures": {},
            "similarity": {},
            "history": {},
            "orbits": {},
            "samples": [],
        },
        [],
    ],
)
def test_results_that_lack_something_are_named(content, tmp_path, small_mnist):
    (tmp_path / "table1-rot-rbm.json").write_text(json.dumps(content))
    for arguments in (("report", str(tmp_path)), ("list", "--results", str(tmp_path))):
        run = command(*arguments)
        assert run.returncode == 1
        assert "table1-rot-rbm.json is not a result of orbitpool" in run.stderr
        assert "Traceback" not in run.stderr


@pytest.fixture
def full_disk(monkeypatch):
    """Files cannot grow beyond 20 kB, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_nothing_half_written(full_disk, tmp_path):
    page = Page("title", "words", [Section("part", pictures=[Picture("large.png", b"0" * 30_000, "", "")])])
    with pytest.raises(OSError, match=r"File too large: .*large\.png"):
        write(page, tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments", [("reproduce", "figure4", "--quick", "--results"), ("demo", "--out")])
def test_a_folder_that_cannot_be_written_to_is_named_before_the_work(arguments):
    run = command(*arguments, "/proc/nowhere")
    assert run.returncode == 1
    assert "/proc/nowhere" in run.stderr
    assert "natural images" not in run.stderr
    assert "turned digits" not in run.stderr
    assert "Traceback" not in run.stderr
