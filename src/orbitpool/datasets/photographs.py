"""Photographs: the van Hateren images or what stands in for them, and folders of images."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orbitpool.datasets.dataset import Provenance
from orbitpool.datasets.store import DataCorrupt, DataMissing, Folder, data_dir
from orbitpool.imagefiles import decode_image, endings

_IML = (1024, 1536)  # rows and columns of a van Hateren image
OUTSIDE, CLOSED = "lies outside the class folders", "may not be read"
_IML_ROOMS = ("vanhateren", "van_hateren", "natural", ".")


class ImageFolder(NamedTuple):
    """Images out of a folder, and what could not be read.

    `images` are uint8 arrays (H, W, 3), or (H, W) in grey, one a file; `labels` (N,) number the class folders, whose
    `names` are sorted, and are None where there are none; `files` are the paths; `problems` are (path, reason).
    """

    images: list[NDArray[np.uint8]]
    labels: NDArray[np.int64] | None
    names: tuple[str, ...]
    files: list[Path]
    problems: list[tuple[Path, str]]


def natural_images(folder: Folder | None = None, most: int = 50) -> tuple[list[NDArray[np.float32]], Provenance, str]:
    """Grey photographs, (H, W) in [0, 1] each, their provenance, and a sentence on their source.

    The van Hateren images (.iml, linear in intensity, each divided by its maximum) if they are in the data folder;
    else `natural/*.tiff` there; else the two photographs that come with scikit-learn.

    Parameters
    ----------
    folder : path, optional
        The data folder; see `data_dir`.
    most : int
        How many to read at most, spread evenly over the files in the order of their names.
    """
    if most < 1:
        raise ValueError(f"most is {most}; it must be 1 or more")
    home = data_dir(folder)
    if paths := [p for room in _IML_ROOMS for p in sorted((home / room).glob("*.iml"))]:
        paths = _spread(paths, most)
        return [_read_iml(p) for p in paths], "official", f"{len(paths)} van Hateren images in {paths[0].parent}"
    if paths := sorted((home / "natural").glob("*.tif*")):
        paths = _spread(paths, most)
        images = [_scaled(read_image(p, grey=True)) for p in paths]
        return images, "stand-in", f"{len(paths)} grey photographs in {paths[0].parent}"
    return sample_photographs()[:most], "stand-in", "the photographs that come with scikit-learn, in grey"


def sample_photographs() -> list[NDArray[np.float32]]:
    """The two photographs that come with scikit-learn, in grey, (427, 640) in [0, 1] each."""
    from sklearn.datasets import load_sample_images

    return [_scaled(image.mean(-1)) for image in load_sample_images().images]


def image_folder(path: Folder, grey: bool = False, strict: bool = False) -> ImageFolder:
    """All images below a folder, (H, W, 3) or (H, W) in bytes, with labels if they lie in class subfolders.

    Parameters
    ----------
    path : path
        The folder; if images lie in subfolders, each of these is a class.
    grey : bool
        Whether to turn colours into grey.
    strict : bool
        Whether a file that cannot be read is an error; else it is left out and listed in `problems`.
    """
    top, (groups, left) = Path(path).expanduser(), class_files(path)
    if strict and left:
        raise DataCorrupt(f"{top / left[0][0]} {left[0][1]}; mend that, or take it away")
    names = tuple(name for name in groups if name)
    found = ImageFolder([], None, names, [], [(top / name, reason) for name, reason in left])
    labels: list[int] = []
    for label, files in enumerate(groups.values()):
        for file in files:
            labels += [label] * _append(found, top / file, grey, strict)
    return found._replace(labels=np.array(labels, np.int64)) if names else found


def class_files(path: Folder) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """The image files below a folder by class, as names from there, sorted; what is left out, and the reason.

    Every subfolder with images is a class; if there is none, the folder's own images are the one class "". Left out are
    images beside class folders, and folders that may not be read.
    """
    top = Path(path).expanduser()
    if not top.is_dir():
        raise DataMissing(f"{top} is not a folder; give one that holds images, or subfolders with images")
    loose, folders = _entries(str(top), links=True)
    shown = [name for name in folders if not name.startswith((".", "__MACOSX"))]
    closed: list[str] = []
    classes = {name: files for name in shown if (files := list(_below(str(top), name, closed)))}
    left = [(name, CLOSED) for name in closed]
    if not classes and not loose:
        why = f", and {', '.join(closed)} {CLOSED}" if closed else ""
        raise DataMissing(
            f"{top} holds no images{why}; give a folder with images (such as .png, .jpg) or class subfolders"
        )
    return (classes, left + [(name, OUTSIDE) for name in loose]) if classes else ({"": loose}, left)


def _below(top: str, folder: str, closed: list[str]) -> Iterator[str]:
    """The names of all images below a folder, from the top, in the order of their paths; notes what is closed."""
    try:
        files, folders = _entries(os.path.join(top, folder))
    except PermissionError:
        closed.append(folder)
        return
    inside = set(folders)
    for name in sorted(files + folders) if folders else files:
        path = f"{folder}{os.sep}{name}"
        if name in inside:
            yield from _below(top, path, closed)
        else:
            yield path


def _entries(folder: str, links: bool = False) -> tuple[list[str], list[str]]:
    """The names of a folder's own images and of its folders, sorted.

    Nothing but names is kept, since there may be millions. Links to folders count where `links` are followed.
    """
    known, files, folders = endings(), [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if _is_dir(entry):
                if links or not entry.is_symlink():
                    folders.append(entry.name)
            elif os.path.splitext(entry.name)[1].lower() in known and entry.name[0] != ".":
                files.append(entry.name)
    return sorted(files), sorted(folders)


def _is_dir(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, or a link to one; not if a link leads nowhere, or where nobody may look."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _append(found: ImageFolder, file: Path, grey: bool, strict: bool) -> int:
    """Add an image, or the reason why not; how many were added."""
    try:
        found.images.append(read_image(file, grey))
    except DataCorrupt as problem:
        if strict:
            raise
        found.problems.append((file, str(problem.__cause__)))
        return 0
    found.files.append(file)
    return 1


def read_image(path: Path, grey: bool) -> NDArray[np.uint8]:
    """An image file upright in bytes, (H, W) in grey or (H, W, 3)."""
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is no plain file")
        return decode_image(path, grey)
    except (OSError, ValueError) as error:
        raise DataCorrupt(
            f"{path} cannot be read as an image ({error}); restore it from a copy or take it away"
        ) from error


def _read_iml(path: Path) -> NDArray[np.float32]:
    """A van Hateren image, (1024, 1536), divided by its maximum."""
    data, rows, columns = path.read_bytes(), *_IML
    if len(data) != 2 * rows * columns:
        raise DataCorrupt(
            f"{path} has {len(data):,} bytes; a van Hateren image has {2 * rows * columns:,} ({columns}x{rows} numbers "
            "of two bytes): restore it from a copy or take it away"
        )
    image = np.frombuffer(data, ">u2").reshape(_IML).astype(np.float32)
    image /= max(image.max(), 1)
    return image


def _scaled(image: NDArray[Any]) -> NDArray[np.float32]:
    return (image / 255).astype(np.float32)


def _spread(paths: list[Path], most: int) -> list[Path]:
    """At most so many of the paths, evenly spaced."""
    return [paths[i] for i in np.linspace(0, len(paths) - 1, min(most, len(paths))).round().astype(int)]
