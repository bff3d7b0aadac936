"""The commands for a user's own data, whatever kind it is of."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from orbitpool.kernels import choose_device
from orbitpool.learners.around import to_the_end
from orbitpool.learners.checks import one_of
from orbitpool.models import load
from orbitpool.pictures import check_png, mosaic, save_png
from orbitpool.progress import say
from orbitpool.shards import shard_files
from orbitpool.tables import header, rows
from orbitpool.userdata import featurefiles, featurefolder, images, sound
from orbitpool.userdata.items import Columns
from orbitpool.userdata.judging import Judgement, judge
from orbitpool.userdata.looking import in_words, tiles
from orbitpool.wholefile import check_place, check_writable

CHECKPOINT_EVERY = 100  # updates


@dataclass(frozen=True)
class Kind:
    """A kind of data: how it is learned, which models take it, and how they encode it."""

    learn: Callable[..., Any]
    is_model: Callable[[Any], bool]
    encode: Callable[..., tuple[NDArray[Any], Columns]]
    opened: Callable[..., Any] | None = None  # for what can be encoded part by part: its items,
    encode_places: Callable[..., tuple[NDArray[Any], Columns]] | None = None  # and the features of some of them


KINDS = {
    "image": Kind(images.learn, images.is_model, images.encode, images.opened, images.encode_places),
    "sound": Kind(sound.learn, sound.is_model, sound.encode),
}


def fit(source: Path, out: Path, kind: str | None, **options: Any) -> Any:
    """A model learned from a source of data, and written to a file."""
    if not source.exists() and not shard_files(source):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
    name = kind or guess_kind(source)
    one_of("kind", name, KINDS)
    choose_device(options["device"], None)
    _check_apart(out, source)
    check_place(out)
    kept, picture = checkpoint_of(out), picture_of(out, source)
    if picture is not None:
        check_place(picture)
    if kept.exists():
        say(f"going on from {kept}, which a run that was stopped has left")
    options |= {"checkpoint": kept, "checkpoint_every": CHECKPOINT_EVERY}
    model = to_the_end(lambda: KINDS[name].learn(source, **options))
    learner = getattr(model, "learner_", model).set_params(checkpoint=None)
    model.save(out)
    if learner.discovery_ is not None and picture is None:
        say(f"no picture of how transformations were found: beside {out} it would be one of the images in {source}")
    elif learner.discovery_ is not None and picture is not None:
        say(f"how transformations were found: {learner.discovery_.picture(picture)}")
    elif picture is not None:
        picture.unlink(missing_ok=True)  # of a model that was here before
    kept.unlink(missing_ok=True)
    return model


def picture_of(out: Path, source: Path) -> Path | None:
    """Where the picture is that shows which transformations were found: beside the model, but not among the images."""
    picture = out.with_name(f"{out.name}-transformations.png")
    return None if source.is_dir() and picture.resolve().is_relative_to(source.resolve()) else picture


def found_in(model: Any, out: Path, source: Path) -> dict[str, str | None]:
    """Which transformations a fitted model found, and where the picture is, for who reads results; else nothing."""
    found = getattr(model, "learner_", model).discovery_
    picture = picture_of(out, source)
    return {} if found is None else {"found": found.words(), "picture": None if picture is None else str(picture)}


def checkpoint_of(out: Path) -> Path:
    """Where learning that is stopped goes on from, beside what it is to become."""
    return out.with_name(f".{out.name}.checkpoint")


def _check_apart(out: Path, *inputs: Path) -> None:
    """Raise if what is to be written would take the place of what is read."""
    if out.resolve() in (path.resolve() for path in inputs):
        raise ValueError(f"--out is {out}, which is read, too; give it another name")


def guess_kind(source: Path) -> str:
    """The kind of data in a source: a table of times or of sound files is sound, all else images."""
    if source.suffix != ".csv":
        return "image"
    if {"start", "end"} & set(header(source)):
        return "sound"
    first = next((row["file"] for _, row in rows(source, ("file",), ("start", "end", "label"))), "")
    return "sound" if first.lower().endswith(sound.ENDINGS) else "image"


def encode(model: Path, source: Path, out: Path, device: str, strict: bool) -> tuple[int, int]:
    """Write the features of a source to a .npy, .npz, .csv or .parquet file, or in parts to a folder.

    How many rows and columns there are.
    """
    if featurefolder.is_folder(out):
        return _encode_parts(model, source, out, device, strict)
    featurefiles.check(out)
    _check_apart(out, model, source)
    Z, columns = _encoded(model, source, device, strict)
    featurefiles.write(out, Z, columns)
    return len(Z), Z.shape[1]


def _encode_parts(model: Path, source: Path, out: Path, device: str, strict: bool) -> tuple[int, int]:
    """Write what is missing of the features of a source to a folder of parts."""
    check_writable(out)
    _check_apart(out, source)
    loaded, kind = _model(model, device)
    if kind.opened is None or kind.encode_places is None:
        raise ValueError(f"--out is {out}, a folder, but sound is encoded into one file; give it an ending, as .npz")
    found = kind.opened(loaded, source, strict)
    rows, columns = featurefolder.write(
        out, model, found.names, found.labels, partial(kind.encode_places, loaded, found)
    )
    if not rows:
        raise ValueError(f"none of {len(found):,} items in {source} can be read; see the reasons above")
    return rows, columns


def classify(features: Path, source: Path | None, folds: int, seed: int, device: str, strict: bool) -> Judgement:
    """How well a linear classifier tells classes apart in a file of features, or in a source that a model encodes."""
    if source is None:
        say(f"reading {features}")
        Z, labels = featurefolder.read(features) if features.is_dir() else featurefiles.read(features)
    else:
        if features.suffix in featurefiles.READERS:
            raise ValueError(f"{features} has features already; give it alone, or a model that encodes {source}")
        Z, columns = _encoded(features, source, device, strict)
        labels = columns["label"]
    return judge(Z, labels, folds, seed, device)


def inspect(path: Path, out: Path | None) -> list[str]:
    """What a model is, line by line; its filters are drawn to a PNG file if one is named."""
    if out is not None:
        check_png(out)
        check_place(out)
    model = load(path, "cpu")
    if out is not None:
        save_png(mosaic(tiles(model), zoom=4), out)
    return in_words(model)


def _encoded(path: Path, source: Path, device: str, strict: bool) -> tuple[NDArray[Any], Columns]:
    model, kind = _model(path, device)
    return kind.encode(model, source, strict)


def _model(path: Path, device: str) -> tuple[Any, Kind]:
    """The model in a file, and the kind of data that it takes."""
    model = load(path, device)
    kind = next((kind for kind in KINDS.values() if kind.is_model(model)), None)
    if kind is None:
        raise ValueError(f"{path} is a {type(model).__name__} without a kind of data; use its transform in Python")
    return model, kind
