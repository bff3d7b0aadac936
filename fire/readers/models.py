"""Readers of models and checkpoints, also where damage lies behind a checksum that is right."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import pi
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import orbitpool
from fire.readers.pictures import photograph
from fire.readers.reader import Reader, is_model
from fire.readers.sounds import sound
from orbitpool import TIRBM, ConvFeatures, SpeechFeatures, modelfile
from orbitpool import transforms as T
from orbitpool.speech import read_table

TURNS = T.rotations(8, count=4, step=pi / 2)


@dataclass(frozen=True)
class Parts:
    """A model file taken apart: its header in JSON, which tells the content, and its tensors."""

    head: bytes
    body: bytes

    @classmethod
    def of(cls, data: bytes) -> "Parts":
        size = int.from_bytes(data[:8], "little")
        return cls(data[8 : 8 + size], data[8 + size :])

    @property
    def content(self) -> bytes:
        """What the header tells of the model."""
        told: str = json.loads(self.head)["__metadata__"]["orbitpool"]
        return told.encode()

    def sealed(self) -> bytes:
        """The file, under a checksum that is right as far as there is a place for one."""
        try:
            head = json.loads(self.head)
            head["__metadata__"]["sha256"] = "0" * 64
        except (ValueError, KeyError, TypeError, RecursionError):
            return len(self.head).to_bytes(8, "little") + self.head + self.body
        text = json.dumps(head).encode()
        blank = len(text).to_bytes(8, "little") + text + self.body
        return blank.replace(b"0" * 64, modelfile._digest(blank).encode(), 1)

    def with_content(self, content: bytes) -> bytes:
        """The sealed file with another content."""
        head = json.loads(self.head)
        head["__metadata__"]["orbitpool"] = content.decode("latin-1")
        return Parts(json.dumps(head).encode(), self.body).sealed()

    def with_head(self, head: bytes) -> bytes:
        """The sealed file with another header."""
        return Parts(head, self.body).sealed()

    def with_body(self, body: bytes) -> bytes:
        """The sealed file with other tensors."""
        return Parts(self.head, body).sealed()


def models() -> Iterator[Reader]:
    for name, (data, given) in _kept().items():

        def read(folder: Path, given: Any = given) -> Any:
            return orbitpool.load(folder / "m"), given

        parts, plain = Parts.of(data), Reader(f"model {name}", {"m": data}, "m", read, is_model)
        yield plain
        yield _sealed("content", plain, parts.content, parts.with_content)
        yield _sealed("tensors", plain, parts.body, parts.with_body)
        yield _sealed("header", plain, parts.head, parts.with_head)


def checkpoints() -> Iterator[Reader]:
    digits = _digits()
    with TemporaryDirectory() as made:
        started = TIRBM(4, TURNS, n_iter=1, random_state=0, checkpoint=Path(made) / "run").fit(digits)
        data = Path(str(started.checkpoint)).read_bytes()

    def go_on(folder: Path) -> Any:
        return TIRBM(4, TURNS, n_iter=2, random_state=0, checkpoint=folder / "m").fit(digits), digits

    parts, plain = Parts.of(data), Reader("checkpoint", {"m": data}, "m", go_on, is_model)
    yield plain
    yield _sealed("content", plain, parts.content, parts.with_content)


def _sealed(what: str, plain: Reader, whole: bytes, pack: Callable[[bytes], bytes]) -> Reader:
    """The same reader of a file of which one part is damaged before it is sealed."""
    name = f"sealed {what} of {plain.name}"
    return Reader(name, plain.files, plain.victim, plain.read, plain.check, lambda _: whole, pack)


def _kept() -> dict[str, tuple[bytes, Any]]:
    """A file of every kind of model, with something that the model can be given."""
    digits, photos = _digits(), (255 * photograph()[None]).astype(np.uint8)
    patches = TIRBM(3, T.translations(6, 5), n_iter=1, visible="gaussian", random_state=0)
    with TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "t.csv").write_bytes(b"file,start,end\na.wav,,\n")
        (folder / "a.wav").write_bytes(sound("WAV"))
        segments = read_table(folder / "t.csv").segments
        models: dict[str, tuple[Any, Any]] = {
            "TIRBM": (TIRBM(4, TURNS, n_iter=1, random_state=0).fit(digits), digits),
            "TIAutoencoder": (orbitpool.TIAutoencoder(3, n_iter=1, random_state=0).fit(digits), digits),
            "TIOMP": (orbitpool.TIOMP(3, TURNS, n_iter=1, random_state=0).fit(digits), digits),
            "ConvFeatures": (ConvFeatures(patches, n_patches=200, random_state=0).fit(photos), photos),
            "SpeechFeatures": (SpeechFeatures(frames=3).fit(segments), segments),
        }
        return {name: (_file(model, folder / "model"), given) for name, (model, given) in models.items()}


def _file(model: Any, path: Path) -> bytes:
    model.save(path)
    return path.read_bytes()


def _digits() -> Any:
    return load_digits().data[:60] / 16
