"""Models and checkpoints as files: safetensors with JSON beside the tensors, whole or not there at all.

Nothing in a file is executed when it is read. Every byte is covered by a checksum: a digest of the file, computed with
zeros in its own place, stands in the header.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orbitpool import together
from orbitpool.transforms import LearnedSet, TransformSet, learned
from orbitpool.transforms.sparse import Sparse
from orbitpool.wholefile import whole

FORMAT, VERSION = "orbitpool", 1
_NO_DIGEST = "0" * 64
LARGEST = 1e9  # no weight is as large
LARGEST_HEADER = 100_000_000  # bytes, the limit of the safetensors format


class ModelFileError(ValueError):
    """A file that cannot be trusted or understood."""


@together.once
def write(path: str | os.PathLike[str], content: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write a file in one step: readers see the old one or the new one, never a part."""
    from safetensors.torch import save

    header = {"format": FORMAT, "version": VERSION, "content": content}
    plain = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    data = save(plain, {"orbitpool": json.dumps(header, allow_nan=True), "sha256": _NO_DIGEST})
    with whole(path) as file:
        file.write(data.replace(_NO_DIGEST.encode(), _digest(data).encode(), 1))


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What `write` was given, after checking that it is just that."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    with Path(path).open("rb") as file:
        data = file.read(8)
        size = int.from_bytes(data, "little")
        data += file.read(size if size <= LARGEST_HEADER else 0)
        data += file.read() if data[8:9] == b"{" else b""  # else it is something else, and may be of any size
    try:
        found = json.loads(data[8 : 8 + size])["__metadata__"]
        digest, header = bytes.fromhex(found["sha256"]).hex(), json.loads(found["orbitpool"])
        told = header["format"], header["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a file that orbitpool wrote, or its header is damaged") from error
    if told != (FORMAT, VERSION):
        raise ModelFileError(f"{path} is of format {told}; this orbitpool reads {(FORMAT, VERSION)}")
    if _digest(data.replace(digest.encode(), _NO_DIGEST.encode(), 1)) != digest:
        raise ModelFileError(f"{path} is damaged: its checksum does not match; restore it from a copy or train again")
    try:
        return header["content"], load(data)
    except (SafetensorError, KeyError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error


@contextmanager
def understood(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever goes wrong while the content of a file is taken to pieces becomes a ModelFileError."""
    try:
        yield
    except ModelFileError:
        raise
    except (
        KeyError,
        TypeError,
        ValueError,
        RuntimeError,
        IndexError,
        ArithmeticError,
        AttributeError,
        MemoryError,
    ) as error:
        raise ModelFileError(f"{path} is not a model that this version understands: {error!r}") from error


def sane(t: Tensor) -> bool:
    """Whether all numbers are such that products of some of them are finite."""
    return bool((t.abs() <= LARGEST).all())


def pack_transforms(transforms: TransformSet) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A transformation set as JSON and tensors."""
    content: dict[str, Any] = {
        "field": transforms.field_shape,
        "window": transforms.window_shape,
        "labels": transforms.labels,
    }
    if isinstance(transforms, LearnedSet):
        content["learned"] = transforms.settings
    rows = transforms._operators
    return content, {"T.starts": rows.starts, "T.columns": rows.columns, "T.values": rows.values}


def unpack_transforms(content: dict[str, Any], tensors: dict[str, Tensor]) -> TransformSet:
    """The transformation set that `pack_transforms` took apart; refuses one that would read outside its field."""
    field, window = tuple(content["field"]), tuple(content["window"])
    shape = (len(content["labels"]) * prod(window), prod(field))
    starts, columns, values = (tensors[f"T.{name}"] for name in ("starts", "columns", "values"))
    sound = (
        len(content["labels"]) > 0
        and min(*field, *window) > 0
        and starts.ndim == columns.ndim == values.ndim == 1
        and starts.dtype == columns.dtype == torch.int32
        and values.is_floating_point()
        and len(starts) == shape[0] + 1
        and starts[0] == 0
        and starts[-1] == len(columns) == len(values)
        and (starts.diff() >= 0).all()
        and ((columns >= 0) & (columns < shape[1])).all()
        and sane(values)
    )
    if not sound:
        raise ModelFileError("the transformations in the file contradict their own shapes")
    plain = TransformSet(Sparse(starts, columns, values, shape), field, window, content["labels"])
    return learned(plain, **content["learned"]) if "learned" in content else plain


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
