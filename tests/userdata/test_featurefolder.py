"""Features in parts that go on and grow, written by one process or several, and classified without being read whole."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from shardfiles import encoded, tar

import orbitpool
from orbitpool import together
from orbitpool.userdata import featurefiles, featurefolder, images
from spreading import spread


@pytest.fixture
def model(command, image_shards):
    options = ("--components", 5, "--epochs", 1, "--transforms", "rotation", "--quiet")
    assert command("fit", image_shards / "tar" / "*.tar", *options, "--out", image_shards / "model")[0] == 0
    return image_shards / "model"


def test_features_in_parts_go_on_and_grow(command, model, image_shards, monkeypatch):
    monkeypatch.setattr(featurefolder, "ROWS", 25)
    monkeypatch.setattr(images, "AT_ONCE", 25)
    out, whole = image_shards / "features", image_shards / "z.npz"
    assert command("encode", model, image_shards / "tar", "--out", whole)[0] == 0

    def full(folder, manifest, real=featurefolder._save):
        if manifest["parts"]:
            raise OSError(28, "No space left on device")
        real(folder, manifest)

    with monkeypatch.context() as m:
        m.setattr(featurefolder, "_save", full)  # between the first part and what says that it is there
        assert command("encode", model, image_shards / "tar", "--out", out)[0] == 1
    assert sorted(os.listdir(out)) == ["manifest.json", "part-00000.npz"]

    def stop(found, places, real=images.Images.read):
        if places[0] >= 50:
            raise KeyboardInterrupt
        return real(found, places)

    with monkeypatch.context() as m:
        m.setattr(images.Images, "read", stop)
        code, _, says = command("encode", model, image_shards / "tar", "--out", out)
    assert code == 130
    assert "a folder of parts goes on from its last part" in says
    assert sorted(os.listdir(out)) == ["manifest.json", "part-00000.npz", "part-00001.npz"]
    before = (out / "part-00000.npz").stat().st_mtime_ns
    code, says, _ = command("encode", model, image_shards / "tar", "--out", out)
    assert (code, says) == (0, f"{out}: 60 rows of 5 features\n")
    assert (out / "part-00000.npz").stat().st_mtime_ns == before
    parts, labels = featurefolder.read(out)
    Z = np.concatenate(parts)
    assert all(isinstance(part, np.memmap) for part in parts)
    with np.load(whole) as packed:
        assert_array_equal(Z, packed["features"])
        assert labels == packed["labels"].tolist()
    (image_shards / "tar/0.tar").rename(image_shards / "tar/3.tar")
    assert "was made from other data" in command("encode", model, image_shards / "tar", "--out", out)[2]
    (image_shards / "tar/3.tar").rename(image_shards / "tar/0.tar")
    members = {"new.png": encoded(np.zeros((16, 16)))}
    tar(image_shards / "tar/4.tar", members)
    assert command("encode", model, image_shards / "tar", "--out", out)[1] == f"{out}: 61 rows of 5 features\n"
    assert_array_equal(np.concatenate(featurefolder.read(out)[0])[:60], Z)
    assert json.loads((out / "manifest.json").read_text())["parts"][2]["items"] == 11
    assert command("classify", out, "--folds", 2)[0] in (0, 1)  # ten classes of few digits


def written_together(folder, model):
    """Parts by two processes, of which the second looks at the folder when the first has begun."""
    if together.place() == 1:
        begun = featurefolder._begun
        featurefolder._begun = lambda *given: time.sleep(1) or begun(*given)
    columns = {"file": ["x"] * 4, "label": [""] * 4}
    encode = lambda places: (together.agreed(0) + np.ones((len(places), 2), np.float32), columns)  # noqa: E731
    return [featurefolder.write(folder, model, list("abcd"), [""] * 4, encode) for _ in range(2)]


def test_a_slow_process_does_not_take_what_a_fast_one_has_begun_for_another_run(model, tmp_path):
    assert spread(written_together, 2, tmp_path / "z", model) == [[(4, 2), (4, 2)]] * 2


CLASSIFYING = """
import resource, sys
from pathlib import Path
import torch
from orbitpool import cli
from orbitpool.classifiers import LinearSVM, design

torch.set_num_threads(1)
design.CHUNK = 2**18
LinearSVM(standardize=True).fit(torch.randn(2000, 50), torch.arange(2000) % 2)  # so that libraries have their own
used = int(next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmData")).split()[1])
resource.setrlimit(resource.RLIMIT_DATA, (1024 * used + int(sys.argv.pop()),) * 2)
cli.main()
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks /proc how much memory is used")
def test_a_folder_of_features_is_classified_in_less_memory_than_it_has(tmp_path):
    rng, folder, parts = np.random.default_rng(0), tmp_path / "z", []
    folder.mkdir()
    for number in range(8):
        y = np.arange(5000) % 2
        Z = rng.normal(size=(5000, 500)).astype(np.float32) + 0.1 * y[:, None].astype(np.float32)
        featurefiles.write(folder / f"part-{number:05}.npz", Z, {"file": ["x"] * 5000, "label": list("ab" * 2500)})
        parts.append({"file": f"part-{number:05}.npz", "rows": 5000, "features": 500, "items": 5000, "of": ""})
    manifest = {"format": featurefolder.FORMAT, "model": "", "parts": parts}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "script.py").write_text(CLASSIFYING)
    command = [sys.executable, tmp_path / "script.py", "classify", folder, "--folds", "2", "--json", "--quiet"]
    done = subprocess.run([*map(str, command), str(6 * Z.nbytes)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["accuracy"] > 0.8


def test_folders_that_are_not_ours_are_left_alone(command, model, image_shards, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("x")
    says = command("encode", model, image_shards / "tar", "--out", tmp_path / "mine")[2]
    assert "holds other files and no manifest.json; give a new folder" in says
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]
    assert command("encode", model, image_shards / "tar", "--out", tmp_path / "f")[0] == 0
    twin = orbitpool.load(model).partial_fit(np.zeros((9, 256), np.float32))
    twin.save(tmp_path / "other")
    says = command("encode", tmp_path / "other", image_shards / "tar", "--out", tmp_path / "f")[2]
    assert "has features of another model; give another folder" in says
    (tmp_path / "f/manifest.json").write_text(
        '{"format": "orbitpool features 1", "model": "x", "parts": [{"file": "../x"}]}'
    )
    assert "manifest.json is damaged" in command("classify", tmp_path / "f")[2]
