"""Data in many files, larger than memory together: to learn from, to encode, and features in parts that go on."""

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from PIL import Image

import orbitpool
from orbitpool import TIOMP, TIRBM, Shards, together
from orbitpool.learners.shards import ShardRows
from orbitpool.shards import Groups, open_shard, shard_files
from orbitpool.shards.files import OPENERS
from orbitpool.shards.parquet import ParquetShard
from orbitpool.shards.tar import TarShard
from orbitpool.userdata import featurefiles, featurefolder, images
from orbitpool.userdata.reading import open_images
from spreading import spread

CPU = torch.device("cpu")


@pytest.fixture
def npy_shards(tmp_path, digits):
    """The digits, cut into files of different sizes."""
    (tmp_path / "rows").mkdir()
    for i, part in enumerate(np.split(digits.astype(np.float32), [100, 101, 700, 1500])):
        np.save(tmp_path / "rows" / f"shard-{i}.npy", part)
    return tmp_path / "rows"


def encoded(image):
    file = io.BytesIO()
    Image.fromarray((255 * image).astype(np.uint8)).save(file, "png")
    return file.getvalue()


def tar(path, members):
    with tarfile.open(path, "w") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))


@pytest.fixture
def image_shards(tmp_path, turned_digits):
    """The same sixty digits as files in folders, as .tar, as .parquet and as .npy."""
    import pandas as pd

    X, y = turned_digits.X_train[:60], turned_digits.y_train[:60]
    for kind in ("tar", "parquet", "npy"):
        (tmp_path / kind).mkdir()
    for i, part in enumerate(np.split(np.arange(60), 3)):
        members = {}
        for j in part:
            members |= {f"./{j:03}.png": encoded(X[j]), f"./{j:03}.cls": str(y[j]).encode()}
        tar(tmp_path / "tar" / f"{i}.tar", members)
        frame = pd.DataFrame({"image": [{"bytes": encoded(X[j]), "path": "x"} for j in part], "label": y[part]})
        frame.to_parquet(tmp_path / "parquet" / f"{i}.parquet", row_group_size=7)
        np.save(tmp_path / "npy" / f"{i}.npy", (255 * X[part]).astype(np.uint8))
    return tmp_path


def rows_of(source, **options):
    return np.concatenate([batch.numpy() for batch in source.batches(**{"size": 64, "order": 5, "skip": 0, **options})])


def test_every_row_once_in_an_order_of_the_seed_and_a_skip_is_exact(npy_shards, digits):
    source = ShardRows(Shards(npy_shards, buffer=200), None, CPU)
    whole = rows_of(source)
    assert len(whole) == 1797
    expected = digits.astype(np.float32)
    order = np.lexsort(expected.T)
    assert_array_equal(whole[np.lexsort(whole.T)], expected[order])
    assert_array_equal(rows_of(source), whole)
    assert_array_equal(rows_of(source, order=None), expected)
    assert (rows_of(source, order=6) != whole).any()
    near = np.abs(whole[:-1] - whole[1:]).mean()
    assert near > 0.9 * np.abs(expected - expected[np.random.default_rng(0).permutation(1797)]).mean()
    for skip in (1, 3, 7, 20, 28):
        assert_array_equal(rows_of(source, skip=skip), whole[64 * skip :])
    assert source.n_batches(64) == 29


def test_what_is_skipped_is_not_read(npy_shards, monkeypatch):
    shards, read = Shards(npy_shards, buffer=80), []
    source = ShardRows(shards, None, CPU)
    monkeypatch.setattr(shards, "read", lambda piece, real=shards.read: read.append(piece) or real(piece))
    next(source.batches(10, 0, 100))
    assert 0 < len(read) <= 2 * 8


def test_learning_from_shards_goes_on_to_the_same_bits(npy_shards, tmp_path):
    options = {"n_components": 5, "batch_size": 50, "random_state": 0}
    whole = TIRBM(n_iter=3, **options).fit(Shards(npy_shards, buffer=300))
    kept = {**options, "checkpoint": tmp_path / "run", "checkpoint_every": 7}

    class PowerCut(Exception):
        """What ends a run."""

    class Cut(TIRBM):
        def _update(self, state, v):
            if state.at.update == 60:
                raise PowerCut
            return super()._update(state, v)

    Cut.__name__ = "TIRBM"
    with pytest.raises(PowerCut):
        Cut(n_iter=3, **kept).fit(Shards(npy_shards, buffer=300))
    resumed = TIRBM(n_iter=3, **kept).fit(Shards(sorted(npy_shards.iterdir()), buffer=300))
    assert_array_equal(resumed.components_, whole.components_)
    with pytest.raises(ValueError, match="its data"):
        TIRBM(n_iter=4, **kept).fit(Shards(npy_shards, buffer=500))
    assert whole.partial_fit(Shards(npy_shards)).n_iter_ == 4


