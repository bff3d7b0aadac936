"""Commands and scripts under torchrun itself, on the CPU."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images

import orbitpool
from orbitpool import TIRBM, load

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]

DYING = """
import os, signal, sys
import numpy as np
from orbitpool import TIRBM, together

class Dying(TIRBM):
    def _update(self, state, v):
        if state.at.update == 70 and os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._update(state, v)

checkpoint, out, dies = sys.argv[1:]
X = np.random.default_rng(0).random((1000, 16))
Kind = Dying if dies == "yes" else TIRBM
Dying.__name__ = "TIRBM"
with together.joined():
    Kind(8, n_iter=10, batch_size=100, random_state=0, checkpoint=checkpoint, checkpoint_every=15).fit(X).save(out)
if os.environ["RANK"] == "0":
    print("begun", os.environ["TORCHELASTIC_RESTART_COUNT"], "times before")
"""


def run(*command, code=0):
    """What a command prints, on both streams."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
    assert (done.returncode == 0) == (code == 0), done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder of 12 pieces of photographs, of two sizes and two classes."""
    folder = tmp_path_factory.mktemp("pictures")
    for name, photograph in zip(("flower", "temple"), load_sample_images().images, strict=True):
        (folder / name).mkdir()
        for i in range(6):
            Image.fromarray(photograph[40 * i :][: 24 + 8 * (i % 2), 100:124]).save(folder / name / f"{i}.png")
    (folder / "temple" / "broken.png").write_bytes(b"nothing")
    return folder


def test_commands_write_the_same_files(pictures, tmp_path):
    orbitpool = ("-m", "orbitpool")
    settings = ("--components", 8, "--epochs", 1)
    for name, start in (("one", [sys.executable]), ("two", [*TORCHRUN, 2])):
        model = tmp_path / f"{name}.safetensors"
        run(*start, *orbitpool, "fit", pictures, "--out", model, *settings)
        stdout, stderr = run(*start, *orbitpool, "encode", model, pictures, "--out", tmp_path / f"{name}.npz")
        assert stdout.count("12 rows of 64 features") == 1
        assert stderr.count("broken.png") == 2  # its name and the reason, once
    one, two = (load(tmp_path / f"{name}.safetensors") for name in ("one", "two"))
    np.testing.assert_allclose(one.learner_.components_, two.learner_.components_, atol=1e-5)
    with np.load(tmp_path / "one.npz") as one, np.load(tmp_path / "two.npz") as two:
        assert one["files"].tolist() == two["files"].tolist()
        np.testing.assert_allclose(one["features"], two["features"], atol=1e-4)
    assert len(list(tmp_path.iterdir())) == 4


def test_what_is_printed_is_printed_once(tmp_path):
    stdout, _ = run(*TORCHRUN, 2, "-m", "orbitpool", "list", "--results", tmp_path)
    assert stdout.count("table1") == 1


LOSING = """
import os, signal, sys
from orbitpool import cli
from orbitpool.learners import TIRBM

update = TIRBM._update

def dying(self, state, v):
    if state.at.update == 3 and os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return update(self, state, v)

TIRBM._update = dying
cli.main()
"""


def test_who_has_lost_another_process_says_so_in_a_sentence(digit_array, tmp_path):
    (tmp_path / "script.py").write_text(LOSING)
    _, stderr = run(*TORCHRUN, 2, tmp_path / "script.py", "fit", digit_array, "--out", tmp_path / "m", code=1)
    assert stderr.count("orbitpool: another process has ended, and so does this one; what was learned, if any") == 1
    assert str(Path(orbitpool.__file__).parent) not in stderr  # no traceback of ours


def test_what_goes_wrong_is_said_once(tmp_path):
    _, stderr = run(*TORCHRUN, 2, "-m", "orbitpool", "fit", tmp_path / "nothing", "--out", tmp_path / "m", code=1)
    assert stderr.count("nothing is not there; check its name") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_dies_is_started_again_and_goes_on_from_the_checkpoint(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(DYING)
    start = [*TORCHRUN, 2, "--max-restarts", 1, script]
    for name, dies, begun in (("undisturbed", "no", 0), ("dying", "yes", 1)):
        stdout, _ = run(*start, tmp_path / f"{name}.checkpoint", tmp_path / f"{name}.safetensors", dies)
        assert stdout.count(f"begun {begun} times before") == 1
    one, two = (load(tmp_path / f"{name}.safetensors") for name in ("undisturbed", "dying"))
    assert np.array_equal(one.components_, two.components_)


SLOW = """
import os, sys, time
import numpy as np
from orbitpool import TIRBM, together

