"""Every reader of files: something small and whole that it reads, and what must hold of whatever it gives back."""

import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import pi
from pathlib import Path
from typing import Any

import numpy as np

import orbitpool
from orbitpool import TIRBM, ConvFeatures, Shards, SpeechFeatures, datasets, modelfile
from orbitpool import transforms as T
from orbitpool.datasets import objects, photographs, written
from orbitpool.experiments import results
from orbitpool.speech import read_audio, read_phn, read_table
from orbitpool.userdata import choosing, featurefiles, featurefolder, reading

Pack = Callable[[bytes], bytes]


def _as_is(data: bytes) -> bytes:
    return data


@dataclass(frozen=True)
class Reader:
    """A reader: the folder's files, which of them is damaged, how, and what reads it.

    `pack` is put around damaged bytes, so that a checksum on the outside does not keep damage from what is inside;
    `take` undoes it once. `check` gets what was read and raises AssertionError if that is nonsense.
    """

    name: str
    files: dict[str, bytes]
    victim: str
    read: Callable[[Path], Any]
    check: Callable[[Any], None]
    take: Pack = _as_is
    pack: Pack = _as_is
    odd: str = ""  # "read" or "refused", where files are odd as they are and stay so


def small_sizes() -> None:
    """Let the readers of official files expect small ones, so that ten thousand of them can be tried."""
    objects.CIFAR_RECORDS, objects.STL_SIZES, objects.STL_FOLDS = 4, (4, 6), (2, 3)
    photographs._IML = (24, 32)
    written.SIZES = (6, 2, 4)


def readers() -> list[Reader]:
    """All of them."""
    small_sizes()
    return [
        *_digits(),
        *_objects(),
        *_images(),
        *_arrays(),
        *_shards(),
        *_tables(),
        *_sounds(),
        *_models(),
        *_results(),
        *odd_files(),
    ]


# What must hold


def _is_dataset(data: Any) -> None:
    for part in ("train", "test"):
        X, y = getattr(data, f"X_{part}"), getattr(data, f"y_{part}")
        assert len(X) == len(y), "labels are not as many as images"
        assert X.shape[1:3] in ((28, 28), (32, 32)), "images are of another size"
        assert np.isfinite(X).all() and y.min(initial=0) >= 0 and y.max(initial=0) <= 9, "values out of range"


def _are_grey(found: Any) -> None:
    for image in found[0]:
        assert image.ndim == 2 and np.isfinite(image).all() and image.min() >= 0 and image.max() <= 1, "values"


def _are_images(found: Any) -> None:
    for image in found:
        assert image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3 and 0 not in image.shape, "no image"


def _is_poses(found: Any) -> None:
    assert np.isfinite(found.to_dense()).all(), "weights are not finite"


def _are_features(found: Any) -> None:
    Z, labels = found
    assert Z.ndim == 2 and Z.dtype.kind == "f" and len(Z) == len(labels), "features and labels do not belong together"
    assert np.isfinite(Z).all(), "features are not finite"
    assert all(isinstance(label, str) for label in labels), "labels are not words"


def _is_sound(found: Any) -> None:
    assert found.ndim == 1 and len(found) and np.isfinite(found).all() and abs(found).max() <= 200, "no samples"


def _are_spans(found: Any) -> None:
    assert found and all(0 <= s.start < s.end for s in found), "spans are not in order"


def _is_table(found: Any) -> None:
    assert len(found.segments) == len(found.labels), "labels are not as many as segments"
    assert all(0 <= s.start < s.end <= s.recording.seconds for s in found.segments), "segments outside the sound"


def _is_model(found: Any) -> None:
    model, given = found
    assert np.isfinite(model.transform(given)).all(), "features are not finite"


def _is_result(found: Any) -> None:
    if found is not None:
        assert ("figure" in found) != ("row" in found), "neither a row nor a figure"
        if "row" in found:
            results.summary(found)


# The official files


def _idx(array: Any) -> bytes:
    return np.array([0x0800 + array.ndim, *array.shape], ">u4").tobytes() + bytes(array.tobytes())


