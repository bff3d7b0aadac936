"""A user's images: in folders, tables or arrays, read when they are asked for, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.arrayfiles import read_npy, read_npz
from orbitpool.datasets.photographs import class_files, read_image
from orbitpool.datasets.store import DataCorrupt, DataMissing
from orbitpool.imagefiles import endings
from orbitpool.learners.checks import one_of
from orbitpool.shards import Chained, Groups, Together, open_shard, shard_files
from orbitpool.tables import rows

Bytes = NDArray[np.uint8]

SMALLEST, LARGEST = 12, 64  # pixels a side
SHOWN = 100  # of what is left out


class Images:
    """N images by name and label ("" where there is none); `problems` are (name, reason) of those that are left out.

    Parameters
    ----------
    names, labels : N strings
    get : callable
        The image (H, W[, 3]) at a place; raises DataCorrupt if it cannot be read.
    strict : bool
        Whether what cannot be read is an error.
    problems : (name, reason) of what is known to be left out
    """

    def __init__(
        self,
        names: Sequence[str],
        labels: Sequence[str],
        get: Callable[[int], Bytes],
        strict: bool,
        problems: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.names, self.labels, self.strict, self.problems = names, labels, strict, list(problems)
        self._get = get
        if strict and self.problems:
            name, reason = self.problems[0]
            raise DataCorrupt(f"{name} {reason}; take it away, or leave out --strict")

    def __len__(self) -> int:
        return len(self.names)

    def read(self, places: Iterable[int]) -> tuple[list[int], list[Bytes]]:
        """Those places whose images can be read, and the images, (H, W, 3) each, of a moderate size."""
        there, images = [], []
        for i in places:
            try:
                image = self._get(i)
            except DataCorrupt as problem:
                if self.strict:
                    raise
                self.problems.append((self.names[i], str(problem.__cause__)))
                continue
            there.append(i)
            images.append(shaped(image, grey=False, size=moderate(image.shape[0], image.shape[1])))
        return there, images

    def in_words(self) -> list[str]:
        """How many images were left out, and why each of them was, or the first hundred."""
        each, count = [f"  {name}: {reason}" for name, reason in self.problems[:SHOWN]], len(self.problems)
        more = [f"  and {count - SHOWN:,} more"] if count > SHOWN else []
        return [f"left out {count:,} (--strict would stop there):", *each, *more]


def open_images(source: Path, strict: bool) -> Images:
    """The images of a folder, of a CSV with the columns file and, if you like, label, of an array, or of shards."""
    if shards := shard_files(source):
        return _shards(shards, strict)
    if source.is_dir():
        return _folder(source, strict)
    if source.suffix.lower() in endings():
        raise ValueError(f"{source} is one image; give the folder that it lies in")
    one_of(f"{source} is no folder, and its ending", source.suffix, OPENERS)
    return OPENERS[source.suffix](source, strict)


def shaped(image: Bytes, grey: bool, size: tuple[int, int]) -> Bytes:
    """An image brought to a size, (H, W) in grey or (H, W, 3), antialiased where it shrinks."""
    from PIL import Image

    picture = Image.fromarray(image).convert("L" if grey else "RGB")
    return np.array(picture.resize(size[::-1], Image.Resampling.BILINEAR))


def moderate(height: int, width: int) -> tuple[int, int]:
    """The size nearest to an image's own whose longer side has at most 64 pixels and whose shorter at least 12."""
    scale = min(1.0, LARGEST / max(height, width))
    return max(SMALLEST, round(height * scale)), max(SMALLEST, round(width * scale))


def _folder(source: Path, strict: bool) -> Images:
    try:
        groups, left = class_files(source)
    except DataMissing as error:
        raise DataMissing(f"{error}; for sound give a table of file,start,end") from error
    names = [name for files in groups.values() for name in files]
    labels = [label for label, files in groups.items() for _ in files]
    return _files(source, names, labels, strict, [(str(source / name), why) for name, why in left])


def _table(source: Path, strict: bool) -> Images:
    top, names, labels = source.parent, [], []
    for _, row in rows(source, ("file",), ("label",)):
        file = top / row["file"]
        names.append(str(file.relative_to(top) if file.is_relative_to(top) else file))
        labels.append(row.get("label", ""))
    if not names:
        raise ValueError(f"{source} has no rows below its header; give one an image: file,label")
    return _files(top, names, labels, strict)


def _files(top: Path, names: Sequence[str], labels: Sequence[str], strict: bool, problems: Any = ()) -> Images:
    return Images(names, labels, lambda i: read_image(top / names[i], grey=False), strict, problems)


def _shards(files: Sequence[Path], strict: bool) -> Images:
    """The images in .npy, .tar or .parquet files; those of a file that is damaged as a whole are left out."""
    opened, problems, groups = [], [], Groups()
    for path in files:
        try:
            opened.append(open_shard(path, groups))
        except ValueError as error:
            if strict:
                raise
            problems.append((str(path), str(error)))
    held = Together(opened)

    def get(i: int) -> Bytes:
        shard, place = held.at(i)
        try:
            return shard.value(place, grey=False)
        except (OSError, ValueError) as error:
            raise DataCorrupt(
                f"{shard.names[place]} in {shard.path} cannot be read as an image ({error}); take it away"
            ) from error

    if not len(held):
        raise ValueError(f"none of {len(files)} shards can be read: {problems[0][1]}")
    return Images(Chained([s.names for s in opened]), Chained([s.labels for s in opened]), get, strict, problems)


def _array(source: Path, strict: bool) -> Images:
    """An array (N, H, W[, 1 or 3]) of numbers from 0 to 1 or from 0 to 255, with labels if an .npz has them."""
    images, labels = load_array(source)
    if images.ndim not in (3, 4) or 0 in images.shape or images.shape[3:] not in ((), (1,), (3,)):
        raise ValueError(f"{source} has shape {images.shape}; give (N, H, W), (N, H, W, 1) or (N, H, W, 3), none 0")
    low, high = float(images.min()), float(images.max())
    if not 0 <= low <= high <= 255:
        raise ValueError(f"{source} has values from {low:g} to {high:g}; give pixels from 0 to 1 or from 0 to 255")
    scale = 255 if high <= 1 else 1

    def get(i: int) -> Bytes:
        pixels: Bytes = np.rint(np.asarray(images[i], np.float32) * scale).astype(np.uint8)
        return pixels[..., 0] if pixels.shape[2:] == (1,) else pixels

    return Images([f"{source.name}[{i}]" for i in range(len(images))], labels or [""] * len(images), get, strict)


def load_array(source: Path) -> tuple[Any, list[str]]:
    """The array of a .npy file, mapped rather than read, or the images of an .npz file and their labels, if any."""
    if source.suffix == ".npy":
        return read_npy(source), []
    arrays = read_npz(source)
    images = next((arrays[name] for name in ("images", "X") if name in arrays), None)
    if images is None:
        raise ValueError(
            f"{source} holds {', '.join(arrays) or 'nothing'}; call the images 'images', and labels 'labels'"
        )
    labels = [str(label) for label in arrays.get("labels", arrays.get("y", np.array([]))).reshape(-1)]
    if labels and len(labels) != len(images):
        raise ValueError(f"{source} holds {len(images)} images and {len(labels)} labels; give one label an image")
    return images, labels


OPENERS = {".npy": _array, ".npz": _array, ".csv": _table}