class Slow(TIRBM):
    def _update(self, state, v):
        time.sleep(0.05)
        return super()._update(state, v)

Slow.__name__ = "TIRBM"
checkpoint, out = sys.argv[1:]
X = np.random.default_rng(0).random((1000, 16))
with together.joined():
    print("together:", together.processes(), "started before:", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
    Slow(8, n_iter=40, batch_size=100, random_state=0, checkpoint=checkpoint, checkpoint_every=10).fit(X).save(out)
"""


class Agents:
    """Launchers on one machine that stand for machines, each with one worker."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        conf = "last_call_timeout=2,join_timeout=60,keep_alive_interval=1,keep_alive_max_attempt=3"
        self.command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1:2", "--nproc-per-node", "1"]
        self.command += ["--max-restarts", "3", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"]
        self.command += [
            "--rdzv-id",
            "test",
            "--rdzv-conf",
            conf,
            "--local-addr",
            "127.0.0.1",
            "--monitor-interval",
            "0.2",
        ]
        (folder / "script.py").write_text(SLOW)
        self.command += [str(folder / "script.py"), str(folder / "checkpoint"), str(folder / "model")]
        self.folder, self.running = folder, []

    def start(self):
        with (self.folder / f"said{len(self.running)}").open("w") as said:
            environment = ENVIRONMENT | {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}  # see docs/scaling.md
            process = subprocess.Popen(self.command, stdout=said, stderr=subprocess.STDOUT, env=environment)
        self.running.append(process)
        return len(self.running) - 1

    def said(self, number):
        return (self.folder / f"said{number}").read_text()

    def wait_for(self, number, words):
        self.wait_until(lambda: words in self.said(number), number, words)

    def wait_until(self, holds, number, what, seconds=90):
        """Wait until something holds; what an agent has said if it never does."""
        until = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < until, f"no {what!r} after {seconds} s; agent {number} said:\n{self.said(number)}"
            time.sleep(0.05)

    def kill(self, number):
        """As when a machine loses its power: the workers, too."""
        if self.running[number].poll() is None:
            process = self.running[number].pid
            workers = Path(f"/proc/{process}/task/{process}/children").read_text().split()
            for each in [process, *map(int, workers)]:
                os.kill(each, signal.SIGKILL)
            self.running[number].wait()


def test_what_never_comes_is_not_waited_for_without_end(tmp_path):
    agents = Agents(tmp_path)
    (tmp_path / "said0").write_text("nothing yet")
    with pytest.raises(AssertionError, match=r"no 'checkpoint' after 0\.1 s; agent 0 said:\s+nothing yet"):
        agents.wait_until((tmp_path / "checkpoint").exists, 0, "checkpoint", seconds=0.1)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="children are found in /proc")
def test_a_machine_that_is_lost_and_one_that_takes_its_place_change_the_shares_alone(tmp_path):
    agents = Agents(tmp_path)
    try:
        first = agents.start()
        time.sleep(1)
        lost = agents.start()
        agents.wait_for(lost, "together: 2")
        agents.wait_until((tmp_path / "checkpoint").exists, lost, "checkpoint")
        agents.kill(lost)
        agents.wait_for(first, "together: 1 started before: 1")  # alone
        new = agents.start()
        agents.wait_for(first, "together: 2 started before: 1")
        agents.wait_for(new, "together: 2 started before: 0")
        for number in (first, new):
            assert agents.running[number].wait(90) == 0, agents.said(number)
    finally:
        for number in range(len(agents.running)):
            agents.kill(number)
    X = np.random.default_rng(0).random((1000, 16))
    undisturbed = TIRBM(8, n_iter=40, batch_size=100, random_state=0).fit(X)
    np.testing.assert_allclose(load(tmp_path / "model").components_, undisturbed.components_, rtol=0, atol=1e-5)