def _digits() -> Iterator[Reader]:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (5, 28, 28), np.uint8), np.arange(5, dtype=np.uint8)
    files = {f"mnist/{p}-images-idx3-ubyte": _idx(images) for p in ("train", "t10k")}
    files |= {f"mnist/{p}-labels-idx1-ubyte": _idx(labels) for p in ("train", "t10k")}
    packed = {"mnist/train-images-idx3-ubyte.gz": gzip.compress(_idx(images), 1)}
    without = {name: data for name, data in files.items() if name != "mnist/train-images-idx3-ubyte"}

    def squeeze(data: bytes) -> bytes:
        return gzip.compress(data, 1)

    yield Reader("idx images", files, "mnist/train-images-idx3-ubyte", datasets.mnist, _is_dataset)
    yield Reader("idx labels", files, "mnist/t10k-labels-idx1-ubyte", datasets.mnist, _is_dataset)
    gz = "mnist/train-images-idx3-ubyte.gz"
    yield Reader("idx.gz", without | packed, gz, datasets.mnist, _is_dataset)
    yield Reader("idx in gz", without | packed, gz, datasets.mnist, _is_dataset, gzip.decompress, squeeze)
    for part, rows in (("train_valid", 8), ("test", 4)):
        lines = [" ".join([*(f"{v:.6f}" for v in rng.random(784)), str(i % 10)]) for i in range(rows)]
        files[f"mnist/mnist_all_rotation_normalized_float_{part}.amat"] = "\n".join(lines).encode()
    yield Reader(
        ".amat",
        files,
        "mnist/mnist_all_rotation_normalized_float_test.amat",
        lambda folder: datasets.mnist_variation("rot", folder=folder),
        _is_dataset,
    )


