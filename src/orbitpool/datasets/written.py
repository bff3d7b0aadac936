"""Handwritten digits: MNIST from its idx files, its six variations, official or rebuilt, and scikit-learn's, turned."""

from __future__ import annotations

import gzip
import zlib
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orbitpool.datasets.dataset import Dataset, Labels, Provenance, from_files
from orbitpool.datasets.photographs import natural_images
from orbitpool.datasets.store import DataCorrupt, DataMissing, Folder, data_dir, files, find
from orbitpool.datasets.variations import check_variation, make_variation

IDX_MOST = 2**26  # bytes; the largest file of MNIST has 47 million
SIZES = (10_000, 2_000, 50_000)  # training, validation and test images of a variation
_PAGE = "http://www.iro.umontreal.ca/~lisa/twiki/bin/view.cgi/Public/MnistVariations"
_AMAT = {
    "rot": "mnist_all_rotation_normalized_float",
    "rot-bgimg": "mnist_all_background_images_rotation_normalized",
}
_AMAT_ROOMS = (".", "mnist_rotation_new", "mnist_rotation_back_image_new", "mnist-variations", "mnist")


def mnist(folder: Folder | None = None) -> Dataset:
    """MNIST: uint8 images (60000, 28, 28) and (10000, 28, 28).

    Parameters
    ----------
    folder : path, optional
        The data folder; see `data_dir`.
    """
    paths = files("mnist", folder)
    train, test = (
        _pair(paths[f"{part}-images-idx3-ubyte"], paths[f"{part}-labels-idx1-ubyte"]) for part in ("train", "t10k")
    )
    return from_files(
        "mnist", f"MNIST read from the idx files in {paths['train-images-idx3-ubyte'].parent}", train, test
    )


def turned_digits(seed: int = 0) -> Dataset:
    """scikit-learn's 1,797 small digits, turned by any angle: float32 images (N, 16, 16) in [0, 1], nothing to fetch.

    Parameters
    ----------
    seed : int
        In what order, and by what angles.
    """
    from scipy import ndimage
    from sklearn.datasets import load_digits

    rng, digits = np.random.default_rng(seed), load_digits()
    upright = [np.pad(ndimage.zoom(image / 16, 1.5, order=1), 2) for image in digits.images]
    turned = [ndimage.rotate(image, rng.uniform(0, 360), reshape=False, order=1) for image in upright]
    order = rng.permutation(len(turned))
    X, y = np.stack(turned).clip(0, 1).astype(np.float32)[order], digits.target[order].astype(np.int64)
    source = "the digits that come with scikit-learn, enlarged and turned by any angle"
    return Dataset("turned digits", "stand-in", source, X[:1300], y[:1300], X[1300:], y[1300:])


def mnist_variation(name: str, seed: int = 0, folder: Folder | None = None) -> Dataset:
    """Digits that are turned, scaled or shifted: float32 images (N, 28, 28) in [0, 1], N = 10000, 2000 and 50000.

    *rot* and *rot-bgimg* are read from the official files if these are in the data folder. Otherwise, and for the
    others always, disjoint digits are drawn from all 70,000 of MNIST and varied as the paper's footnote 6 says; see
    `make_variation`.

    Parameters
    ----------
    name : {"rot", "rot-bgimg", "scale", "scale-bgrand", "trans", "trans-bgrand", "tilt"}
        The variation; the last is not the paper's: turned by up to 20 degrees either way.
    seed : int
        What digits, in what pose, on what background; nothing for official files.
    folder : path, optional
        The data folder; see `data_dir`.
    """
    check_variation(name)
    home = data_dir(folder)
    return _official(name, home) or _rebuilt(name, seed, home)


def _official(name: str, home: Path) -> Dataset | None:
    """The variation as published, if its files are there."""
    names = [f"{_AMAT[name]}_{part}.amat" for part in ("train_valid", "test")] if name in _AMAT else []
    found = find(home, _AMAT_ROOMS, names)
    if not found:
        return None
    if missing := [n for n in names if n not in found]:
        raise DataMissing(
            f"mnist {name} needs {missing[0]} beside {found.popitem()[1]}; put it there, from {_PAGE}, "
            "or move the other file away to have the data set rebuilt from MNIST"
        )
    train, valid, test = SIZES
    X, y = _read_amat(found[names[0]], train + valid)
    X_test, y_test = _read_amat(found[names[1]], test)
    place = found[names[0]].parent
    source = f"the MNIST variations of Larochelle et al. (2007), read from {place} (no checksum is published)"
    return Dataset(name, "official", source, X[:train], y[:train], X_test, y_test, X[train:], y[train:])


