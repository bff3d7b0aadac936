"""Readers of arrays: images, transformations and features."""

import io
import zipfile
from collections.abc import Callable, Iterator
from math import pi
from pathlib import Path
from typing import Any

import numpy as np

from fire.readers.pictures import every, photograph
from fire.readers.reader import Reader, are_features, are_images, is_poses
from orbitpool import transforms as T
from orbitpool.userdata import choosing, featurefiles


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def inside_npz(
    name: str, arrays: dict[str, Any], victim: str, read: Callable[[Path], Any], check: Callable[[Any], None]
) -> Reader:
    """Damage of the first array in an .npz, whose checksums are made anew."""
    first = next(iter(arrays))
    others = {key: npy(value) for key, value in arrays.items() if key != first}

    def pack(data: bytes) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as made:
            for key, value in {first: data, **others}.items():
                made.writestr(f"{key}.npy", value)
        return file.getvalue()

    return Reader(name, {victim: npz(**arrays)}, victim, read, check, lambda _: npy(arrays[first]), pack)


def arrays() -> Iterator[Reader]:
    X, labels = (255 * photograph(16)[None].repeat(5, 0)).astype(np.uint8), np.array(list("aabbb"))
    for dtype in (np.uint8, np.float32):
        scaled = X.astype(dtype) / dtype(255) if dtype is np.float32 else X
        yield Reader(f"images .npy {np.dtype(dtype)}", {"x.npy": npy(scaled)}, "x.npy", every("x.npy"), are_images)
    arrays = {"images": X, "labels": labels}
    yield Reader("images .npz", {"x.npz": npz(**arrays)}, "x.npz", every("x.npz"), are_images)
    yield inside_npz("images in .npz", arrays, "x.npz", every("x.npz"), are_images)
    yield inside_npz("labels in .npz", dict(reversed(arrays.items())), "x.npz", every("x.npz"), are_images)
    turns = T.rotations(6, count=4, step=pi / 2).to_dense()
    yield Reader(
        "transformations .npy",
        {"t.npy": npy(turns)},
        "t.npy",
        lambda folder: choosing.choose_poses(str(folder / "t.npy"), (6, 6), whole=True),
        is_poses,
    )
    Z, columns = np.random.default_rng(2).random((6, 3), np.float32), {"file": list("uvwxyz"), "label": list("aabbcc")}
    for ending in featurefiles.READERS:
        file = io.BytesIO()
        featurefiles.WRITERS[ending](file, Z, columns)
        name = f"z{ending}"
        yield Reader(
            f"features {ending}",
            {name: file.getvalue()},
            name,
            lambda folder, name=name: featurefiles.read(folder / name),  # type: ignore[misc]
            are_features,
        )
    inside = {"features": Z, "labels": np.array(columns["label"]), "files": np.array(columns["file"])}
    yield inside_npz("features in .npz", inside, "z.npz", lambda p: featurefiles.read(p / "z.npz"), are_features)
