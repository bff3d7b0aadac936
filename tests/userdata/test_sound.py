"""A user's own recordings on the command line: fit, then encode."""

import csv
import os
import signal

import numpy as np
import pytest
import soundfile
from numpy.testing import assert_allclose

import orbitpool
from orbitpool.speech import read_table


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Four recordings of a hum and a hiss, and the table that names them."""
    folder, rows = tmp_path_factory.mktemp("own"), ["file,start,end,label"]
    rng, t = np.random.default_rng(0), np.arange(8000) / 16_000
    for i in range(4):
        hum, hiss = np.sin(2 * np.pi * (200 + 10 * i) * t), rng.normal(size=8000)
        soundfile.write(folder / f"{i}.wav", 0.1 * np.concatenate([hum, hiss]), 16_000)
        rows += [f"{i}.wav,0,0.5,hum", f"{i}.wav,0.5,,hiss"]
    (folder / "table.csv").write_text("\n".join(rows))
    return folder / "table.csv"


def test_fit_and_encode(command, table, tmp_path):
    model = tmp_path / "model.safetensors"
    code, says, _ = command("fit", table, "--kind", "sound", "--components", 4, "--epochs", 2, "--out", model)
    assert (code, says) == (0, f"{model}: 4 filters, 41 features\n")
    for name in ("z.npy", "z.npz", "z.csv"):
        code, says, _ = command("encode", model, table, "--out", tmp_path / name)
        assert (code, says) == (0, f"{tmp_path / name}: 8 rows of 41 features\n")
    expected = orbitpool.load(model).transform(read_table(table).segments)
    assert_allclose(np.load(tmp_path / "z.npy"), expected, atol=1e-6)
    with np.load(tmp_path / "z.npz") as packed:
        assert list(packed["labels"]) == ["hum", "hiss"] * 4
        assert_allclose(packed["features"], expected, atol=1e-6)
    with (tmp_path / "z.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert (rows[1]["label"], float(rows[1]["start"]), float(rows[1]["end"])) == ("hiss", 0.5, 1.0)
    assert_allclose([float(row["feature40"]) for row in rows], expected[:, 40], atol=1e-6)


def test_what_goes_wrong_is_one_sentence(command, table, tmp_path):
    model = tmp_path / "model.safetensors"
    for arguments, says in (
        (("fit", table, "--kind", "smell", "--out", model), "kind is 'smell'; choose one of 'image', 'sound'"),
        (
            ("fit", table, "--transforms", "turns", "--out", model),
            "transforms is 'turns'; choose one of 'shifts', 'none'",
        ),
        (("fit", tmp_path / "none.csv", "--out", model), "none.csv"),
        (("fit", table, "--out", table.parent), "is a folder; give the name of a file"),
        (
            ("encode", tmp_path / "none.safetensors", table, "--out", model.with_suffix(".npy")),
            "is not there; check its",
        ),
        (("fit", table, "--out", table), "table.csv, which is read, too; give it another name"),
        (("encode", tmp_path / "m", table, "--out", table), "table.csv, which is read, too; give it another name"),
        (("encode", table, table, "--out", tmp_path / "z.npy"), "table.csv is not a file that orbitpool wrote"),
        (("encode", table, table, "--out", tmp_path / "z.txt"), "the ending of --out is '.txt'; choose one of '.npy'"),
    ):
        code, _, complaint = command(*arguments)
        assert code == 1
        assert says in complaint
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_model_is_not_kept_and_goes_on(command, table, tmp_path, monkeypatch, number):
    out, options = tmp_path / "model.safetensors", ("--components", 2, "--epochs", 3)
    assert command("fit", table, *options, "--out", tmp_path / "whole")[0] == 0

    def interrupt(self, state, update=orbitpool.TIRBM._measure):
        signal.raise_signal(number)
        return update(self, state)

    with monkeypatch.context() as m:
        m.setattr(orbitpool.TIRBM, "_measure", interrupt)
        code, _, complaint = command("fit", table, *options, "--out", out)
    assert code == 130
    assert complaint.endswith(
        "what was learned, if anything, is kept beside --out, and the same command goes on from there\n"
    )
    assert sorted(os.listdir(tmp_path)) == [".model.safetensors.checkpoint", "whole"]
    assert "here it is 3; delete the file" in command("fit", table, "--components", 3, "--out", out)[2]
    code, _, says = command("fit", table, *options, "--out", out)
    assert code == 0
    assert "going on from " in says
    assert sorted(os.listdir(tmp_path)) == ["model.safetensors", "whole"]
    first, second = (orbitpool.load(tmp_path / name).learner_ for name in ("whole", "model.safetensors"))
    assert second.checkpoint is None
    np.testing.assert_array_equal(first.components_, second.components_)


def test_models_without_a_kind_of_data_are_refused(command, table, tmp_path, digits):
    orbitpool.TIRBM(2, n_iter=1).fit(digits).save(tmp_path / "model")
    _, _, complaint = command("encode", tmp_path / "model", table, "--out", tmp_path / "z.npy")
    assert "is a TIRBM without a kind of data; use its transform in Python" in complaint
