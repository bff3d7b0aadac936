"""Models and checkpoints as files: exact, whole, and safe to open."""

import os
import pickle
import subprocess
import sys
from math import pi

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from orbitpool import TIOMP, TIRBM, ModelFileError, TIAutoencoder, load, modelfile
from orbitpool import transforms as T
from orbitpool.wholefile import alone

TURNS = T.rotations(8, count=4, step=pi / 2)


@pytest.mark.parametrize("learner", [TIRBM, TIAutoencoder, TIOMP])
@pytest.mark.parametrize("transforms", [None, TURNS])
def test_a_loaded_model_is_the_saved_one(learner, transforms, digits, tmp_path):
    model = learner(6, transforms, n_iter=2, random_state=np.int64(0)).fit(digits)
    model.save(tmp_path / "model")
    twin = load(tmp_path / "model")
    assert type(twin) is learner
    assert twin.get_params() == model.get_params()
    assert twin.history_ == model.history_
    assert_array_equal(twin.transform(digits), model.transform(digits))
    assert_array_equal(twin.partial_fit(digits).components_, model.partial_fit(digits).components_)


def test_names_and_schedules_survive(digits, tmp_path):
    import pandas as pd

    frame = pd.DataFrame(digits, columns=[f"pixel {i}" for i in range(64)])
    model = TIRBM(4, n_iter=2, momentum={0: 0.5, 1: 0.9}, random_state=np.random.RandomState(0)).fit(frame)
    model.save(tmp_path / "model")
    twin = load(tmp_path / "model")
    assert list(twin.feature_names_in_) == list(frame.columns)
    assert twin.momentum == {0: 0.5, 1: 0.9}
    assert_array_equal(twin.transform(frame), model.transform(frame))
    assert_array_equal(twin.partial_fit(frame).components_, model.partial_fit(frame).components_)


@pytest.fixture
def model_bytes(digits, tmp_path):
    TIRBM(2, T.translations((2, 2), (2, 1)), n_iter=1, random_state=0).fit(digits[:, :4]).save(tmp_path / "model")
    return (tmp_path / "model").read_bytes()


def test_every_flipped_byte_is_noticed(model_bytes, tmp_path):
    path = tmp_path / "flipped"
    for place in range(len(model_bytes)):
        damaged = bytearray(model_bytes)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            load(path)


def test_truncated_files_and_files_of_other_kinds_are_refused(model_bytes, tmp_path):
    path = tmp_path / "other"
    victim = tmp_path / "executed"

    class Malicious:
        def __reduce__(self):
            return os.mkdir, (str(victim),)

    others = [model_bytes[:n] for n in (0, 4, 8, 100, len(model_bytes) - 1)]
    others += [model_bytes + b"x", pickle.dumps(Malicious()), b"\x80" * 1000, b"{}", os.urandom(500)]
    torch.save({"a": torch.zeros(3)}, path)
    others.append(path.read_bytes())
    for content in others:
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"is not a file that orbitpool wrote|is damaged"):
            load(path)
    assert not victim.exists()
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")


def rewritten(path, change):
    """A file whose checksum is right and whose content is not."""
    content, tensors = modelfile.read(path)
    change(content, tensors)
    modelfile.write(path, content, tensors)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda content, tensors: content.update({"class": "os.system"}),
        lambda content, tensors: content["parameters"].update(unheard_of=1),
        lambda content, tensors: content["parameters"].update(n_components=3),
        lambda content, tensors: content["parameters"].update(n_components="many"),
        lambda content, tensors: content.pop("counters"),
        lambda content, tensors: content["counters"].update(epoch_s=1),
        lambda content, tensors: tensors.pop("state.W"),
        lambda content, tensors: tensors["T.columns"].fill_(999),
        lambda content, tensors: tensors["T.starts"].fill_(0),
        lambda content, tensors: tensors["T.values"].fill_(1e30),
        lambda content, tensors: content["transforms"].update(field=[9, 9]),
        lambda content, tensors: content["transforms"].update(field=[-2, -2]),
        lambda content, tensors: tensors.update({"state.b": tensors["state.b"][:1]}),
        lambda content, tensors: tensors.pop("state.W.velocity"),
        lambda content, tensors: tensors["state.W"].fill_(float("nan")),
        lambda content, tensors: tensors.update({"state.W": tensors["state.W"].int()}),
        lambda content, tensors: tensors.update({"state.more": tensors["state.W"].clone()}),
    ],
)
def test_what_is_not_understood_is_refused(model_bytes, tmp_path, change):
    path = tmp_path / "model"
    path.write_bytes(model_bytes)
    rewritten(path, lambda content, tensors: None)
    load(path)
    with pytest.raises(ModelFileError):
        load(rewritten(path, change))


def test_a_file_that_cannot_be_written_leaves_the_old_one(digits, tmp_path, monkeypatch):
    model = TIRBM(2, n_iter=1, random_state=0).fit(digits)
    model.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        model.partial_fit(digits).save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("learner", [TIRBM, TIAutoencoder, TIOMP])
