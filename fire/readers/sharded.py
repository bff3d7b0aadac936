"""Readers of shards, and of features in a folder of parts."""

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fire.readers.arrays import npy
from fire.readers.pictures import every, photograph, picture
from fire.readers.reader import Reader, are_features, are_images
from orbitpool import Shards
from orbitpool.arrayfiles import write_npz
from orbitpool.userdata import featurefolder


def tar_of(members: dict[str, bytes]) -> bytes:
    """A .tar of members by name."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as made:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return file.getvalue()


def shards() -> Iterator[Reader]:
    import pandas as pd

    png = picture("png")
    tar = tar_of({f"a/{i}.png": png for i in range(3)} | {f"a/{i}.cls": b"7" for i in range(3)})
    pictures, numbers = io.BytesIO(), io.BytesIO()
    pd.DataFrame({"image": [png] * 3, "label": [1, 2, 3]}).to_parquet(pictures)
    pd.DataFrame({"a": np.arange(4.0), "b": [[1.0, 2.0]] * 4}).to_parquet(numbers)
    array = npy((255 * photograph(16)[None].repeat(4, 0)).astype(np.uint8))

    def rows(folder: Path) -> Any:
        return np.concatenate(list(Shards(folder / "s", buffer=16)))

    def are_rows(found: Any) -> None:
        assert found.ndim >= 2 and found.dtype.kind in "fiub", "no rows"

    for name, content in (("tar", tar), ("parquet", pictures.getvalue()), ("npy", array)):
        yield Reader(f"shard .{name}", {f"s/1.{name}": content}, f"s/1.{name}", every("s"), are_images)
    for name, content in (("tar", tar), ("parquet", numbers.getvalue()), ("npy", array)):
        yield Reader(f"rows of .{name}", {f"s/1.{name}": content}, f"s/1.{name}", rows, are_rows)


def folders() -> Iterator[Reader]:
    part = {"file": "part-00000.npz", "rows": 6, "features": 3, "items": 6, "of": "0"}
    manifest = json.dumps({"format": featurefolder.FORMAT, "model": "0", "parts": [part]}).encode()
    Z, labels = np.random.default_rng(3).random((6, 3), np.float32), np.array(list("aabbcc"))
    mapped = io.BytesIO()
    write_npz(mapped, features=Z, labels=labels, files=labels)
    files = {"z/manifest.json": manifest, "z/part-00000.npz": mapped.getvalue()}

    def read(folder: Path) -> Any:
        parts, words = featurefolder.read(folder / "z")
        assert np.array_equal(parts[0], Z), "other numbers than were written"
        return np.concatenate(parts), words

    for victim in files:
        yield Reader(f"folder of features, {victim[2:]}", files, victim, read, are_features)