def learned(folder, kind):
    """What is learned from shards by processes that work together, and how many images each of them decoded."""
    decoded = []
    shards = Shards(folder / kind, buffer=40)
    if kind == "tar":
        value = TarShard.value
        TarShard.value = lambda self, i, grey: decoded.append(i) or value(self, i, grey)
    model = TIRBM(6, n_iter=4, batch_size=16, random_state=0).fit(shards)
    omp = TIOMP(6, n_iter=2, batch_size=16, random_state=0).fit(shards)
    return model.components_, omp.components_, len(decoded)


@pytest.mark.parametrize("kind", ["npy", "tar", "parquet"])
def test_processes_that_work_together_read_their_own_rows_of_shards(kind, image_shards):
    ((one, other, count),) = spread(learned, 1, image_shards, kind)
    for found, dictionary, shared in spread(learned, 3, image_shards, kind):
        np.testing.assert_allclose(found, one, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(dictionary, other, rtol=1e-5, atol=1e-5)
        assert shared <= 0.7 * count  # a third of every batch, and what a model starts from


def test_shards_of_other_shapes_are_refused_before_the_work(npy_shards):
    np.save(npy_shards / "z.npy", np.ones((5, 63), np.float32))
    with pytest.raises(ValueError, match=r"z.npy has rows of shape \(63,\), but .*shard-0.npy has \(64,\)"):
        Shards(npy_shards)


def test_shards_of_all_kinds_hold_the_same_images(image_shards, turned_digits):
    expected = (255 * turned_digits.X_train[:60]).astype(np.uint8)
    labels = [str(y) for y in turned_digits.y_train[:60]]
    for source in ("tar", "parquet", "npy", "tar/*.tar", "npy/?.npy"):
        found = open_images(image_shards / source, strict=True)
        places, read = found.read(range(60))
        assert places == list(range(60))
        assert_array_equal(np.stack(read)[..., 0], expected)
        if not source.startswith("npy"):
            assert list(found.labels) == labels
            rows = np.concatenate(list(Shards(image_shards / source, buffer=16)))
            assert_array_equal((255 * rows[..., 1]).round(), expected)
    assert open_images(image_shards / "tar/1.tar", strict=True).names[0] == "1.tar/./020.png"
    assert open_images(image_shards / "parquet/2.parquet", strict=True).names[3] == "2.parquet[3]"


def test_numbers_in_parquet_are_rows(tmp_path, digits):
    import pandas as pd

    frame = pd.DataFrame({"a": range(20), "b": [list(row) for row in digits[:20, :3]], "name": "x"})
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=6)
    rows = np.concatenate(list(Shards(tmp_path / "x.parquet", buffer=32)))
    assert_array_equal(rows, np.column_stack([np.arange(20), digits[:20, :3]]))


@pytest.mark.parametrize("groups_that_fit", [8, 3, 1])
def test_row_groups_of_numbers_are_read_once_an_epoch_and_few_are_kept(tmp_path, monkeypatch, groups_that_fit):
    import pandas as pd

    rows = np.arange(1200.0).reshape(-1, 2)
    for i, some in enumerate(np.split(rows, 3)):
        pd.DataFrame(some, columns=["a", "b"]).to_parquet(tmp_path / f"{i}.parquet", row_group_size=50)
    size = max(ParquetShard(path).whole_size for path in tmp_path.iterdir())
    monkeypatch.setattr("orbitpool.shards.parquet.ROOM", groups_that_fit * size)
    monkeypatch.setattr("orbitpool.learners.shards.ROOM", groups_that_fit * size)
    read, read_rows = [], ParquetShard._read_rows
    monkeypatch.setattr(ParquetShard, "_read_rows", lambda *group: read.append(group) or read_rows(*group))
    shards = Shards(tmp_path, buffer=80)  # pieces of ten rows
    source, read[:] = ShardRows(shards, None, CPU), []
    batches = [batch.numpy() for batch in source.batches(32, 5, 0)]
    assert len(read) == len(set(read)) >= 11  # of twelve, of which the first may be kept since it was looked at
    assert source.shards._held.shards[0].groups.numbers.taken <= groups_that_fit * size
    found = np.concatenate(batches)
    assert not np.array_equal(found, rows)
    assert_array_equal(found[np.argsort(found[:, 0])], rows)
    again = np.concatenate([batch.numpy() for batch in source.batches(32, 5, 7)])
    assert_array_equal(again, found[7 * 32 :])