def test_a_stopped_run_goes_on_to_the_same_bits(learner, digits, tmp_path, monkeypatch):
    """Law 8, at an epoch's end and in the middle of one, with rows held out."""
    options = {"n_components": 6, "transforms": TURNS, "random_state": 0, "batch_size": 100, "early_stopping": True}
    options |= {"n_iter_no_change": 99} | ({"sigma": "learned", "visible": "gaussian"} if learner is TIRBM else {})
    whole = learner(n_iter=4, **options).fit(digits)
    kept = {"checkpoint": tmp_path / "run", "checkpoint_every": 7, **options}
    learner(n_iter=2, **kept).fit(digits)

    class PowerCut(Exception):
        """What ends a run between two updates."""

    def cut(state, v, update=learner._update):
        if state.at.update == 60:
            raise PowerCut
        return update(stopped, state, v)

    stopped = learner(n_iter=4, **kept)
    monkeypatch.setattr(stopped, "_update", cut)
    with pytest.raises(PowerCut):
        stopped.fit(digits)
    assert load(tmp_path / "run")._state.at.update == 56
    resumed = learner(n_iter=4, **kept).fit(digits)
    assert_array_equal(resumed.components_, whole.components_)
    assert {k: v for k, v in resumed.history_.items() if k != "seconds"} == {
        k: v for k, v in whole.history_.items() if k != "seconds"
    }
    finished = learner(n_iter=4, **kept).fit(digits)
    assert_array_equal(finished.components_, whole.components_)


def test_a_checkpoint_of_another_run_is_refused(digits, tmp_path):
    options = {"n_iter": 1, "checkpoint": tmp_path / "run", "random_state": 0}
    TIRBM(4, TURNS, **options).fit(digits)
    for other, says in (
        (TIRBM(5, TURNS, **options), "its n_components is 4, here it is 5; delete the file or give another path"),
        (TIRBM(4, TURNS, **options, learning_rate=0.1), "its learning_rate is 0.05, here it is 0.1"),
        (TIRBM(4, **options), "its transforms is"),
        (TIRBM(4, TURNS[[0, 1, 3, 2]], **options), "its transforms is"),
        (TIAutoencoder(4, TURNS, **options), "its class is 'TIRBM', here it is 'TIAutoencoder'"),
    ):
        with pytest.raises(ValueError, match=says):
            other.fit(digits)
    with pytest.raises(ValueError, match=r"its data \(shape, type, some rows\) is"):
        TIRBM(4, TURNS, **options).fit(digits + 1e-3)
    (tmp_path / "run").write_bytes(b"nonsense")
    with pytest.raises(ModelFileError):
        TIRBM(4, TURNS, **options).fit(digits)


KILLS = """
import os, random, signal, sys, time
import numpy as np
from sklearn.datasets import load_digits
import orbitpool, torch

X, folder, seed = load_digits().data / 16, sys.argv[1], int(sys.argv[2])
turns = orbitpool.transforms.rotations(8, 4, np.pi / 2)

def run(name, every):
    model = orbitpool.TIRBM(16, turns, n_iter=12, batch_size=30, random_state=0, persistent=True, sample_visible=True,
                            checkpoint=f"{folder}/{name}", checkpoint_every=every)
    model.fit(X)
    os._exit(0)

def start(name, every):
    child = os.fork()
    return child if child else run(name, every)

begun = time.time()
assert os.waitstatus_to_exitcode(os.waitpid(start("whole", 10**9), 0)[1]) == 0
length, kills, random = time.time() - begun, 0, random.Random(seed)
while kills < 20:
    child = start("killed", 3)
    time.sleep(random.uniform(0, length / 8))
    os.kill(child, signal.SIGKILL)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL:
        kills += 1
    else:
        os.remove(f"{folder}/killed")  # finished before the kill: begin anew
os.waitpid(start("killed", 3), 0)
print(kills)
"""


def test_twenty_kills_at_random_moments_lose_nothing(tmp_path):
    """SIGKILL while training and while writing: every run goes on to the bits of an uninterrupted one."""
    run = subprocess.run([sys.executable, "-c", KILLS, str(tmp_path), "0"], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["20"]
    whole, killed = load(tmp_path / "whole"), load(tmp_path / "killed")
    for name in ("components_", "intercept_hidden_", "intercept_visible_"):
        assert_array_equal(getattr(killed, name), getattr(whole, name))
    assert_array_equal(killed._state.generator.get_state(), whole._state.generator.get_state())


def test_a_file_from_another_kind_of_device_can_be_used_but_not_gone_on_from(digits, tmp_path):
    """A GPU's generator has another state: the model loads, the run does not go on as if nothing had happened."""
    model = TIRBM(4, n_iter=1, random_state=0, checkpoint=tmp_path / "run").fit(digits)
    rewritten(
        tmp_path / "run",
        lambda content, tensors: tensors.update({"state.generator": torch.zeros(16, dtype=torch.uint8)}),
    )
    twin = load(tmp_path / "run")
    assert_array_equal(twin.transform(digits), model.transform(digits))
    twin.partial_fit(digits)
    with pytest.raises(ValueError, match="the run was on another kind of device than cpu"):
        TIRBM(4, n_iter=2, random_state=0, checkpoint=tmp_path / "run").fit(digits)


def test_two_runs_do_not_share_a_checkpoint(digits, tmp_path):
    with alone(tmp_path / "run"), pytest.raises(OSError, match=r"another process is at work on .*run; wait until"):
        TIRBM(4, checkpoint=tmp_path / "run").fit(digits)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("bad", [{"precision": "nonsense"}, {"learning_rate": -1}, {"n_iter": 0}])
def test_nothing_is_written_that_could_not_be_loaded(bad, digits, tmp_path):
    model = TIRBM(4, n_iter=1).fit(digits[:100]).set_params(**bad)
    for use in (lambda: model.save(tmp_path / "model"), lambda: model.transform(digits[:9])):
        with pytest.raises(ValueError, match=f"{next(iter(bad))} is "):
            use()
    assert os.listdir(tmp_path) == []


def test_a_checkpoint_needs_its_folder_before_anything_is_learned(digits, tmp_path):
    with pytest.raises(ValueError, match=r"but there is no folder .*nowhere; create it first"):
        TIRBM(4, checkpoint=tmp_path / "nowhere" / "run").fit(digits)
