"""Readers of image files, and of tables that name them."""

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fire.readers.reader import Reader, are_grey, are_images
from orbitpool import datasets
from orbitpool.datasets import photographs
from orbitpool.userdata import reading


def photograph(size: int = 40) -> Any:
    return photographs.sample_photographs()[0][100 : 100 + size, 100 : 100 + size]


def picture(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    """A photograph as a file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray((255 * photograph()).astype(np.uint8)).convert(mode).save(file, kind, **options)
    return file.getvalue()


def _with_checksums(data: bytes) -> bytes:
    """A PNG whose chunks have the checksums that belong to them, as far as there are chunks."""
    out, at = bytearray(data[:8]), 8
    while at + 12 <= len(data):
        size = min(int.from_bytes(data[at : at + 4], "big"), len(data) - at - 12)
        body = data[at + 4 : at + 8 + size]
        out += data[at : at + 4] + body + struct.pack(">I", zlib.crc32(body))
        at += 12 + size
    return bytes(out)


def in_folder(folder: Path) -> Any:
    """The images of a folder."""
    return datasets.image_folder(folder, strict=True).images


def every(name: str) -> Callable[[Path], Any]:
    """What reads all images of a source of that name, as a user's are read."""

    def read(folder: Path) -> Any:
        images = reading.open_images(folder / name, strict=True)
        return images.read(range(len(images)))[1]

    return read


def images() -> Iterator[Reader]:
    for kind, options in (
        ("png", {}),
        ("jpeg", {}),
        ("jpeg", {"progressive": True}),
        ("jpeg", {"mode": "CMYK"}),
        ("tiff", {}),
        ("tiff", {"compression": "tiff_lzw"}),
        ("tiff", {"compression": "tiff_adobe_deflate"}),
        ("gif", {}),
        ("bmp", {}),
        ("webp", {}),
        ("ppm", {}),
        ("tga", {}),
        ("pcx", {}),
        ("ico", {}),
        ("jpeg2000", {}),
    ):
        ending = {"jpeg2000": "jp2"}.get(kind, kind)
        said = f"image .{ending}" + (f" {next(iter(options.values()))}" if options else "")
        yield Reader(said, {f"a/1.{ending}": picture(kind, **options)}, f"a/1.{ending}", in_folder, are_images)
    yield Reader(
        "PNG with checksums", {"a/1.png": picture("png")}, "a/1.png", every("."), are_images, pack=_with_checksums
    )
    yield Reader(
        "PNG 16 bit", {"a/1.png": picture("png", "I;16")}, "a/1.png", every("."), are_images, pack=_with_checksums
    )
    frames = picture("gif", save_all=True)
    yield Reader("image .gif animated", {"a/1.gif": frames}, "a/1.gif", every("."), are_images)
    tiff = {"natural/1.tiff": picture("tiff", "L")}
    yield Reader("natural .tiff", tiff, "natural/1.tiff", lambda p: datasets.natural_images(p), are_grey)
    iml = {"vanhateren/1.iml": np.arange(24 * 32, dtype=">u2").tobytes()}
    yield Reader(".iml", iml, "vanhateren/1.iml", lambda p: datasets.natural_images(p), are_grey)


def tables() -> Iterator[Reader]:
    png = picture("png")
    files = {"t.csv": b"file,label\na.png,one\nb.png,two\nsub/c.png,one\n", "a.png": png, "b.png": png}
    yield Reader("images .csv", files | {"sub/c.png": png}, "t.csv", every("t.csv"), are_images)
