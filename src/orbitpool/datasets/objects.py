"""Objects in colour: CIFAR-10 and STL-10 from their binary files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.arrayfiles import read_npz
from orbitpool.datasets.dataset import Dataset, Labels, from_files
from orbitpool.datasets.store import DataCorrupt, Folder, data_dir, files, find
from orbitpool.wholefile import whole

CIFAR_RECORDS = 10_000  # images in each of the six files
STL_SIZES = (5_000, 8_000)  # training and test images
STL_FOLDS = (10, 1_000)
STL_CLASSES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
_PREPARED = "stl10-32.npz"
_Split = tuple[NDArray[np.uint8], Labels]


def cifar10(folder: Folder | None = None) -> Dataset:
    """CIFAR-10: uint8 images (50000, 32, 32, 3) and (10000, 32, 32, 3).

    Parameters
    ----------
    folder : path, optional
        The data folder; see `data_dir`.
    """
    paths = files("cifar10", folder)
    batches = [_read_cifar(paths[f"data_batch_{i}.bin"]) for i in range(1, 6)]
    train = np.concatenate([X for X, _ in batches]), np.concatenate([y for _, y in batches])
    source = f"CIFAR-10 read from the binary files in {paths['test_batch.bin'].parent}"
    return from_files("cifar10", source, train, _read_cifar(paths["test_batch.bin"]))


def stl10(folder: Folder | None = None) -> Dataset:
    """The labelled part of STL-10 at 32x32: uint8 images (5000, 32, 32, 3) and (8000, 32, 32, 3), folds (10, 1000).

    Read from stl10-32.npz if that is in the data folder, else made from the official files by averaging 3x3 pixels.

    Parameters
    ----------
    folder : path, optional
        The data folder; see `data_dir`.
    """
    home = data_dir(folder)
    prepared = find(home, (".", "stl10"), (_PREPARED,)).get(_PREPARED)
    if prepared is not None:
        train, test, folds = _read_prepared(prepared)
        return from_files("stl10", f"STL-10 at 32x32 read from {prepared}", train, test, folds)
    return _from_96(home)


def write_stl10_32(folder: Folder | None = None) -> Path:
    """The path of stl10-32.npz, written into the data folder from the official 96x96 files.

    Parameters
    ----------
    folder : path, optional
        The data folder; see `data_dir`.
    """
    home = data_dir(folder)
    small = _from_96(home)
    arrays: dict[str, NDArray[Any]] = {
        "x_train": small.X_train,
        "y_train": small.y_train.astype(np.uint8),
        "x_test": small.X_test,
        "y_test": small.y_test.astype(np.uint8),
        "folds": np.asarray(small.folds, np.int32),
        "class_names": np.array(STL_CLASSES),
    }
    with whole(home / _PREPARED) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    return home / _PREPARED


def _from_96(home: Path) -> Dataset:
    """STL-10 at 32x32 out of its official files."""
    paths = files("stl10", home)
    train, test = (
        (_read_stl_images(paths[f"{part}_X.bin"], n), _read_stl_labels(paths[f"{part}_y.bin"], n))
        for part, n in zip(("train", "test"), STL_SIZES, strict=True)
    )
    source = f"STL-10 read from the binary files in {paths['train_X.bin'].parent} and averaged over 3x3 pixels to 32x32"
    return from_files("stl10", source, train, test, _read_folds(paths["fold_indices.txt"]))


def _read_cifar(path: Path) -> _Split:
    """Images (N, 32, 32, 3) and labels (N,) of one binary file: a label, then planes of red, green and blue."""
    records = _read_bytes(path, CIFAR_RECORDS, 3073).reshape(CIFAR_RECORDS, 3073)
    images = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), _labels(path, records[:, 0])


def _read_stl_images(path: Path, count: int) -> NDArray[np.uint8]:
    """Images (count, 32, 32, 3): means over 3x3 pixels, rounded, of planes that are stored column by column."""
    pixels = _read_bytes(path, count, 3 * 96 * 96).reshape(count, 3, 32, 3, 32, 3)
    small = np.empty((count, 32, 32, 3), np.uint8)
    for start in range(0, count, 500):
        sums = pixels[start : start + 500].sum((3, 5), dtype=np.uint16)
        small[start : start + 500] = ((sums + 4) // 9).transpose(0, 3, 2, 1)  # a ninth is never half-way
    return small


def _read_stl_labels(path: Path, count: int) -> Labels:
    """Labels (count,) from 0; the file counts from 1."""
    return _labels(path, _read_bytes(path, count, 1) - np.uint8(1))


def _read_folds(path: Path) -> NDArray[np.int64]:
    """The rows of the training set in each fold, (10, 1000)."""
    try:
        folds = np.loadtxt(path, np.int64, ndmin=2, max_rows=STL_FOLDS[0] + 1)
    except ValueError as error:
        raise DataCorrupt(f"{path} is damaged ({error}); delete it to have it fetched again") from error
    return _check_folds(path, folds)


def _read_prepared(path: Path) -> tuple[_Split, _Split, NDArray[np.int64]]:
    """What `write_stl10_32` wrote."""
    try:
        file = read_npz(path)
        x_train, y_train, x_test, y_test = (file[f"{a}_{part}"] for part in ("train", "test") for a in "xy")
        folds = file["folds"].astype(np.int64)
    except (ValueError, KeyError, TypeError) as error:
        raise DataCorrupt(f"{path} is damaged ({error}); delete it and write it again by write_stl10_32") from error
    for X, y, n in zip((x_train, x_test), (y_train, y_test), STL_SIZES, strict=True):
        if X.shape != (n, 32, 32, 3) or X.dtype != np.uint8 or y.shape != (n,):
            raise DataCorrupt(
                f"{path} holds images {X.shape} {X.dtype} with labels {y.shape}; {(n, 32, 32, 3)} uint8 with {(n,)} "
                "are needed: delete it and write it again by write_stl10_32"
            )
    return (x_train, _labels(path, y_train)), (x_test, _labels(path, y_test)), _check_folds(path, folds)


def _read_bytes(path: Path, count: int, size: int) -> NDArray[np.uint8]:
    """All bytes of a file of `count` records of a size, (count size,), mapped and not yet read."""
    found = path.stat().st_size
    if found != count * size:
        raise DataCorrupt(
            f"{path} has {found:,} bytes; {count:,} records of {size:,} bytes, {count * size:,} in all, are needed: "
            "delete it to have it fetched again"
        )
    return np.memmap(path, np.uint8, "r")


def _labels(path: Path, labels: NDArray[Any]) -> Labels:
    if labels.max() > 9:
        raise DataCorrupt(
            f"{path} has a label outside its ten classes ({labels.max()}, counted from 0); delete it to have it again"
        )
    return np.array(labels, np.int64)


def _check_folds(path: Path, folds: NDArray[np.int64]) -> NDArray[np.int64]:
    if folds.shape != STL_FOLDS or folds.min() < 0 or folds.max() >= STL_SIZES[0]:
        raise DataCorrupt(
            f"{path} holds folds {folds.shape} of rows {folds.min(initial=0)} to {folds.max(initial=0)}; {STL_FOLDS} "
            f"of rows 0 to {STL_SIZES[0] - 1} are needed: delete it to have it again"
        )
    return folds
