"""The minibatch loop: what it can be fed, how it can be stopped, and what it leaves behind."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from orbitpool import TIOMP, TIRBM, Diverged, TIAutoencoder, load, modelfile
from orbitpool import transforms as T
from orbitpool.learners.training import _stalled


class Batches:
    """What a DataLoader is: something that can be gone through again and again."""

    def __init__(self, X, size, with_labels=False):
        self.X, self.size, self.with_labels = X, size, with_labels

    def __iter__(self):
        for start in range(0, len(self.X), self.size):
            batch = torch.from_numpy(self.X[start : start + self.size])
            yield (batch, torch.zeros(len(batch))) if self.with_labels else batch


AROUND = [torch.inference_mode(), torch.no_grad(), torch.autocast("cpu", torch.bfloat16)]


@pytest.mark.parametrize("around", AROUND, ids=lambda context: type(context).__name__)
@pytest.mark.parametrize("kind", [TIRBM, TIOMP, TIAutoencoder])
def test_what_callers_ask_of_torch_does_not_matter(kind, around, digits, tmp_path):
    X = digits[:200].astype(np.float32)

    def learned():
        model = kind(8, T.translations(8, 6), n_iter=2, random_state=0).fit(X)
        model.save(tmp_path / "model.safetensors")
        return model, load(tmp_path / "model.safetensors"), model.to_module()

    expected, *_ = learned()
    network = torch.nn.Linear(64, 64)
    with around:
        if not torch.is_grad_enabled():  # as it is for what callers give, too
            kind(8, n_iter=1).fit(network(torch.from_numpy(part)).sigmoid().numpy() for part in (X[:100], X[100:]))
        model, loaded, module = learned()
        assert_array_equal(model.components_, expected.components_)
        assert_array_equal(model.transform(X), expected.transform(X))
    for each in (model, loaded):
        assert_array_equal(each.partial_fit(X).components_, each.components_)
    module(torch.from_numpy(X)).sum().backward()
    assert module.weight.grad.isfinite().all()


def test_a_mapped_file_gives_the_same_bits_as_an_array(digits, tmp_path):
    np.save(tmp_path / "X.npy", digits.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model, twin = (TIRBM(8, n_iter=2, random_state=0).fit(X) for X in (mapped, np.array(mapped)))
    assert_array_equal(model.components_, twin.components_)
    assert_array_equal(model.transform(mapped), twin.transform(np.array(mapped)))


def test_copy_on_write_maps_keep_what_was_written(digits, tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((4000, 64), np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="c")
    mapped[:] = 0.5
    TIRBM(2, n_iter=1, random_state=0, batch_size=10).fit(mapped)
    assert (mapped == 0.5).all()


@pytest.mark.parametrize("with_labels", [False, True])
def test_an_iterable_of_batches_is_a_source(digits, with_labels):
    stream = Batches(digits, 100, with_labels)
    model = TIRBM(8, n_iter=3, random_state=0).fit(stream)
    assert len(model.history_["sparsity"]) == 3
    assert model.history_["reconstruction_error"][-1] < model.history_["reconstruction_error"][0]
    once = TIRBM(8, n_iter=1, random_state=0).fit(iter(stream))  # a generator serves for one epoch
    again = TIRBM(8, n_iter=1, random_state=0).fit(stream)
    assert_array_equal(once.components_, again.components_)


def test_streams_that_cannot_be_learned_from_say_why(digits):
    with pytest.raises(ValueError, match="gave 0 batches in a later epoch: a generator can be gone through once"):
        TIRBM(8, n_iter=2, random_state=0).fit(iter(Batches(digits, 100)))
    with pytest.raises(ValueError, match="the iterable gave 0 batches; give at least one"):
        TIRBM(8).fit(iter([]))
    with pytest.raises(ValueError, match=r"a batch has shape \(5, 63\); the first one had 64 features"):
        TIRBM(8, n_iter=1).fit(iter([digits[:5], digits[:5, :63]]))
    with pytest.raises(ValueError, match=r"a batch has shape \(64,\) and type float64; it must be \(n, features\)"):
        TIRBM(8, n_iter=1).fit(iter([digits[0]]))
    with pytest.raises(ValueError, match="early_stopping=True holds rows out of an array"):
        TIRBM(8, early_stopping=True).fit(Batches(digits, 100))
    with pytest.raises(ValueError, match="NaN or infinity"):
        TIRBM(8, n_iter=1).fit(iter([digits[:5], np.full((5, 64), np.nan)]))


@pytest.mark.parametrize("learner", [TIRBM, TIAutoencoder, TIOMP])
def test_partial_fit_is_one_epoch_in_the_given_order(learner, digits):
    stream = Batches(digits, 100)
    parts, whole = (learner(8, random_state=0, n_iter=2) for _ in range(2))
    for _ in range(2):
        assert parts.partial_fit(stream) is parts
    assert_array_equal(parts.components_, whole.fit(stream).components_)
    assert parts.n_iter_ == 2
    assert len(parts.history_["seconds"]) == 2
    by_array = learner(8, random_state=0, batch_size=100).partial_fit(digits[:100]).partial_fit(digits[100:])
    assert by_array._state.at.update == parts._state.at.update / 2


def test_an_epoch_is_begun_once_before_its_first_batch(digits, monkeypatch):
    begun = []
    monkeypatch.setattr(TIOMP, "_begin_epoch", lambda self, state, v: begun.append((state.at.update, len(v))))
    TIOMP(8, n_iter=3, batch_size=1000, random_state=0).fit(digits)
    assert begun == [(0, 1000), (2, 1000), (4, 1000)]


def test_early_stopping_ends_when_held_out_rows_get_no_better(digits):
    model = TIRBM(8, n_iter=500, batch_size=20, early_stopping=True, n_iter_no_change=3, random_state=0).fit(digits)
    errors = model.history_["validation_error"]
    assert 3 < model.n_iter_ == len(errors) < 500
    assert errors.index(min(errors)) == len(errors) - 4
    assert not _stalled({"validation_error": [3.0, 1.0, 2.0]}, 2)
    assert _stalled({"validation_error": [3.0, 1.0, 2.0, 2.0]}, 2)


def test_the_history_has_a_value_an_epoch(digits):
    history = TIRBM(8, n_iter=4, random_state=0).fit(digits).history_
    assert set(history) == {"reconstruction_error", "sparsity", "pseudo_likelihood", "seconds"}
    assert all(len(values) == 4 and np.isfinite(values).all() for values in history.values())


def test_progress_is_silent_by_default_and_a_line_an_epoch_when_asked_for(digits, capsys):
    TIRBM(4, n_iter=2, random_state=0).fit(digits)
    assert capsys.readouterr() == ("", "")
    TIRBM(4, n_iter=2, random_state=0, verbose=True).fit(digits)
    out, err = capsys.readouterr()
    assert out == ""
    first, last = err.splitlines()
    assert re.fullmatch(r"\[epoch 1/2, \d+ s left\] TIRBM: reconstruction error [\d.]+, pseudo likelihood .*", first)
    assert last.startswith("[epoch 2/2, 0 s left] TIRBM: ")


def test_progress_on_a_terminal_is_a_bar(digits, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    TIRBM(4, n_iter=2, random_state=0, verbose=True).fit(digits)
    assert "TIRBM" in capsys.readouterr().err


def test_ctrl_c_leaves_a_usable_saved_model(digits, tmp_path):
    model = TIRBM(8, n_iter=10**6, random_state=0, checkpoint=tmp_path / "run")
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(UserWarning, match="training was interrupted; the model is as after its last update"):
        model.fit(digits)
    assert 0 < model.n_iter_ < 10**6
    assert model.transform(digits).shape == (len(digits), 8)
    assert_array_equal(load(tmp_path / "run").components_, model.components_)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("when", ["the last epoch", "the last checkpoint"])
def test_ctrl_c_at_the_very_end_loses_nothing_and_is_not_lost_itself(when, digits, tmp_path, monkeypatch):
    class Struck(TIRBM):
        def _end_epoch(self, state):
            if when == "the last epoch" and state.at.epoch == 2:
                signal.raise_signal(signal.SIGINT)
            super()._end_epoch(state)

    def write(path, *content, whole=modelfile.write):
        if when == "the last checkpoint" and content[0]["counters"]["epoch"] == 3:
            signal.raise_signal(signal.SIGINT)
        whole(path, *content)

    Struck.__name__ = "TIRBM"
    monkeypatch.setattr(modelfile, "write", write)
    model = Struck(8, n_iter=3, batch_size=20, random_state=0, checkpoint=tmp_path / "run", checkpoint_every=50)
    with pytest.raises(KeyboardInterrupt):
        model.fit(digits)
    assert model.n_iter_ == load(tmp_path / "run").n_iter_ == 3
    assert_array_equal(load(tmp_path / "run").components_, model.components_)


def test_divergence_is_caught_and_the_last_good_parameters_are_kept(digits, tmp_path):
    X = (digits - digits.mean(0)) * 10
    model = TIRBM(
        64, visible="gaussian", learning_rate={0: 1e-4, 3: 5.0}, n_iter=10, random_state=0, checkpoint=tmp_path / "run"
    )
    with pytest.raises(Diverged, match=r"diverged at update \d+ \(epoch 3\): .* learning_rate was 5: lower it"):
        model.fit(X)
    assert np.isfinite(model.components_).all()
    assert model.n_iter_ == 3
    assert np.isfinite(model.transform(X)).all()
    assert_array_equal(load(tmp_path / "run").components_, model.components_)


def test_results_do_not_depend_on_the_size_of_chunks(digits):
    model = TIRBM(16, n_iter=1, random_state=0).fit(digits)
    for make, whole in (
        (lambda t: model._encoder(t).encode, model.transform(digits)),
        (model._decoder, model.reconstruct(digits)),
        (model._free_energy, model.free_energy(digits)),
    ):
        for rows in (1, 7, 500):
            assert_allclose(model._map(make, digits, rows), whole, rtol=1e-10)


@pytest.mark.parametrize(
    "model",
    [
        TIRBM(16, learning_rate={0: 0.05, 2: 1e4}, n_iter=10, random_state=0),
        TIAutoencoder(16, learning_rate={0: 0.05, 2: 1e5}, n_iter=10, random_state=0),
    ],
)
def test_weights_that_explode_behind_bounded_outputs_are_caught(model, digits):
    with pytest.raises(Diverged, match=r"\(epoch 2\): .*learning_rate was 10+: lower it"):
        model.fit(digits)
    assert np.abs(model.components_).max() < 10


@pytest.mark.parametrize(
    ("model", "scales"),
    [
        (TIOMP(1000, batch_size=10, n_iter=2, random_state=0), np.ones(200)),
        (TIRBM(10, visible="gaussian", n_iter=2, random_state=0), np.repeat([1e-3, 1.0], 100)),
        (TIRBM(10, visible="gaussian", sigma="learned", n_iter=2, random_state=0), np.zeros(200)),
        (TIOMP(20, gamma=20, n_iter=2, random_state=0), np.zeros(200)),
    ],
    ids=str,
)
def test_small_errors_at_first_are_no_sign_of_divergence(model, scales, digits):
    """Filters that start as inputs, dark inputs at first, nothing but zeros."""
    X = (digits[:200] - digits.mean(0)) * scales[:, None]
    assert np.isfinite(model.partial_fit(X.astype(np.float32)).components_).all()


def test_partial_fit_after_an_unfinished_epoch_learns_from_all_of_its_data(digits):
    class Failing:
        def __iter__(self):
            yield from (digits[:100] for _ in range(5))
            raise OSError("the disk went away")

    for model in (TIRBM(4, n_iter=1, random_state=0), TIOMP(4, n_iter=1, random_state=0)):
        with pytest.raises(OSError, match="went away"):
            model.fit(Failing())
        assert model._state.at.update == 5
        model.partial_fit(Batches(digits[:300], 100))
        assert model._state.at.update == 8


def test_small_parts_bring_tiomp_on(digits):
    model = TIOMP(64, random_state=0)
    for _ in range(4):
        for start in range(0, len(digits), 60):
            model.partial_fit(digits[start : start + 60])
    whole = TIOMP(64, n_iter=10, random_state=0).fit(digits)
    assert model.score(digits) > 1.25 * whole.score(digits)


def test_what_a_model_was_started_with_cannot_change(digits):
    for change in ({"n_components": 9}, {"transforms": T.translations(8, 6)}, {"persistent": True}):
        model = TIRBM(8, n_iter=1, random_state=0).fit(digits).set_params(**change)
        with pytest.raises(ValueError, match=r"now, but the model was started with .* set it back, or call fit"):
            model.partial_fit(digits)
        with pytest.raises(ValueError, match="the model was started with"):
            model.save("never-written")
        assert model.transform(digits).shape == (len(digits), len(model.get_feature_names_out())) == (len(digits), 8)


def test_divergence_survives_a_process_boundary(digits):
    error = Diverged("message", TIRBM(2, n_iter=1, random_state=0).fit(digits)._state)
    twin = pickle.loads(pickle.dumps(error))
    assert str(twin) == "message"
    assert_array_equal(twin.state.tensors["W"], error.state.tensors["W"])


def test_columns_of_the_history_stay_equally_long(digits):
    model = TIRBM(4, n_iter=2, early_stopping=True, random_state=0).fit(digits).partial_fit(digits)
    assert {len(column) for column in model.history_.values()} == {3}
    assert np.isnan(model.history_["validation_error"][2])


def test_twenty_gigabytes_are_learned_from_in_two(tmp_path):
    """A sparse file of 20 GB, mapped: 120,000 random rows out of all of it keep under 2 GB resident."""
    path = tmp_path / "huge.dat"
    with path.open("wb") as file:
        file.truncate(20 * 10**9)
    script = f"""
import resource, signal, warnings, numpy as np
from orbitpool import TIRBM
warnings.simplefilter("ignore")
X = np.memmap({str(path)!r}, dtype=np.float32, mode="r", shape=(20 * 10**9 // 4 // 1024, 1024))
class Short(TIRBM):
    def _update(self, state, v):
        if state.at.update == 60:
            signal.raise_signal(signal.SIGINT)
        return super()._update(state, v)
model = Short(16, batch_size=2000, n_iter=1, random_state=0).fit(X)
print(len(X), model._state.at.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    rows, seen, peak = (float(x) for x in run.stdout.split())
    assert rows == 4_882_812
    assert seen > 100_000
    assert peak < 2.0
