"""Readers of official files: the right pixels in the right place, and no damaged file taken for data."""

import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_sample_images

from orbitpool.datasets import DataCorrupt, cifar10, dataset, mnist, objects, stl10, write_stl10_32


def test_mnist_is_what_was_written(mnist_folder, written):
    images, labels = written
    data = mnist(mnist_folder)
    assert_array_equal(data.X_train, images[:1500])
    assert_array_equal(data.X_test, images[1500:])
    assert_array_equal(np.concatenate([data.y_train, data.y_test]), labels)
    assert data.X_train.dtype == np.uint8
    assert data.X_train.flags.writeable
    assert data.y_train.dtype == np.int64


def test_only_the_published_content_is_official(mnist_folder, monkeypatch):
    data = mnist(mnist_folder)
    assert data.provenance == "stand-in"
    assert "checksum differs" in data.source
    content = dataset.fingerprint(data.X_train, data.y_train, data.X_test, data.y_test)
    monkeypatch.setitem(dataset.OFFICIAL, "mnist", content)
    data = mnist(mnist_folder)
    assert data.provenance == "official"
    assert str(mnist_folder) in data.source


@pytest.mark.parametrize(
    ("name", "damage", "told"),
    [
        ("train-images-idx3-ubyte.gz", lambda b: b[: len(b) // 2], "is damaged"),
        ("train-images-idx3-ubyte.gz", lambda b: b[:50] + bytes([b[50] ^ 255]) + b[51:], "is damaged"),
        ("train-images-idx3-ubyte.gz", lambda b: b"<html>not found</html>", "is damaged"),
        ("train-images-idx3-ubyte.gz", lambda b: gzip.compress(gzip.decompress(b)[:-5]), "1,175,995 bytes and annou"),
        ("train-images-idx3-ubyte.gz", lambda b: gzip.compress(b"\0\0\x08\x01" + bytes(100)), "begins with 00000801"),
        ("train-labels-idx1-ubyte", lambda b: b[:-1], "1,499 bytes and announces 1,500"),
        ("train-labels-idx1-ubyte", lambda b: b"", "begins with"),
        ("train-labels-idx1-ubyte", lambda b: b[:8] + bytes([10]) + b[9:], "labels up to 10"),
        ("train-labels-idx1-ubyte", lambda b: b[:4] + b"\0\0\0\x02\x01\x02", "2 labels up to 2 for the 1500 images"),
    ],
)
def test_a_damaged_mnist_is_refused_by_name(name, damage, told, mnist_folder):
    path = mnist_folder / "mnist" / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataCorrupt, match=told) as caught:
        mnist(mnist_folder)
    assert str(path) in str(caught.value)
    assert "delete" in str(caught.value)


def patches(count, size, seed):
    """Patches of real photographs in colour, (count, size, size, 3) bytes, and labels from 0 to 9."""
    rng, photographs = np.random.default_rng(seed), load_sample_images().images
    corners = rng.integers(0, 427 - size, (count, 2))
    images = [photographs[i % 2][y : y + size, x : x + size] for i, (y, x) in enumerate(corners)]
    return np.stack(images), rng.permutation(count).astype(np.uint8) % 10


@pytest.fixture
def cifar_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "CIFAR_RECORDS", 20)
    images, labels = patches(120, 32, 0)
    records = np.column_stack([labels, images.transpose(0, 3, 1, 2).reshape(120, -1)])
    (tmp_path / "cifar-10-batches-bin").mkdir()
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    for i, name in enumerate(names):
        records[20 * i : 20 * (i + 1)].tofile(tmp_path / "cifar-10-batches-bin" / name)
    return tmp_path


def test_cifar10_is_what_was_written(cifar_folder):
    images, labels = patches(120, 32, 0)
    data = cifar10(cifar_folder)
    assert_array_equal(data.X_train, images[:100])
    assert_array_equal(data.X_test, images[100:])
    assert_array_equal(np.concatenate([data.y_train, data.y_test]), labels)
    assert (data.y_train.dtype, data.provenance) == (np.int64, "stand-in")


