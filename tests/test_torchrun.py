"""Commands and scripts under torchrun itself, on the CPU."""

import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images

from orbitpool import load

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
    one, two = (np.load(tmp_path / f"{name}.npz") for name in ("one", "two"))
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
    assert stderr.count("orbitpool: another process has ended, and so does this one; what was learned is kept") == 1
    assert "/orbitpool/" not in stderr  # no traceback of ours


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
