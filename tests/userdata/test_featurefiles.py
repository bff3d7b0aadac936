"""Features in files, and out of them."""

import sys

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from orbitpool.userdata import featurefiles

Z = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
COLUMNS = {"file": ["a,b.png", "ç.png", "c.png"], "label": ["x", "y", ""]}


@pytest.mark.parametrize("ending", [".npz", ".csv", ".parquet"])
def test_what_is_read_is_what_was_written(ending, tmp_path):
    path = tmp_path / f"z{ending}"
    featurefiles.check(path)
    featurefiles.write(path, Z, COLUMNS)
    found, labels = featurefiles.read(path)
    assert_allclose(found, Z, atol=1e-6)
    assert labels == COLUMNS["label"]


def test_an_npz_is_mapped_and_numpys_own_is_read(tmp_path):
    featurefiles.write(tmp_path / "ours.npz", Z, COLUMNS)
    np.savez(tmp_path / "other.npz", features=Z, labels=COLUMNS["label"])
    ours, other = (featurefiles.read(tmp_path / name)[0] for name in ("ours.npz", "other.npz"))
    assert isinstance(ours, np.memmap)
    assert ours.offset % 64 == 0
    assert_array_equal(ours, Z)
    assert_array_equal(other, Z)
    with np.load(tmp_path / "ours.npz") as held:
        assert_array_equal(held["features"], Z)
        assert held["files"].tolist() == COLUMNS["file"]
    damaged = bytearray((tmp_path / "ours.npz").read_bytes())
    damaged[ours.offset + 7] ^= 1
    (tmp_path / "ours.npz").write_bytes(damaged)
    with pytest.raises(ValueError, match="CRC"):
        featurefiles.read(tmp_path / "ours.npz")


def test_parquet_is_a_table_for_others(tmp_path):
    featurefiles.write(tmp_path / "z.parquet", Z, COLUMNS)
    frame = pandas.read_parquet(tmp_path / "z.parquet")
    assert list(frame.columns) == ["file", "label", *(f"feature{i}" for i in range(5))]
    assert frame["file"].tolist() == COLUMNS["file"]
    assert (frame.dtypes.iloc[2:] == "float32").all()


@pytest.mark.parametrize("missing", ["pyarrow", "pandas"])
def test_parquet_says_what_it_needs_before_the_work(missing, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)  # as if it were not installed
    with pytest.raises(
        ImportError, match=rf"{missing}.*\.parquet needs pandas and pyarrow: pip install pandas pyarrow"
    ):
        featurefiles.check(tmp_path / "z.parquet")


def test_files_without_labels_are_refused(tmp_path):
    np.save(tmp_path / "z.npy", Z)
    np.savez(tmp_path / "z.npz", Z=Z)
    (tmp_path / "z.csv").write_text("file,label\na,b")
    for name, says in (
        ("z.npy", r"needs a source beside it: the ending is '\.npy'; choose one of '\.npz'"),
        ("z.npz", "is not a file that orbitpool encode wrote"),
        ("z.csv", "is not a file that orbitpool encode wrote"),
    ):
        with pytest.raises(ValueError, match=says):
            featurefiles.read(tmp_path / name)
