"""The data folder: where files are looked for, where they are fetched from, and how they are written."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from orbitpool.progress import say
from orbitpool.wholefile import alone, whole

Folder = str | os.PathLike[str]


class DataMissing(FileNotFoundError):
    """Files that are neither in the data folder nor to be had from where they are published."""


class DataCorrupt(ValueError):
    """A file that is not what its name says."""


@dataclass(frozen=True)
class Origin:
    """Where files are published: an address, the md5 of what lies there, and the files that are in it."""

    url: str
    md5: str
    holds: tuple[str, ...]

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Collection:
    """Files that belong together, and the subfolders where they may lie; fetched ones go into the first."""

    rooms: tuple[str, ...]
    origins: tuple[Origin, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All files of the collection, unpacked."""
        return tuple(name for origin in self.origins for name in origin.holds)


def _idx(name: str, md5: str) -> Origin:
    # the first publisher's page (yann.lecun.com/exdb/mnist) no longer hands out files; these have the same md5
    return Origin(f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}.gz", md5, (name,))


COLLECTIONS = {
    "mnist": Collection(
        ("mnist", ".", "MNIST/raw"),
        (
            _idx("train-images-idx3-ubyte", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            _idx("train-labels-idx1-ubyte", "d53e105ee54ea40749a09fcbcd1e9432"),
            _idx("t10k-images-idx3-ubyte", "9fb629c4189551a2d022fa330f9573f3"),
            _idx("t10k-labels-idx1-ubyte", "ec29112dd5afa0611ce80d1b7f02629c"),
        ),
    ),
    "cifar10": Collection(
        ("cifar10/cifar-10-batches-bin", "cifar-10-batches-bin", "cifar10", "."),
        (
            Origin(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "c32a1d4ab5d03f1284b67883e8d87530",
                (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"),
            ),
        ),
    ),
    "stl10": Collection(
        ("stl10/stl10_binary", "stl10_binary", "stl10", "."),
        (
            Origin(
                "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
                "91f7769df0f17e558f3565bffb0c7dfb",
                ("train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin", "fold_indices.txt"),
            ),
        ),
    ),
}


def data_dir(path: Folder | None = None) -> Path:
    """The folder where data lie: the argument, else $ORBITPOOL_DATA, else the platform's cache."""
    chosen = os.environ.get("ORBITPOOL_DATA") if path is None or path == "" else path
    if chosen is not None and str(chosen):
        return Path(chosen).expanduser()
    try:
        import pooch  # type: ignore[import-untyped]
    except ImportError:
        return Path.home() / ".cache" / "orbitpool"
    return Path(pooch.os_cache("orbitpool"))


def files(collection: str, folder: Folder | None = None) -> dict[str, Path]:
    """The paths of all files of a collection by name; what is missing is fetched first."""
    home, wanted = data_dir(folder), COLLECTIONS[collection]
    found = find(home, wanted.rooms, wanted.names)
    for origin in wanted.origins:
        if not found.keys() >= set(origin.holds):
            _fetch_once(collection, origin, home)
            found |= find(home, wanted.rooms, origin.holds)
    return found


def _fetch_once(collection: str, origin: Origin, home: Path) -> None:
    """Fetch a published file unless another process has done so meanwhile."""
    wanted = COLLECTIONS[collection]
    try:
        home.mkdir(parents=True, exist_ok=True)
        with alone(home / origin.name, lambda: say(f"another process is fetching {origin.url}; waiting"), each=True):
            if not find(home, wanted.rooms, origin.holds).keys() >= set(origin.holds):
                _fetch(collection, origin, home)
    except DataMissing:
        raise
    except OSError as reason:  # a folder that cannot be written to
        raise DataMissing(_advice(collection, home, reason)) from reason


def find(home: Path, rooms: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """The paths of those files that are there, in the first room that has them, as they are or as .gz."""
    places = {name: [home / room / f"{name}{suffix}" for room in rooms for suffix in ("", ".gz")] for name in names}
    there = {name: next((p for p in paths if p.is_file()), None) for name, paths in places.items()}
    return {name: path for name, path in there.items() if path is not None}


def _fetch(collection: str, origin: Origin, home: Path) -> None:
    """Bring one published file into the collection's first room, and unpack it there if it is an archive."""
    wanted = COLLECTIONS[collection]
    room = home / wanted.rooms[0]
    try:
        import pooch

        pooch.get_logger().setLevel("WARNING")  # the sentence that follows says it
        say(f"fetching {origin.url} into {room}")
        archive = pooch.retrieve(origin.url, f"md5:{origin.md5}", origin.name, room)
        if tarfile.is_tarfile(archive):
            _unpack(Path(archive), origin.holds, room)
    except (ImportError, OSError) as reason:
        with suppress(OSError):
            room.rmdir()  # if nothing is in it
        raise DataMissing(_advice(collection, home, reason)) from reason
    except ValueError as reason:
        raise DataCorrupt(
            f"{origin.url} gave a file whose md5 is not {origin.md5}; try again, "
            f"or put a good {origin.name} into {room}"
        ) from reason


def _unpack(archive: Path, names: Sequence[str], room: Path) -> None:
    """Write the named files of an archive into a folder, whatever folders they have in the archive."""
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member) if Path(member.name).name in names else None
            if content is not None:
                with whole(room / Path(member.name).name) as file:
                    shutil.copyfileobj(content, file)


def _advice(collection: str, home: Path, reason: Exception) -> str:
    wanted = COLLECTIONS[collection]
    found = find(home, wanted.rooms, wanted.names)
    missing = [origin for origin in wanted.origins if not found.keys() >= set(origin.holds)]
    return (
        f"{collection} needs {', '.join(name for o in missing for name in o.holds if name not in found)}, "
        f"not found in {home} and not to be fetched ({shorten(f'{type(reason).__name__}: {reason}', 150)}); "
        f"put {', '.join(o.name for o in missing)} (or what is inside) into {home / wanted.rooms[0]}, "
        f"from {', '.join(o.url for o in missing)}"
    )
