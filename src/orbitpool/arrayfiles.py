"""Arrays in .npy and .npz files: nothing in them is executed, and whatever is wrong with one is a ValueError."""

from __future__ import annotations

import io
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

LARGE = 2**28  # bytes that an archive may unpack to, however small it is
RATIO = 100  # beyond that, times what it takes packed: pictures do not shrink further, bombs do
PADDING = 0xD935  # marks what fills up to a multiple, as in Android's archives

# All that reading a damaged array has been seen to raise, besides ValueError.
_DAMAGE = (
    ValueError,
    OSError,
    EOFError,
    KeyError,
    SyntaxError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    RecursionError,
    MemoryError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npy(path: Path) -> NDArray[Any]:
    """The array of a .npy file, mapped rather than read."""
    with path.open("rb"):  # a file that is not there, or not to be read, is another matter
        pass
    try:
        held = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(held, np.ndarray):
            held.close()
            raise ValueError("it is an archive")
        return held
    except _DAMAGE as error:
        raise ValueError(f"{path} cannot be read as arrays ({_why(error)}); write it anew with numpy.save") from error


def read_npz(path: Path, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
    """Arrays of an .npz file by name: all, or those of the names that are there."""
    with path.open("rb"):
        pass
    try:
        with zipfile.ZipFile(path) as archive:
            held = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            wanted = held if names is None else [name for name in names if name in held]
            return {name: _member(archive, held[name]) for name in wanted}
    except _DAMAGE as error:
        raise ValueError(f"{path} cannot be read as arrays ({_why(error)}); write it anew with numpy.savez") from error


def map_npz(path: Path, name: str) -> NDArray[Any]:
    """One array of an .npz file: mapped if `write_npz` wrote it, else read; its checksum is looked at in any case."""
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                info = archive.getinfo(f"{name}.npy")
                found = _place(file, archive, info)
                return _member(archive, info) if found is None else np.memmap(path, mode="r", **found)
        except _DAMAGE as error:
            raise ValueError(f"{path} cannot be read as arrays ({_why(error)}); write it anew") from error


def _place(file: IO[bytes], archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> dict[str, Any] | None:
    """Where an array lies in a file and what it is, if it lies there as it does in memory."""
    if info.compress_type != zipfile.ZIP_STORED:
        return None
    with archive.open(info) as member:
        shape, fortran, dtype = _header(member)
        inside = member.tell()
        while member.read(2**20):  # to the end, where its checksum is compared
            pass
    file.seek(info.header_offset + 26)
    offset = info.header_offset + 30 + sum(struct.unpack("<HH", file.read(4))) + inside
    whole = inside + prod(shape) * dtype.itemsize == info.file_size
    if not whole or dtype.kind not in "fiub" or offset % dtype.alignment or prod(shape) == 0:
        return None
    return {"dtype": dtype, "shape": shape, "offset": offset, "order": "F" if fortran else "C"}


def write_npz(file: IO[bytes], **arrays: NDArray[Any]) -> None:
    """Write what `numpy.savez` writes, with every array at a multiple of 64 bytes, so that it can be mapped."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            start = file.tell() + 30 + len(info.filename.encode()) + 4 + 20  # with what says how large it is
            info.extra = struct.pack("<HH", PADDING, -start % 64) + bytes(-start % 64)
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """One array, if it is as large as it says, and says what is likely."""
    if info.file_size > max(LARGE, RATIO * info.compress_size):
        raise ValueError(
            f"{info.filename} unpacks from {info.compress_size:,} to {info.file_size:,} bytes, more than {RATIO} times "
            "as much; use numpy.save if that is meant"
        )
    data = archive.read(info)
    file = io.BytesIO(data)
    shape, _, dtype = _header(file)
    if file.tell() + prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"{info.filename} announces {prod(shape):,} numbers of {dtype} and holds {len(data):,} bytes")
    file.seek(0)
    array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    if dtype.kind == "U" and array.size and not _is_text(np.ascontiguousarray(array)):
        raise ValueError(f"{info.filename} holds numbers in the place of letters")
    return array


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read:
        raise ValueError(f"version {version} of the .npy format is not known; versions 1 and 2 are")
    found: tuple[tuple[int, ...], bool, np.dtype[Any]] = read[version](file)
    return found


def _is_text(array: NDArray[Any]) -> bool:
    """Whether all letters are letters: Python breaks on those that Unicode does not have."""
    codes = array.astype(array.dtype.newbyteorder("=")).reshape(-1).view(np.uint32)
    return not bool((codes > 0x10FFFF).any() or ((codes >= 0xD800) & (codes < 0xE000)).any())


def _why(error: BaseException) -> str:
    """A reason in words, also where a library gives none."""
    words = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return words.splitlines()[0] if words else type(error).__name__
