"""Data in many files, larger than memory together: to learn from and to encode."""

import os
import tarfile

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from PIL import Image
from shardfiles import encoded, tar

from orbitpool import TIOMP, TIRBM, Shards
from orbitpool.learners.shards import ShardRows
from orbitpool.shards import Groups, open_shard, shard_files
from orbitpool.shards.files import OPENERS
from orbitpool.shards.parquet import ParquetShard
from orbitpool.shards.tar import TarShard
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
