"""Features in a folder of shards that grows, and goes on where it was stopped.

`manifest.json` says which parts are done, of what, and by which model. A part is there whole or not at all, and counts
once the manifest names it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from orbitpool import together
from orbitpool.excerpt import excerpt
from orbitpool.progress import say
from orbitpool.userdata import featurefiles
from orbitpool.userdata.items import Columns
from orbitpool.wholefile import alone, write_whole

ROWS = 10_000  # images of a part
MANIFEST, FORMAT = "manifest.json", "orbitpool features 1"

Encode = Callable[[Sequence[int]], tuple[NDArray[Any], Columns]]


def is_folder(out: Path) -> bool:
    """Whether features are to go to a folder of parts: what has no ending, or is a folder already."""
    return out.is_dir() or not out.suffix


def write(folder: Path, model: Path, names: Sequence[str], labels: Sequence[str], encode: Encode) -> tuple[int, int]:
    """Encode what is missing in a folder, part by part; how many rows and columns there are in all."""
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / MANIFEST):
        manifest = together.told(partial(_begun, folder, hashlib.sha256(model.read_bytes()).hexdigest()))
        parts = manifest["parts"]
        for number, start in enumerate(range(0, len(names), ROWS)):
            places = range(start, min(start + ROWS, len(names)))
            digest = _digest(names, labels, places)
            if number < len(parts) and parts[number]["of"] == digest:
                continue
            if number < len(parts) and not _is_beginning(parts[number], names, labels, places):
                raise ValueError(
                    f"{folder / parts[number]['file']} was made from other data; give another folder as --out"
                )
            Z, columns = encode(places)
            name = f"part-{number:05}.npz"
            if len(Z):
                featurefiles.write(folder / name, Z, columns)
            made = {"file": name, "rows": len(Z), "features": Z.shape[1], "items": len(places), "of": digest}
            parts[number:] = [made]
            _save(folder, manifest)
            say(f"{folder / name}: {start + len(places):,} of {len(names):,} are done")
    return sum(part["rows"] for part in parts), max((part["features"] for part in parts), default=0)


def read(folder: Path) -> tuple[list[NDArray[Any]], list[str]]:
    """The features (n, F) of every part of a folder, mapped, and the label of each row of all."""
    parts = [part for part in load(folder)["parts"] if part["rows"]]
    if not parts:
        raise ValueError(f"{folder} holds no features yet; encode some first")
    pairs = [featurefiles.read(folder / part["file"]) for part in parts]
    for part, (Z, _) in zip(parts, pairs, strict=True):
        if Z.shape != (part["rows"], part["features"]) or part["features"] != parts[0]["features"]:
            raise ValueError(
                f"{folder / part['file']} is not what {MANIFEST} says; give the orbitpool encode command again"
            )
    return [Z for Z, _ in pairs], [label for _, labels in pairs for label in labels]


def load(folder: Path) -> dict[str, Any]:
    """What a folder's manifest says, after checking it."""
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
        if manifest["format"] != FORMAT or not isinstance(manifest["model"], str):
            raise ValueError(f"its format is {manifest['format']!r}")
        for number, part in enumerate(manifest["parts"]):
            sound = part["file"] == f"part-{number:05}.npz" and isinstance(part["of"], str)
            if not sound or not all(isinstance(part[n], int) and part[n] >= 0 for n in ("rows", "features", "items")):
                raise ValueError(f"its part {number} is {excerpt(part, 100)}")
    except FileNotFoundError as error:
        raise ValueError(f"{folder} has no {MANIFEST}; give a folder that orbitpool encode wrote") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}); delete the folder and encode anew") from error
    return manifest


def _begun(folder: Path, model: str) -> dict[str, Any]:
    """The manifest to go on with: by one process for all, of which a slow one would find what a fast one has made."""
    if not (folder / MANIFEST).exists():
        if next(folder.glob("[!.]*"), None) is not None:
            raise ValueError(f"{folder} holds other files and no {MANIFEST}; give a new folder as --out")
        manifest: dict[str, Any] = {"format": FORMAT, "model": model, "parts": []}
        with together.apart():
            _save(folder, manifest)  # before the first part, so that a run that dies in between can go on
        return manifest
    manifest = load(folder)
    if manifest["model"] != model:
        raise ValueError(f"{folder} has features of another model; give another folder as --out")
    for number, part in enumerate(manifest["parts"]):
        if part["rows"] and not (folder / part["file"]).is_file():  # taken away: it and what follows is made anew
            manifest["parts"] = manifest["parts"][:number]
            break
    return manifest


def _save(folder: Path, manifest: dict[str, Any]) -> None:
    write_whole(folder / MANIFEST, f"{json.dumps(manifest, indent=1)}\n".encode())


def _is_beginning(part: dict[str, Any], names: Sequence[str], labels: Sequence[str], places: range) -> bool:
    """Whether a part was made from the first of these, before there were more."""
    return bool(part["items"] < len(places) and part["of"] == _digest(names, labels, places[: part["items"]]))


def _digest(names: Sequence[str], labels: Sequence[str], places: range) -> str:
    """Unlike for other items."""
    digest = hashlib.sha256()
    for i in places:
        digest.update(f"{names[i]}\0{labels[i]}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