def _rebuilt(name: str, seed: int, home: Path) -> Dataset:
    """The variation made from MNIST by a seed."""
    digits = mnist(home)
    X, y = np.concatenate([digits.X_train, digits.X_test]), np.concatenate([digits.y_train, digits.y_test])
    if len(X) < sum(SIZES):
        raise DataCorrupt(
            f"the MNIST files in {home} hold {len(X):,} digits and a variation takes {sum(SIZES):,} of 70,000; "
            "delete them to have the published ones fetched"
        )
    photographs, _, origin = natural_images(home) if name.endswith("bgimg") else (None, None, "")
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(X))[: sum(SIZES)]
    images, _ = make_variation(name, X[chosen], rng, photographs)
    cuts = np.cumsum(SIZES)[:-1]
    (train, valid, test), labels = np.split(images, cuts), np.split(y[chosen], cuts)
    provenance: Provenance = "rebuilt" if digits.provenance == "official" else "stand-in"
    source = f"made with seed {seed} from {digits.source}" + (f", on patches of {origin}" if origin else "")
    return Dataset(name, provenance, source, train, labels[0], test, labels[2], valid, labels[1])


def _pair(images: Path, labels: Path) -> tuple[NDArray[np.uint8], Labels]:
    X, y = _read_idx(images, 3), _read_idx(labels, 1)
    if len(X) != len(y) or y.max(initial=0) > 9:
        raise DataCorrupt(
            f"{labels} holds {len(y)} labels up to {y.max(initial=0)} for the {len(X)} images of {images.name}; "
            "as many labels from 0 to 9 are needed: delete both to have them fetched again"
        )
    return X, y.astype(np.int64)


def _read_idx(path: Path, ndim: int) -> NDArray[np.uint8]:
    """The array in an idx file of bytes, packed or not; three dimensions are images of 28 x 28."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(IDX_MOST + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataCorrupt(f"{path} is damaged ({error}); delete it to have it fetched again") from error
    if len(data) > IDX_MOST:
        raise DataCorrupt(
            f"{path} holds more than {IDX_MOST:,} bytes, which no MNIST file does; delete it to have it fetched again"
        )
    head = 4 + 4 * ndim
    magic, *shape = np.frombuffer(data[:head].ljust(head, b"\0"), ">u4").tolist()
    if magic != 0x0800 + ndim or shape[1:] not in ([], [28, 28]):
        raise DataCorrupt(
            f"{path} begins with {data[:head].hex(' ', 4)}; an idx file of {ndim}-dimensional MNIST bytes begins with "
            f"{0x0800 + ndim:08x}{', a count and twice 0000001c' if ndim == 3 else ''}: "
            "delete it to have it fetched again"
        )
    if len(data) != head + prod(shape):
        raise DataCorrupt(
            f"{path} holds {len(data) - head:,} bytes and announces {prod(shape):,}; delete it to have it fetched again"
        )
    return np.frombuffer(bytearray(data), np.uint8, offset=head).reshape(shape)


def _read_amat(path: Path, rows: int) -> tuple[NDArray[np.float32], Labels]:
    """Images (rows, 28, 28) and labels (rows,) of a file with 784 pixels, row by row, and a label in each line."""
    try:
        table = np.loadtxt(path, np.float32, ndmin=2, max_rows=rows + 1)
    except (ValueError, EOFError, zlib.error) as error:
        raise DataCorrupt(f"{path} is damaged ({error}); unpack it again from the files of {_PAGE}") from error
    if table.shape != (rows, 785):
        raise DataCorrupt(
            f"{path} holds {table.shape[0]} lines of {table.shape[1]} numbers; {rows} lines of 784 pixels and a label "
            f"are needed: unpack it again from the files of {_PAGE}"
        )
    X, y = table[:, :-1].reshape(rows, 28, 28), table[:, -1]
    if not ((X >= 0) & (X <= 1)).all() or not np.isin(y, np.arange(10)).all():
        raise DataCorrupt(
            f"{path} has pixels from {X.min():g} to {X.max():g} and labels from {y.min():g} to {y.max():g}; pixels in "
            f"[0, 1] and labels 0 to 9 are needed: unpack it again from the files of {_PAGE}"
        )
    return X, y.astype(np.int64)
