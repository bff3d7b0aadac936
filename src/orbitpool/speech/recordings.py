"""What features are made of: recordings as frames, and segments of them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import NamedTuple

from orbitpool.speech.audio import RATE, read_audio
from orbitpool.speech.mfcc import SHIFT, Frames, mfcc


@dataclass(frozen=True, eq=False)
class Recording:
    """Sound as frames (T, 39), how long it is, where it came from and who speaks."""

    name: str
    frames: Frames = field(repr=False)
    seconds: float
    speaker: str = ""

    @classmethod
    def read(cls, path: str | os.PathLike[str], speaker: str = "") -> Recording:
        """The recording in a sound file; see `read_audio` for what is read and how."""
        samples = read_audio(path)
        try:
            return cls(str(path), mfcc(samples), len(samples) / RATE, speaker)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


class Segment(NamedTuple):
    """A part of a recording, from start to end in seconds."""

    recording: Recording
    start: float
    end: float


def segment(recording: Recording, start: float, end: float, where: str) -> Segment:
    """A part of a recording, if it has such a part; `where` says in an error who asked for it.

    Parts that go past the end by no more than a frame (10 ms) are cut there.
    """
    if not 0 <= start < end:
        raise ValueError(
            f"{where}: the segment goes from {start:g} s to {end:g} s; it must start at 0 or later and "
            "end after its start"
        )
    if end > recording.seconds + SHIFT or start >= recording.seconds:
        raise ValueError(
            f"{where}: the segment goes from {start:g} s to {end:g} s, but {recording.name} ends at "
            f"{recording.seconds:g} s; correct the boundaries or take the whole recording"
        )
    return Segment(recording, start, min(end, recording.seconds))
