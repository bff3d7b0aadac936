"""A user's images: learn a model from them, and turn them into features."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from orbitpool import together
from orbitpool.images import ConvFeatures, Stack
from orbitpool.learners import Learner
from orbitpool.progress import say, task
from orbitpool.transforms.set import by
from orbitpool.userdata.choosing import Look, check_name, make_model, usual_name
from orbitpool.userdata.items import Columns
from orbitpool.userdata.reading import LARGEST, SMALLEST, Bytes, Images, open_images, shaped

MOST = 5000  # images to learn from
AT_ONCE = 100  # images in memory while they are encoded
COMPARED = 10_000  # names by which processes know that they have found the same images


def learn(source: Path, transforms: str | None, seed: int, device: str, strict: bool, **settings: Any) -> Any:
    """A model of images: ConvFeatures, or a TIRBM where they are small and of one size."""
    check_name(transforms or "auto")
    found = _open(source, strict)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(found))[:MOST]).tolist()
    say(f"reading {len(chosen):,} of {len(found):,} images in {source}, at sides of {SMALLEST} to {LARGEST} pixels")
    images = [image for _, some in _read(found, chosen, "read") for image in some]
    _report(found)
    if not images:
        raise ValueError(f"none of {len(chosen):,} images in {source} can be read; see the reasons above")
    look = Look.at(images)
    say(look.in_words())
    name = transforms or usual_name(len(images))
    model, words = make_model(look, name, {"n_iter": 20, **settings}, seed, device)
    say(words)
    try:
        return model.fit(_inputs(model, images, not look.coloured, look.sizes[0]))
    except FloatingPointError as error:
        raise ValueError(
            "learning diverged: images may have too little contrast to learn from; look at them, or set a lower "
            f"learning_rate in the library ({error})"
        ) from error


def _open(source: Path, strict: bool) -> Images:
    """The images of a source, which is the same for all processes that work together."""
    found = open_images(source, strict)
    digest = sha256(f"{len(found)}".encode())
    for i in range(0, len(found), max(1, len(found) // COMPARED)) if together.processes() > 1 else ():
        digest.update(f"{found.names[i]}\0".encode("utf-8", "surrogateescape"))
    if len(set(together.everywhere(digest.hexdigest()))) > 1:
        raise ValueError(
            f"the {together.processes()} processes do not find the same images in {source}; give one that all of them "
            "see, and that does not change while they work"
        )
    return found


def is_model(model: Any) -> bool:
    """Whether a model takes images."""
    if isinstance(model, Learner):
        return model.transforms_ is not None and len(model.transforms_.field_shape) == 2 and _channels(model) == 1
    return isinstance(model, (ConvFeatures, Stack)) and model.output == "flat" and _channels(model) in (1, 3)


def encode(model: Any, source: Path, strict: bool) -> tuple[NDArray[Any], Columns]:
    """Features of all images that can be read, (N, F), with their files and labels."""
    found = opened(model, source, strict)
    Z, columns = encode_places(model, found, range(len(found)))
    if not len(Z):
        raise ValueError(f"none of {len(found):,} images in {source} can be read; see the reasons above")
    return Z, columns


def opened(model: Any, source: Path, strict: bool) -> Images:
    """The images of a source, and what will be done to them in words."""
    found = _open(source, strict)
    size = (
        by(_whole(model)) + " pixels"
        if isinstance(model, Learner)
        else f"its own size from {SMALLEST} up to {LARGEST} pixels"
    )
    colour = "grey" if _channels(model) == 1 else "colour"
    say(f"encoding {len(found):,} images in {source}, each at {size}, in {colour}")
    return found


def encode_places(model: Any, found: Images, chosen: Sequence[int]) -> tuple[NDArray[Any], Columns]:
    """Features of those of the chosen images that can be read, (n, F), with their files and labels."""
    there, features = [], []
    part = together.part(len(chosen))
    with together.apart():  # each process reads and encodes files of its own
        for places, images in _read(found, chosen[part.own], "encode"):
            if images:
                features.append(model.transform(_inputs(model, images, _channels(model) == 1)))
                there += places
    if not part.whole:
        there, features = _of_all(part, chosen, there, features, len(model.get_feature_names_out()))
        everyone = (json.loads(said) for said in together.everywhere(json.dumps(found.problems)))
        found.problems = list(dict.fromkeys(tuple(problem) for problems in everyone for problem in problems))
    _report(found)
    columns = {"file": [_spelled(found.names[i]) for i in there], "label": [_spelled(found.labels[i]) for i in there]}
    empty = np.zeros((0, len(model.get_feature_names_out())), np.float32)
    return np.concatenate(features) if features else empty, columns


def _spelled(name: str) -> str:
    """A name with escapes for what is not UTF-8, which no table holds."""
    return name.encode("utf-8", "backslashreplace").decode()


def _of_all(
    part: together.Part, chosen: Sequence[int], there: list[int], features: list[NDArray[Any]], width: int
) -> tuple[list[int], list[NDArray[Any]]]:
    """Those of the chosen places that could be read, and their features, of all processes."""
    own = torch.zeros(part.own.stop - part.own.start, width + 1)  # the last column says whether there is an image
    if features:
        rows = torch.tensor([chosen[part.own].index(place) for place in there])
        own[rows, :-1], own[rows, -1] = torch.from_numpy(np.concatenate(features)), 1.0
    found = part.gather(own)
    places = found[:, -1].nonzero()[:, 0]
    return [chosen[i] for i in places.tolist()], [found[places, :-1].numpy()] if len(places) else []


def _read(found: Images, places: Sequence[int], name: str) -> Iterator[tuple[list[int], list[Bytes]]]:
    """Those places whose images can be read, and the images, some at a time."""
    with task(name, len(places)) as progress:
        for start in range(0, len(places), AT_ONCE):
            yield found.read(places[start : start + AT_ONCE])
            progress.count(min(start + AT_ONCE, len(places)), "images")


def _inputs(model: Any, images: list[Bytes], grey: bool, size: tuple[int, int] | None = None) -> Any:
    """Images as a model takes them: a list of bytes for patches, an array (N, H, W) in 0-1 for whole images.

    Those have the size of what a fitted model's filters see, if none is given.
    """
    if isinstance(model, (ConvFeatures, Stack)):
        return [image if not grey else shaped(image, True, image.shape[:2]) for image in images]
    rows, columns = size or _whole(model)
    whole = np.stack([shaped(image, True, (rows, columns)) for image in images])
    return whole.astype(np.float32) / 255


def _channels(model: Any) -> int:
    """The channels of the images that a fitted model takes."""
    if isinstance(model, Stack):
        return _channels(model.layers()[0])
    if isinstance(model, ConvFeatures):
        return len(model.mean_) // prod(model._patch)
    return int(model.n_features_in_ // prod(_whole(model)))


def _whole(learner: Any) -> tuple[int, int]:
    """Rows and columns of the whole images that a fitted learner takes."""
    rows, columns = learner.transforms_.field_shape
    return rows, columns


def _report(found: Images) -> None:
    """Say what could not be read, once."""
    if found.problems:
        say("\n".join(found.in_words()), problem=True)
        found.problems.clear()