def test_room_is_made_before_a_row_group_is_read_and_the_last_row_gives_it_back(tmp_path, monkeypatch):
    import pandas as pd

    rows = np.arange(400).reshape(-1, 2)
    frame = pd.DataFrame({"a": rows[:, 0].astype("int8"), "b": rows[:, 1].astype("float64")})
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=50)
    shard = ParquetShard(tmp_path / "x.parquet")
    kept, read, taken = shard.groups.numbers, ParquetShard._read_rows, []
    kept.room = 2 * shard.whole_size

    def watched(self, number):
        held = read(self, number)
        assert held.nbytes <= self.sizes[number]  # what was expected is no less than what it takes
        taken.append(kept.taken + held.nbytes)
        return held

    monkeypatch.setattr(ParquetShard, "_read_rows", watched)
    for first in (0, 50, 100, 150):
        shard.values(range(first, first + 10))
    assert len(taken) == 4
    assert max(taken) <= kept.room  # while the group is read, too
    shard.values(range(190, 200))
    shard.values(range(140, 150))
    assert kept.taken == 0


def test_shards_are_opened_by_the_table_alone(image_shards, npy_shards, monkeypatch):
    groups, opened = Groups(), []
    for path in (image_shards / "parquet/1.parquet", image_shards / "tar/1.tar", next(npy_shards.glob("*.npy"))):
        monkeypatch.setitem(OPENERS, path.suffix, lambda *given: opened.append(given) or given)
        assert open_shard(path, groups) == (path, groups)
    assert len(opened) == 3


def test_no_two_choices_of_rows_are_drawn_alike(npy_shards, monkeypatch):
    drawn, new = [], np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda key: drawn.append(new(key).random()) or new(key))
    source = ShardRows(Shards(npy_shards, buffer=300), None, CPU)
    source.look(10, 3)
    assert len(list(source.batches(100, 3, 0))) > 1
    assert len(drawn) > 3
    assert len(set(drawn)) == len(drawn)


def test_parquet_that_unpacks_to_more_than_it_can_mean_is_refused(tmp_path):
    """Equal values take next to no bytes in a file."""
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    from pyarrow import parquet

    path = tmp_path / "bomb.parquet"
    parquet.write_table(pyarrow.table({"x": pyarrow.repeat(1.0, 100_000_000)}), path)
    assert path.stat().st_size < 2**20
    with pytest.raises(ValueError, match="are not likely"):
        Shards([path])


def test_names_that_lead_elsewhere_are_only_names(tmp_path, turned_digits):
    png = encoded(turned_digits.X_train[0])
    tar(tmp_path / "x.tar", {"../../up.png": png, "/etc/root.png": png, "a/../../b.png": png, "readme.txt": b"hello"})
    before = sorted(os.listdir(tmp_path.parent))
    with tarfile.open(tmp_path / "x.tar", "a") as file:
        for name, kind in (
            ("link.png", tarfile.SYMTYPE),
            ("pipe.png", tarfile.FIFOTYPE),
            ("hard.png", tarfile.LNKTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            file.addfile(info)
    found = open_images(tmp_path / "x.tar", strict=True)
    assert len(found.read(range(3))[1]) == len(found) == 3
    assert sorted(os.listdir(tmp_path)) == ["x.tar"]
    assert sorted(os.listdir(tmp_path.parent)) == before


def test_shards_that_are_none_are_refused_by_name(tmp_path, image_shards, npy_shards):
    whole = (image_shards / "tar/0.tar").read_bytes()
    (image_shards / "tar/3.tar").write_bytes(whole[:5000])
    with pytest.raises(ValueError, match=r"3\.tar cannot be read as an archive of images, not packed \(unexpected end"):
        open_images(image_shards / "tar", strict=True)
    found = open_images(image_shards / "tar", strict=False)
    assert len(found) == 60
    assert "3.tar" in found.in_words()[1]
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(ValueError, match=r"x\.parquet cannot be read as a \.parquet of images or numbers"):
        Shards(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="names no shards; give a folder or a pattern"):
        Shards(tmp_path / "nowhere")
    np.save(npy_shards / "shard-9.npy", np.zeros((3, 5)))
    with pytest.raises(ValueError, match=r"shard-9\.npy has rows of shape \(5,\), but .*shard-0\.npy has \(64,\)"):
        list(Shards(npy_shards))


def test_a_folder_of_images_is_not_a_folder_of_shards(photographs_in_folders, tmp_path):
    assert shard_files(photographs_in_folders) == []
    np.save(tmp_path / "stray.npy", np.zeros((2, 8, 8)))
    Image.new("L", (9, 9)).save(tmp_path / "1.png")
    assert shard_files(tmp_path) == []


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
    assert_array_equal(Z, np.load(whole)["features"])
    assert labels == np.load(whole)["labels"].tolist()
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
