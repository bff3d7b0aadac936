"""Files that are odd or mean without being damaged."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from fire.readers.arrays import npy
from fire.readers.pictures import every, in_folder, photograph, picture
from fire.readers.reader import Reader, are_images, is_dataset
from fire.readers.sharded import tar_of
from orbitpool import datasets
from orbitpool.userdata import featurefiles

OUTSIDE = ("../../../../etc/passwd", "/etc/passwd", "/dev/zero", "/proc/self/mem", ".", "../", "a\0b", "x" * 5000)
POSTSCRIPT = (
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/tmp/fire-was-here) (w) file closefile\nshowpage\n%%EOF\n"
)


def claiming(width: int, height: int, depth: int = 8, colour: int = 2, data: bytes = b"") -> bytes:
    """A PNG that claims to be of a size."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(data)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def images() -> Iterator[Reader]:
    """Bombs, empty and huge pictures, other kinds of pixels, programs in disguise."""
    zeros = b"\0" * (3 * 8000 + 1) * 8000
    for ending, expected, content, name in (
        ("png", "refused", claiming(100_000, 100_000), "bomb that claims 100000x100000"),
        ("png", "refused", claiming(2**31 - 1, 2**31 - 1), "bomb that claims 2147483647x2147483647"),
        ("png", "refused", claiming(13_000, 13_000, data=b"\0" * 10_000_000), "bomb of 13000x13000 zeros"),
        ("png", "read", claiming(8000, 8000, data=zeros), "8000x8000 pixels in 200 kB"),
        ("png", "refused", _with_text(), "long text that unpacks to a gigabyte"),
        ("png", "refused", claiming(0, 0), "0x0 pixels"),
        ("png", "refused", claiming(0, 7), "0x7 pixels"),
        ("png", "read", claiming(60_000, 1, data=b"\0" * 180_001), "60000x1 pixels"),
        ("gif", "read", _animated("gif"), "animated GIF"),
        ("png", "read", _animated("png"), "animated PNG"),
        ("webp", "read", _animated("webp"), "animated WebP"),
        ("tiff", "read", _animated("tiff"), "TIFF of three pages"),
        ("png", "read", picture("png", "I;16"), "16 bits"),
        ("tiff", "refused", picture("tiff", "I"), "32 bits"),
        ("tiff", "refused", picture("tiff", "F"), "32 bits, floats"),
        ("jpg", "read", picture("jpeg", "CMYK"), "CMYK"),
        ("tiff", "read", picture("tiff", "CMYK"), "CMYK TIFF"),
        ("tiff", "read", picture("tiff", "YCbCr"), "YCbCr TIFF"),
        ("tiff", "read", picture("tiff", "LAB"), "L*a*b*"),
        ("png", "read", picture("png", "P"), "palette"),
        ("png", "read", picture("png", "1"), "black and white"),
        ("png", "read", picture("png", "RGBA"), "transparent"),
        ("png", "read", picture("png", "LA"), "grey, transparent"),
        ("png", "refused", POSTSCRIPT, "PostScript in disguise"),
        ("png", "refused", b"cos\nsystem\n(S'touch /tmp/fire-was-here'\ntR.", "a pickle in disguise"),
    ):
        yield Reader(name, {f"a/1.{ending}": content}, f"a/1.{ending}", in_folder, are_images, odd=expected)


def names() -> Iterator[Reader]:
    """Tables and archives with names that lead elsewhere, or nowhere."""
    png = picture("png")
    for where in OUTSIDE:
        files = {"t.csv": f"file,label\na.png,one\n{where},two\n".encode(), "a.png": png}
        yield Reader(f"table that names {where[:30]!r}", files, "t.csv", every("t.csv"), are_images, odd="refused")
    for name, members in (
        ("that lead elsewhere", {"../../../up.png": png, "/etc/root.png": png}),
        ("that are long", {"a/" * 5000 + "x.png": png, "x" * 9000 + ".png": png}),
    ):
        yield Reader(
            f".tar with names {name}", {"s/1.tar": tar_of(members)}, "s/1.tar", every("s"), are_images, odd="read"
        )


def arrays() -> Iterator[Reader]:
    """Arrays that are programs, claim petabytes, or unpack to more than a memory holds."""
    pickled, mnist, bomb = io.BytesIO(), "mnist/train-images-idx3-ubyte.gz", _npz_bomb()
    np.save(pickled, np.array([{}], dtype=object), allow_pickle=True)
    shape = b"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999, 99, 99), }".ljust(117) + b"\n"
    digits = {f"mnist/{part}-labels-idx1-ubyte": b"" for part in ("train", "t10k")}
    digits |= {"mnist/t10k-images-idx3-ubyte": b"", mnist: _gzip_bomb()}
    for name, victim, content, read in (
        (".npy of objects", "x.npy", pickled.getvalue(), every("x.npy")),
        (".npy that claims petabytes", "x.npy", pickled.getvalue()[:8] + b"\x76\x00" + shape, every("x.npy")),
        (".npz bomb as images", "x.npz", bomb, every("x.npz")),
        (".npz bomb as features", "x.npz", bomb, lambda folder: featurefiles.read(folder / "x.npz")),
        (".parquet bomb", "s/1.parquet", _parquet_bomb(), every("s")),
    ):
        yield Reader(name, {victim: content}, victim, read, are_images, odd="refused")
    yield Reader("idx.gz bomb", digits, mnist, datasets.mnist, is_dataset, odd="refused")


def _with_text() -> bytes:
    """A PNG whose comment unpacks to a gigabyte."""
    body = b"zTXtcomment\0\0" + _zeros(zlib.compressobj(9), 1024)
    whole, chunk = claiming(8, 8, data=b"\0" * 200), struct.pack(">I", len(body) - 4) + body
    return whole[:33] + chunk + struct.pack(">I", zlib.crc32(body)) + whole[33:]


def _gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(np.array([0x0803, 10**7, 28, 28], ">u4").tobytes()) + _zeros(packer, 2048)


def _zeros(packer: Any, megabytes: int) -> bytes:
    """So many zeros, packed: one megabyte after the other, all alike."""
    start = packer.compress(b"\0" * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    again: bytes = packer.compress(b"\0" * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    return bytes(start + (megabytes - 1) * again + packer.flush())


def _npz_bomb() -> bytes:
    """Half a gigabyte of zeros, twice, in a few megabytes."""
    head, file = npy(np.zeros((1, 1, 1), np.uint8)), io.BytesIO()
    head = head.replace(b"(1, 1, 1)", b"(1, 16384, 32768)").replace(b" " * 8 + b"\n", b"\n")[:128]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        for name in ("images", "features"):
            with made.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(head)
                for _ in range(512):
                    member.write(b"\0" * 2**20)
    return file.getvalue()


def _parquet_bomb() -> bytes:
    import pandas as pd

    file = io.BytesIO()
    pd.DataFrame({"image": [b"\0" * 2**20] * 600}).to_parquet(file, compression="zstd")
    return file.getvalue()


def _animated(kind: str) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    frames = [Image.fromarray((255 * np.roll(photograph(), i, 1)).astype(np.uint8)) for i in range(3)]
    frames[0].save(file, kind, save_all=True, append_images=frames[1:])
    return file.getvalue()
