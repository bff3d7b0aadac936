"""A user's recordings: learn a model from them, and turn them into features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from orbitpool import transforms as T
from orbitpool.learners import TIRBM
from orbitpool.learners.checks import one_of
from orbitpool.progress import say
from orbitpool.speech import SpeechFeatures, read_table
from orbitpool.userdata.items import Columns

TRANSFORMS: dict[str, T.TransformSet | None] = {"shifts": T.time_shifts(11, 9), "none": None}
ENDINGS = (".wav", ".flac", ".sph", ".ogg", ".mp3", ".aif", ".aiff", ".au")
USUAL: dict[str, Any] = {
    "visible": "gaussian",
    "sigma": "learned",
    "two_sided": True,
    "learning_rate": 0.005,
    "batch_size": 100,
    "n_iter": 30,
}


def learn(
    source: Path, transforms: str | None, seed: int, device: str, strict: bool, **settings: Any
) -> SpeechFeatures:
    """A model of the recordings that a table of file, start, end, label names; what cannot be read is an error."""
    name = transforms or "shifts"
    one_of("transforms", name, TRANSFORMS)
    learner = TIRBM(transforms=TRANSFORMS[name], **{**USUAL, **settings})
    if source.is_dir():
        raise ValueError(f"{source} is a folder; sound is a table of file,start,end and, if you like, label,speaker")
    say(f"reading the recordings of {source}")
    return SpeechFeatures(learner, device=device, random_state=seed).fit(read_table(source).segments)


def is_model(model: Any) -> bool:
    """Whether a model takes segments of sound."""
    return isinstance(model, SpeechFeatures)


def encode(model: SpeechFeatures, source: Path, strict: bool) -> tuple[NDArray[Any], Columns]:
    """Features of all segments of a table, (N, F), with where they are and their labels."""
    say(f"encoding the segments of {source}")
    segments, labels = read_table(source)
    names, starts, ends = zip(*((s.recording.name, s.start, s.end) for s in segments), strict=True)
    columns = {"file": list(names), "start": list(starts), "end": list(ends), "label": labels}
    return model.transform(segments), columns
