"""Sound files as samples: one channel at 16 kHz, whatever the file holds, and an error where it holds too little."""

from __future__ import annotations

import os
import re
from importlib import import_module
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.learners.checks import one_of

RATE = 16_000  # samples a second of everything that follows
FORMATS = ("WAV", "WAVEX", "NIST", "FLAC")
FASTEST = 1_000_000  # samples a second
DENSEST, LARGE = 64, 2**26  # samples a byte, in files of more samples than that; silence in FLAC can be as dense
LOUDEST = 100.0  # some files of floats go a little beyond 1

Samples = NDArray[np.float32]


def read_audio(path: str | os.PathLike[str]) -> Samples:
    """Samples of a sound file at 16 kHz in [-1, 1], (N,).

    RIFF, NIST SPHERE (PCM) and FLAC, of which it can be told whether they are whole. Channels are averaged; files that
    are sampled faster are brought down to 16 kHz by a polyphase filter; slower ones, truncated, empty or compressed by
    shorten, raise ValueError.
    """
    soundfile = extra("soundfile")
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no plain file; name a file of sound")
    with path.open("rb") as beginning:
        head = beginning.read(16_384)
    if head.startswith(b"NIST_1A") and re.search(rb"sample_coding -s\d+ \S*shorten", head):
        raise ValueError(f"{path} is compressed by shorten, which cannot be read; sph2pipe -f wav {path.name} converts")
    try:
        with soundfile.SoundFile(path) as file:
            one_of(f"the format of {path}", file.format, FORMATS)
            _check_likely(path, file)
            samples, rate = file.read(dtype="float32", always_2d=True).mean(1), file.samplerate
            _check_whole(path, head, file)
    except soundfile.SoundFileError as error:
        raise ValueError(f"{path} cannot be read as sound ({error}); restore it from a copy or convert it") from error
    if not len(samples):
        raise ValueError(f"{path} holds no sound; take it away or restore it from a copy")
    if not (largest := float(np.abs(samples).max())) <= LOUDEST:
        raise ValueError(f"{path} has a sample of {largest:g}; they must lie in [-1, 1]: scale them, and leave out NaN")
    if rate < RATE:
        raise ValueError(f"{path} has {rate} samples a second; {RATE} or more are needed: take another recording")
    return samples if rate == RATE else _resampled(samples, rate)


def extra(module: str) -> Any:
    """A module of the extra `speech`."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"sound needs {module}, which is not installed: pip install -c constraints.txt '.[speech]'"
        ) from error


def _check_likely(path: Path, file: Any) -> None:
    """Raise ValueError for a header that announces more than a file of this size can mean."""
    numbers, size = file.frames * file.channels, path.stat().st_size
    if numbers > max(LARGE, DENSEST * size):
        raise ValueError(f"{path} announces {numbers:,} samples in {size:,} bytes; restore it from a copy")
    if file.samplerate > FASTEST:
        raise ValueError(f"{path} announces {file.samplerate:,} samples a second; {FASTEST:,} are the most: convert it")


def _check_whole(path: Path, head: bytes, file: Any) -> None:
    """Raise ValueError if a file is shorter than its own header says."""
    declared = re.search(rb"sample_count -i (\d+)", head) if file.format == "NIST" else None
    told = re.search(r"data : (\d+) \(should be (\d+)\)", file.extra_info)  # how libsndfile reports a short RIFF
    missing = int(declared[1]) - file.frames if declared else int(told[1]) - int(told[2]) if told else 0
    if missing > 0:
        unit = "samples" if declared else "bytes"
        raise ValueError(f"{path} is truncated: {missing} {unit} are missing; restore it from a copy")


def _resampled(samples: Samples, rate: int) -> Samples:
    from scipy.signal import resample_poly

    shared = gcd(rate, RATE)
    return np.asarray(resample_poly(samples, RATE // shared, rate // shared), dtype=np.float32)