@pytest.mark.parametrize(
    ("damage", "told"),
    [(lambda b: b[:-3073], "has 58,387 bytes; 20 records of 3,073"), (lambda b: b"\x0b" + b[1:], "label outside.*11")],
)
def test_a_damaged_cifar10_is_refused_by_name(damage, told, cifar_folder):
    path = cifar_folder / "cifar-10-batches-bin/data_batch_3.bin"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataCorrupt, match=told) as caught:
        cifar10(cifar_folder)
    assert str(path) in str(caught.value)


@pytest.fixture
def stl_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "STL_SIZES", (40, 30))
    monkeypatch.setattr(objects, "STL_FOLDS", (10, 8))
    room = tmp_path / "stl10_binary"
    room.mkdir()
    images, labels = patches(70, 96, 1)
    for part, rows in (("train", slice(40)), ("test", slice(40, None))):
        images[rows].transpose(0, 3, 2, 1).tofile(room / f"{part}_X.bin")  # column by column in each plane
        (labels[rows] + 1).tofile(room / f"{part}_y.bin")
    np.savetxt(room / "fold_indices.txt", np.arange(80).reshape(10, 8) % 40, fmt="%d")
    return tmp_path


def test_stl10_is_the_rounded_mean_over_nine_pixels(stl_folder):
    images, labels = patches(70, 96, 1)
    data = stl10(stl_folder)
    mean = images.reshape(70, 32, 3, 32, 3, 3).mean((2, 4)).round()
    assert_array_equal(np.concatenate([data.X_train, data.X_test]), mean)
    assert_array_equal(np.concatenate([data.y_train, data.y_test]), labels)
    assert_array_equal(data.folds, np.arange(80).reshape(10, 8) % 40)
    assert "averaged" in data.source


def test_the_prepared_stl10_is_the_same_and_enough(stl_folder):
    before = stl10(stl_folder)
    path = write_stl10_32(stl_folder)
    for file in (stl_folder / "stl10_binary").iterdir():
        file.unlink()
    after = stl10(stl_folder)
    for name in ("X_train", "y_train", "X_test", "y_test", "folds"):
        assert_array_equal(getattr(after, name), getattr(before, name))
        assert getattr(after, name).dtype == getattr(before, name).dtype
    assert path == stl_folder / "stl10-32.npz"
    assert [p.name for p in stl_folder.iterdir() if p.is_file()] == [path.name]
    assert str(path) in after.source


def test_the_first_images_are_a_data_set_too(stl_folder):
    data = stl10(stl_folder)
    part = data.first(train=7, test=100, valid=3)
    assert_array_equal(part.X_train, data.X_train[:7])
    assert_array_equal(part.y_train, data.y_train[:7])
    assert (len(part.y_test), part.X_valid, part.folds, part.provenance) == (30, None, None, data.provenance)
    assert part.source.endswith("only the first 7 train")
    assert data.first(train=40, test=20).folds is data.folds
    with pytest.raises(ValueError, match=r"\{'tests': 3\}; give 1 or more for train, valid or test"):
        data.first(tests=3)


@pytest.mark.parametrize(
    ("name", "damage", "told"),
    [
        ("train_X.bin", lambda b: b[:-1], "bytes; 40 records of 27,648"),
        ("test_y.bin", lambda b: b"\0" + b[1:], "label outside its ten classes"),
        ("fold_indices.txt", lambda b: b[:-30], "is damaged"),
        ("fold_indices.txt", lambda b: b.replace(b"39", b"40"), "rows 0 to 40"),
        ("fold_indices.txt", lambda b: b"\n".join(b.split(b"\n")[:5]), r"folds \(5, 8\)"),
    ],
)
def test_a_damaged_stl10_is_refused_by_name(name, damage, told, stl_folder):
    path = stl_folder / "stl10_binary" / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataCorrupt, match=told) as caught:
        stl10(stl_folder)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("damage", [lambda b: b[:-100], lambda b: b"no archive", lambda b: b"", "shape", "key"])
def test_a_damaged_prepared_stl10_is_refused(damage, stl_folder):
    path = write_stl10_32(stl_folder)
    if callable(damage):
        path.write_bytes(damage(path.read_bytes()))
    else:
        with np.load(path) as file:
            arrays = dict(file)
        arrays["x_train"] = arrays["x_train"][:, :31]
        np.savez(path, **{k: v for k, v in arrays.items() if damage == "shape" or k != "folds"})
    with pytest.raises(DataCorrupt, match="write_stl10_32"):
        stl10(stl_folder)