def _objects() -> Iterator[Reader]:
    rng = np.random.default_rng(1)

    def records(n: int) -> bytes:
        return b"".join(bytes([i % 10]) + rng.bytes(3072) for i in range(n))

    room = "cifar10/cifar-10-batches-bin"
    cifar = {f"{room}/{name}.bin": records(4) for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")}
    yield Reader("CIFAR-10 .bin", cifar, f"{room}/data_batch_3.bin", datasets.cifar10, _is_dataset)
    room = "stl10/stl10_binary"
    stl = {f"{room}/{part}_X.bin": rng.bytes(n * 27648) for part, n in (("train", 4), ("test", 6))}
    stl |= {f"{room}/{part}_y.bin": bytes(1 + i % 10 for i in range(n)) for part, n in (("train", 4), ("test", 6))}
    stl[f"{room}/fold_indices.txt"] = b"0 1 2\n1 2 3\n"
    for victim in ("train_X.bin", "test_y.bin", "fold_indices.txt"):
        yield Reader(f"STL-10 {victim}", stl, f"{room}/{victim}", datasets.stl10, _is_dataset)
    arrays: dict[str, Any] = {"folds": np.array([[0, 1, 2], [1, 2, 3]])}
    for part, n in (("train", 4), ("test", 6)):
        arrays |= {f"x_{part}": rng.integers(0, 256, (n, 32, 32, 3), np.uint8), f"y_{part}": np.arange(n) % 10}
    yield Reader("STL-10 .npz", {"stl10-32.npz": _npz(**arrays)}, "stl10-32.npz", datasets.stl10, _is_dataset)
    yield _inside_npz("STL-10 in .npz", arrays, "stl10-32.npz", datasets.stl10, _is_dataset)


# Images


def _photograph(size: int = 40) -> Any:
    return photographs.sample_photographs()[0][100 : 100 + size, 100 : 100 + size]


def picture(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    """A photograph as a file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray((255 * _photograph()).astype(np.uint8)).convert(mode).save(file, kind, **options)
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


def _images() -> Iterator[Reader]:
    def folder(path: Path) -> Any:
        return datasets.image_folder(path, strict=True).images

    def user(path: Path) -> Any:
        return reading.open_images(path, strict=True).read([0])[1]

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
        yield Reader(said, {f"a/1.{ending}": picture(kind, **options)}, f"a/1.{ending}", folder, _are_images)
    yield Reader("PNG with checksums", {"a/1.png": picture("png")}, "a/1.png", user, _are_images, pack=_with_checksums)
    yield Reader("PNG 16 bit", {"a/1.png": picture("png", "I;16")}, "a/1.png", user, _are_images, pack=_with_checksums)
    frames = picture("gif", save_all=True)
    yield Reader("image .gif animated", {"a/1.gif": frames}, "a/1.gif", user, _are_images)
    tiff = {"natural/1.tiff": picture("tiff", "L")}
    yield Reader("natural .tiff", tiff, "natural/1.tiff", lambda p: datasets.natural_images(p), _are_grey)
    iml = {"vanhateren/1.iml": np.arange(24 * 32, dtype=">u2").tobytes()}
    yield Reader(".iml", iml, "vanhateren/1.iml", lambda p: datasets.natural_images(p), _are_grey)


# Arrays


def _npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _inside_npz(
    name: str, arrays: dict[str, Any], victim: str, read: Callable[[Path], Any], check: Callable[[Any], None]
) -> Reader:
    """Damage of the first array in an .npz, whose checksums are made anew."""
    first = next(iter(arrays))
    others = {key: _npy(value) for key, value in arrays.items() if key != first}

    def pack(data: bytes) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as made:
            for key, value in {first: data, **others}.items():
                made.writestr(f"{key}.npy", value)
        return file.getvalue()

    return Reader(name, {victim: _npz(**arrays)}, victim, read, check, lambda _: _npy(arrays[first]), pack)


def _arrays() -> Iterator[Reader]:
    X, labels = (255 * _photograph(16)[None].repeat(5, 0)).astype(np.uint8), np.array(list("aabbb"))

    def user(name: str) -> Callable[[Path], Any]:
        def read(folder: Path) -> Any:
            images = reading.open_images(folder / name, strict=True)
            return images.read(range(len(images)))[1]

        return read

    for dtype in (np.uint8, np.float32):
        scaled = X.astype(dtype) / dtype(255) if dtype is np.float32 else X
        yield Reader(f"images .npy {np.dtype(dtype)}", {"x.npy": _npy(scaled)}, "x.npy", user("x.npy"), _are_images)
    arrays = {"images": X, "labels": labels}
    yield Reader("images .npz", {"x.npz": _npz(**arrays)}, "x.npz", user("x.npz"), _are_images)
    yield _inside_npz("images in .npz", arrays, "x.npz", user("x.npz"), _are_images)
    yield _inside_npz("labels in .npz", dict(reversed(arrays.items())), "x.npz", user("x.npz"), _are_images)
    turns = T.rotations(6, count=4, step=pi / 2).to_dense()
    yield Reader(
        "transformations .npy",
        {"t.npy": _npy(turns)},
        "t.npy",
        lambda folder: choosing.choose_poses(str(folder / "t.npy"), (6, 6), whole=True),
        _is_poses,
    )
    Z, columns = np.random.default_rng(2).random((6, 3), np.float32), {"file": list("uvwxyz"), "label": list("aabbcc")}
    for ending in featurefiles.READERS:
        file = io.BytesIO()
        featurefiles.WRITERS[ending](file, Z, columns)
        name = f"z{ending}"
        yield Reader(
            f"features {ending}",
            {name: file.getvalue()},
            name,
            lambda folder, name=name: featurefiles.read(folder / name),  # type: ignore[misc]
            _are_features,
        )
    inside = {"features": Z, "labels": np.array(columns["label"]), "files": np.array(columns["file"])}
    yield _inside_npz("features in .npz", inside, "z.npz", lambda p: featurefiles.read(p / "z.npz"), _are_features)


def _tar(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as made:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return file.getvalue()


def _shards() -> Iterator[Reader]:
    import pandas as pd

    png = picture("png")
    tar = _tar({f"a/{i}.png": png for i in range(3)} | {f"a/{i}.cls": b"7" for i in range(3)})
    pictures, numbers = io.BytesIO(), io.BytesIO()
    pd.DataFrame({"image": [png] * 3, "label": [1, 2, 3]}).to_parquet(pictures)
    pd.DataFrame({"a": np.arange(4.0), "b": [[1.0, 2.0]] * 4}).to_parquet(numbers)
    array = _npy((255 * _photograph(16)[None].repeat(4, 0)).astype(np.uint8))

    def user(folder: Path) -> Any:
        images = reading.open_images(folder / "s", strict=True)
        return images.read(range(len(images)))[1]

    def rows(folder: Path) -> Any:
        return np.concatenate(list(Shards(folder / "s", buffer=16)))

    def are_rows(found: Any) -> None:
        assert found.ndim >= 2 and found.dtype.kind in "fiub", "no rows"

    for name, content in (("tar", tar), ("parquet", pictures.getvalue()), ("npy", array)):
        yield Reader(f"shard .{name}", {f"s/1.{name}": content}, f"s/1.{name}", user, _are_images)
    for name, content in (("tar", tar), ("parquet", numbers.getvalue()), ("npy", array)):
        yield Reader(f"rows of .{name}", {f"s/1.{name}": content}, f"s/1.{name}", rows, are_rows)
    part = {"file": "part-00000.npz", "rows": 6, "features": 3, "items": 6, "of": "0"}
    manifest = json.dumps({"format": featurefolder.FORMAT, "model": "0", "parts": [part]}).encode()
    Z, labels = np.random.default_rng(3).random((6, 3), np.float32), np.array(list("aabbcc"))
    files = {"z/manifest.json": manifest, "z/part-00000.npz": _npz(features=Z, labels=labels, files=labels)}
    for victim in files:
        yield Reader(
            f"folder of features, {victim[2:]}", files, victim, lambda p: featurefolder.read(p / "z"), _are_features
        )
    for name, members in (
        ("that lead elsewhere", {"../../../up.png": png, "/etc/root.png": png}),
        ("that are long", {"a/" * 5000 + "x.png": png, "x" * 9000 + ".png": png}),
    ):
        yield Reader(f".tar with names {name}", {"s/1.tar": _tar(members)}, "s/1.tar", user, _are_images, odd="read")
    bomb = io.BytesIO()
    pd.DataFrame({"image": [b"\0" * 2**20] * 600}).to_parquet(bomb, compression="zstd")
    yield Reader(".parquet bomb", {"s/1.parquet": bomb.getvalue()}, "s/1.parquet", user, _are_images, odd="refused")


def _tables() -> Iterator[Reader]:
    png = picture("png")
    files = {"t.csv": b"file,label\na.png,one\nb.png,two\nsub/c.png,one\n", "a.png": png, "b.png": png}

    def read(folder: Path) -> Any:
        images = reading.open_images(folder / "t.csv", strict=True)
        return images.read(range(len(images)))[1]

    yield Reader("images .csv", files | {"sub/c.png": png}, "t.csv", read, _are_images)


# Files that are odd without being damaged


def _png(width: int, height: int, depth: int = 8, colour: int = 2, data: bytes = b"") -> bytes:
    """A PNG that claims to be of a size."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(data)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def odd_files() -> Iterator[Reader]:
    """Bombs, empty and huge pictures, other kinds of pixels, names that lead elsewhere, programs in disguise."""

    def folder(path: Path) -> Any:
        return datasets.image_folder(path, strict=True).images

    def table(path: Path) -> Any:
        images = reading.open_images(path / "t.csv", strict=True)
        return images.read(range(len(images)))[1]

    def image(name: str, content: bytes, expected: str, ending: str = "png") -> Reader:
        return Reader(name, {f"a/1.{ending}": content}, f"a/1.{ending}", folder, _are_images, odd=expected)

    zeros = b"\0" * (3 * 8000 + 1) * 8000
    yield image("bomb that claims 100000x100000", _png(100_000, 100_000), "refused")
    yield image("bomb that claims 2147483647x2147483647", _png(2**31 - 1, 2**31 - 1), "refused")
    yield image("bomb of 13000x13000 zeros", _png(13_000, 13_000, data=b"\0" * 10_000_000), "refused")
    yield image("8000x8000 pixels in 200 kB", _png(8000, 8000, data=zeros), "read")
    yield image("long text that unpacks to a gigabyte", _with_text(), "refused")
    yield image("0x0 pixels", _png(0, 0), "refused")
    yield image("0x7 pixels", _png(0, 7), "refused")
    yield image("60000x1 pixels", _png(60_000, 1, data=b"\0" * 180_001), "read")
    yield image("animated GIF", _animated("gif"), "read", "gif")
    yield image("animated PNG", _animated("png"), "read")
    yield image("animated WebP", _animated("webp"), "read", "webp")
    yield image("TIFF of three pages", _animated("tiff"), "read", "tiff")
    yield image("16 bits", picture("png", "I;16"), "read")
    yield image("32 bits", picture("tiff", "I"), "refused", "tiff")
    yield image("32 bits, floats", picture("tiff", "F"), "refused", "tiff")
    yield image("CMYK", picture("jpeg", "CMYK"), "read", "jpg")
    yield image("CMYK TIFF", picture("tiff", "CMYK"), "read", "tiff")
    yield image("YCbCr TIFF", picture("tiff", "YCbCr"), "read", "tiff")
    yield image("L*a*b*", picture("tiff", "LAB"), "read", "tiff")
    yield image("palette", picture("png", "P"), "read")
    yield image("black and white", picture("png", "1"), "read")
    yield image("transparent", picture("png", "RGBA"), "read")
    yield image("grey, transparent", picture("png", "LA"), "read")
    yield image("PostScript in disguise", _postscript(), "refused")
    yield image("a pickle in disguise", b"cos\nsystem\n(S'touch /tmp/fire-was-here'\ntR.", "refused")
    png = picture("png")
    for where in (
        "../../../../etc/passwd",
        "/etc/passwd",
        "/dev/zero",
        "/proc/self/mem",
        ".",
        "../",
        "a\0b",
        "x" * 5000,
    ):
        files = {"t.csv": f"file,label\na.png,one\n{where},two\n".encode(), "a.png": png}
        yield Reader(f"table that names {where[:30]!r}", files, "t.csv", table, _are_images, odd="refused")
    pickled = io.BytesIO()
    np.save(pickled, np.array([{}], dtype=object), allow_pickle=True)
    huge = (
        pickled.getvalue()[:8]
        + b"\x76\x00"
        + (b"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999, 99, 99), }".ljust(117) + b"\n")
    )
    for name, content in (("of objects", pickled.getvalue()), ("that claims petabytes", huge)):
        yield Reader(
            f".npy {name}",
            {"x.npy": content},
            "x.npy",
            lambda path: reading.open_images(path / "x.npy", strict=True).read([0])[1],
            _are_images,
            odd="refused",
        )
    for name, read in (
        ("images", lambda path: reading.open_images(path / "x.npz", strict=True).read([0])[1]),
        ("features", lambda path: featurefiles.read(path / "x.npz")),
    ):
        yield Reader(f".npz bomb as {name}", {"x.npz": _npz_bomb()}, "x.npz", read, _are_images, odd="refused")
    bomb = {f"mnist/{p}-{what}": b"" for p in ("train", "t10k") for what in ("images-idx3-ubyte", "labels-idx1-ubyte")}
    del bomb["mnist/train-images-idx3-ubyte"]
    bomb["mnist/train-images-idx3-ubyte.gz"] = _gzip_bomb()
    yield Reader("idx.gz bomb", bomb, "mnist/train-images-idx3-ubyte.gz", datasets.mnist, _is_dataset, odd="refused")


def _postscript() -> bytes:
    return (
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/tmp/fire-was-here) (w) file closefile\nshowpage\n%%EOF\n"
    )


def _with_text() -> bytes:
    """A PNG whose comment unpacks to a gigabyte."""
    body = b"zTXtcomment\0\0" + _zeros(zlib.compressobj(9), 1024)
    whole, chunk = _png(8, 8, data=b"\0" * 200), struct.pack(">I", len(body) - 4) + body
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
    head, file = _npy(np.zeros((1, 1, 1), np.uint8)), io.BytesIO()
    head = head.replace(b"(1, 1, 1)", b"(1, 16384, 32768)").replace(b" " * 8 + b"\n", b"\n")[:128]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        for name in ("images", "features"):
            with made.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(head)
                for _ in range(512):
                    member.write(b"\0" * 2**20)
    return file.getvalue()


def _animated(kind: str) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    frames = [Image.fromarray((255 * np.roll(_photograph(), i, 1)).astype(np.uint8)) for i in range(3)]
    frames[0].save(file, kind, save_all=True, append_images=frames[1:])
    return file.getvalue()


# Sound


def _sound(kind: str, subtype: str = "PCM_16", channels: int = 1) -> bytes:
    import soundfile

    file, t = io.BytesIO(), np.arange(4000) / 16_000
    samples = np.stack([0.3 * np.sin(2 * pi * 440 * (1 + c) * t) for c in range(channels)], 1)
    soundfile.write(file, samples, 16_000, subtype, format=kind)
    return file.getvalue()


def _sounds() -> Iterator[Reader]:
    for kind, subtype, channels in (
        ("WAV", "PCM_16", 1),
        ("WAV", "FLOAT", 2),
        ("WAV", "IMA_ADPCM", 1),
        ("WAVEX", "PCM_24", 2),
        ("NIST", "PCM_16", 1),
        ("FLAC", "PCM_16", 2),
    ):
        content = {"a.wav": _sound(kind, subtype, channels)}
        yield Reader(f"{kind} {subtype}", content, "a.wav", lambda p: read_audio(p / "a.wav"), _is_sound)
    phones = b"0 1000 h#\n1000 1800 sh\n1800 2500 iy\n2500 4000 h#\n"
    yield Reader(".phn", {"a.phn": phones}, "a.phn", lambda p: read_phn(p / "a.phn"), _are_spans)
    wav = _sound("WAV")
    corpus = {
        f"timit/{part}/dr1/{who}/si1{ending}": content
        for part, who in (("train", "fcjf0"), ("test", "mdab0"))
        for ending, content in ((".wav", wav), (".phn", phones))
    }
    for victim in ("timit/train/dr1/fcjf0/si1.phn", "timit/test/dr1/mdab0/si1.wav"):
        yield Reader(f"TIMIT {victim[-4:]}", corpus, victim, lambda p: datasets.timit(p), lambda d: d.splits())
    table = {"t.csv": b"file,start,end,label,speaker\na.wav,0,0.1,up,ann\na.wav,0.1,,down,ann\n", "a.wav": wav}
    for victim in table:
        yield Reader(f"sound table, {victim}", table, victim, lambda p: read_table(p / "t.csv"), _is_table)


# Models


def _kept(model: Any, folder: Path) -> bytes:
    path = folder / "model"
    model.save(path)
    data = path.read_bytes()
    path.unlink()
    return data


def _resealed(data: bytes) -> bytes:
    """A model file whose JSON is as damaged as it is, under a checksum that is right."""
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    head["__metadata__"]["sha256"] = "0" * 64
    text = json.dumps(head).encode()
    blank = len(text).to_bytes(8, "little") + text + data[8 + size :]
    return blank.replace(b"0" * 64, modelfile._digest(blank).encode(), 1)


def _models() -> Iterator[Reader]:
    from tempfile import TemporaryDirectory

    from sklearn.datasets import load_digits

    digits = load_digits().data[:60] / 16
    turns = T.rotations(8, count=4, step=pi / 2)
    learner = TIRBM(4, turns, n_iter=1, random_state=0)
    photos = (255 * _photograph()[None]).astype(np.uint8)
    patches = TIRBM(3, T.translations(6, 5), n_iter=1, visible="gaussian", random_state=0)
    with TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "t.csv").write_bytes(b"file,start,end\na.wav,,\n")
        (folder / "a.wav").write_bytes(_sound("WAV"))
        segments = read_table(folder / "t.csv").segments
        learned = learner.fit(digits)
        models: dict[str, tuple[Any, Any]] = {
            "TIRBM": (learned, digits),
            "TIAutoencoder": (orbitpool.TIAutoencoder(3, n_iter=1, random_state=0).fit(digits), digits),
            "TIOMP": (orbitpool.TIOMP(3, turns, n_iter=1, random_state=0).fit(digits), digits),
            "ConvFeatures": (ConvFeatures(patches, n_patches=200, random_state=0).fit(photos), photos),
            "SpeechFeatures": (SpeechFeatures(frames=3).fit(segments), segments),
        }
        kept = {name: (_kept(model, folder), given) for name, (model, given) in models.items()}
    for name, (data, given) in kept.items():

        def read(folder: Path, given: Any = given) -> Any:
            return orbitpool.load(folder / "m"), given

        yield Reader(f"model {name}", {"m": data}, "m", read, _is_model)
        size = int.from_bytes(data[:8], "little")
        told = json.loads(data[8 : 8 + size])["__metadata__"]["orbitpool"].encode()

        def with_content(text: bytes, data: bytes = data, size: int = size) -> bytes:
            head = json.loads(data[8 : 8 + size])
            head["__metadata__"]["orbitpool"] = text.decode("latin-1")
            new = json.dumps(head).encode()
            return _resealed(len(new).to_bytes(8, "little") + new + data[8 + size :])

        def with_body(body: bytes, data: bytes = data, size: int = size) -> bytes:
            return _resealed(data[: 8 + size] + body)

        def with_head(text: bytes, data: bytes = data, size: int = size) -> bytes:
            whole = len(text).to_bytes(8, "little") + text + data[8 + size :]
            try:
                return _resealed(whole)
            except (ValueError, KeyError, TypeError, RecursionError):
                return whole

        def take(_: bytes, told: bytes = told) -> bytes:
            return told

        yield Reader(f"sealed content of {name}", {"m": data}, "m", read, _is_model, take, with_content)
        yield Reader(
            f"sealed tensors of {name}",
            {"m": data},
            "m",
            read,
            _is_model,
            lambda _, data=data, size=size: data[8 + size :],  # type: ignore[misc]
            with_body,
        )
        yield Reader(
            f"sealed header of {name}",
            {"m": data},
            "m",
            read,
            _is_model,
            lambda _, data=data, size=size: data[8 : 8 + size],  # type: ignore[misc]
            with_head,
        )
    with TemporaryDirectory() as made:
        started = TIRBM(4, turns, n_iter=1, random_state=0, checkpoint=Path(made) / "run").fit(digits)
        begun = Path(str(started.checkpoint)).read_bytes()

    def go_on(folder: Path) -> Any:
        return TIRBM(4, turns, n_iter=2, random_state=0, checkpoint=folder / "m").fit(digits), digits

    yield Reader("checkpoint", {"m": begun}, "m", go_on, _is_model)
    size = int.from_bytes(begun[:8], "little")

    def started_with(text: bytes) -> bytes:
        head = json.loads(begun[8 : 8 + size])
        head["__metadata__"]["orbitpool"] = text.decode("latin-1")
        new = json.dumps(head).encode()
        return _resealed(len(new).to_bytes(8, "little") + new + begun[8 + size :])

    counted = json.loads(begun[8 : 8 + size])["__metadata__"]["orbitpool"].encode()
    yield Reader("sealed checkpoint", {"m": begun}, "m", go_on, _is_model, lambda _: counted, started_with)


# Results


def _results() -> Iterator[Reader]:
    run = {"seed": 0, "values": [4.2], "seconds": {"learn": 1.0}, "data": "official", "device": "cpu"}
    row = {"table": "table1", "row": "rot TIRBM", "metric": "error", "quick": False, "runs": [run], "values": [4.2]}
    row |= {"mean": 4.2, "std": None, "data": "official", "settings": {"a": 1}, "paper": 4.2}
    figure = {"figure": "figure4", "quick": False, "pictures": {"filters": "figure4-filters.png"}}
    for name, content in (("row", row), ("figure", figure)):
        yield Reader(
            f"result JSON, {name}",
            {"r.json": json.dumps(content, indent=1).encode()},
            "r.json",
            lambda folder: results.load(folder / "r.json"),
            _is_result,
        )
