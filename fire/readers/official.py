"""Readers of the data sets' official files."""

import gzip
from collections.abc import Iterator
from typing import Any

import numpy as np

from fire.readers.arrays import inside_npz, npz
from fire.readers.reader import Reader, is_dataset
from orbitpool import datasets


def _idx(array: Any) -> bytes:
    return np.array([0x0800 + array.ndim, *array.shape], ">u4").tobytes() + bytes(array.tobytes())


def digits() -> Iterator[Reader]:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (5, 28, 28), np.uint8), np.arange(5, dtype=np.uint8)
    files = {f"mnist/{p}-images-idx3-ubyte": _idx(images) for p in ("train", "t10k")}
    files |= {f"mnist/{p}-labels-idx1-ubyte": _idx(labels) for p in ("train", "t10k")}
    packed = {"mnist/train-images-idx3-ubyte.gz": gzip.compress(_idx(images), 1)}
    without = {name: data for name, data in files.items() if name != "mnist/train-images-idx3-ubyte"}

    def squeeze(data: bytes) -> bytes:
        return gzip.compress(data, 1)

    yield Reader("idx images", files, "mnist/train-images-idx3-ubyte", datasets.mnist, is_dataset)
    yield Reader("idx labels", files, "mnist/t10k-labels-idx1-ubyte", datasets.mnist, is_dataset)
    gz = "mnist/train-images-idx3-ubyte.gz"
    yield Reader("idx.gz", without | packed, gz, datasets.mnist, is_dataset)
    yield Reader("idx in gz", without | packed, gz, datasets.mnist, is_dataset, gzip.decompress, squeeze)
    for part, rows in (("train_valid", 8), ("test", 4)):
        lines = [" ".join([*(f"{v:.6f}" for v in rng.random(784)), str(i % 10)]) for i in range(rows)]
        files[f"mnist/mnist_all_rotation_normalized_float_{part}.amat"] = "\n".join(lines).encode()
    yield Reader(
        ".amat",
        files,
        "mnist/mnist_all_rotation_normalized_float_test.amat",
        lambda folder: datasets.mnist_variation("rot", folder=folder),
        is_dataset,
    )


def objects() -> Iterator[Reader]:
    rng = np.random.default_rng(1)

    def records(n: int) -> bytes:
        return b"".join(bytes([i % 10]) + rng.bytes(3072) for i in range(n))

    room = "cifar10/cifar-10-batches-bin"
    cifar = {f"{room}/{name}.bin": records(4) for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")}
    yield Reader("CIFAR-10 .bin", cifar, f"{room}/data_batch_3.bin", datasets.cifar10, is_dataset)
    room = "stl10/stl10_binary"
    stl = {f"{room}/{part}_X.bin": rng.bytes(n * 27648) for part, n in (("train", 4), ("test", 6))}
    stl |= {f"{room}/{part}_y.bin": bytes(1 + i % 10 for i in range(n)) for part, n in (("train", 4), ("test", 6))}
    stl[f"{room}/fold_indices.txt"] = b"0 1 2\n1 2 3\n"
    for victim in ("train_X.bin", "test_y.bin", "fold_indices.txt"):
        yield Reader(f"STL-10 {victim}", stl, f"{room}/{victim}", datasets.stl10, is_dataset)
    arrays: dict[str, Any] = {"folds": np.array([[0, 1, 2], [1, 2, 3]])}
    for part, n in (("train", 4), ("test", 6)):
        arrays |= {f"x_{part}": rng.integers(0, 256, (n, 32, 32, 3), np.uint8), f"y_{part}": np.arange(n) % 10}
    yield Reader("STL-10 .npz", {"stl10-32.npz": npz(**arrays)}, "stl10-32.npz", datasets.stl10, is_dataset)
    yield inside_npz("STL-10 in .npz", arrays, "stl10-32.npz", datasets.stl10, is_dataset)
