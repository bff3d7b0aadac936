"""TIMIT: read speech with the time of every phone, whole or the sample of it that is free to use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orbitpool.datasets.dataset import Provenance
from orbitpool.datasets.store import DataCorrupt, DataMissing, Folder, data_dir
from orbitpool.speech import FOLD, Recording, Segment, read_phn
from orbitpool.speech.recordings import segment

_ROOMS = ("timit", "TIMIT", "timit_sample")
_SUFFIXES = (".wav", ".sph", ".flac")
FOLDS = 6  # of the speakers, where the published test speakers are not there
TRAIN_SPEAKERS = 462

# The 24 speakers of the core test set (documentation of the corpus), and the 50 of the development set, which come out
# of the rest of the test part (Halberstadt, 1998).
_CORE_TEST = """
    mdab0 mwbt0 felc0 mtas1 mwew0 fpas0 mjmp0 mlnt0 fpkt0 mlll0 mtls0 fjlm0
    mbpm0 mklt0 fnlp0 mcmj0 mjdh0 fmgd0 mgrt0 mnjm0 fdhc0 mjln0 mpam0 fmld0
"""
_DEVELOPMENT = """
    faks0 fdac1 fjem0 mgwt0 mjar0 mmdb1 mmdm2 mpdf0 fcmh0 fkms0 mbdg0 mbwm0 mcsh0 fadg0 fdms0 fedw0 mgjf0
    mglb0 mrtk0 mtaa0 mtdt0 mthc0 mwjg0 fnmr0 frew0 fsem0 mbns0 mmjr0 mdls0 mdlf0 mdvc0 mers0 fmah0 fdrw0
    mrcs0 mrjm4 fcal1 mmwh0 fjsj0 majc0 mjsw0 mreb0 fgjd0 fjmg0 mroa0 mteb0 mjfc0 mrjr0 fmml0 mrws1
"""
CORE_TEST, DEVELOPMENT = (frozenset(names.split()) for names in (_CORE_TEST, _DEVELOPMENT))


@dataclass(frozen=True)
class Phones:
    """Segments that are phones, and of each its class of 39, its speaker, and the part of the corpus that it is in.

    Parts are "train" (what lies in a folder of that name), "development" and "test" (the published speakers, the latter
    those of the core test set); "" is everything else.
    """

    name: str
    provenance: Provenance
    source: str
    segments: list[Segment]
    labels: NDArray[np.str_]
    speakers: NDArray[np.str_]
    parts: NDArray[np.str_]

    @property
    def published(self) -> bool:
        """Whether there are training and core test speakers, so that the published split can be made."""
        return {"train", "test"} <= set(self.parts)

    @property
    def protocol(self) -> str:
        """How `splits` judges, in words."""
        if self.published:
            return "published training and core test speakers"
        return f"speaker-disjoint cross-validation, {len(self.splits())} folds"

    def splits(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Segments to learn from and segments to judge on: the published split, or else folds of the speakers.

        Folds take the speakers in the order of the files; in the sample each is a woman and a man of one region.
        """
        if self.published:
            return [(np.flatnonzero(self.parts == "train"), np.flatnonzero(self.parts == "test"))]
        speakers = list(dict.fromkeys(self.speakers))
        if len(speakers) < 3:
            raise DataMissing(
                f"{self.source}: cross-validation over speakers, with another inside it, needs 3 of them; add speakers"
            )
        judged = [np.isin(self.speakers, group) for group in np.array_split(speakers, min(FOLDS, len(speakers)))]
        return [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in judged]


def timit(folder: Folder | None = None) -> Phones:
    """The phones of TIMIT in the data folder, folded to 39 classes, glottal stops and SA sentences left out.

    Official trees (TRAIN/DR1/FCJF0/SI648.PHN, in upper or lower case) and that of the free sample
    (dr1-fvmh0/si836.phn) are read; sound is RIFF, NIST SPHERE (PCM) or FLAC beside the .phn.
    """
    home = data_dir(folder)
    top, notes = next(((home / r, found) for r in _ROOMS if (found := _annotations(home / r))), (home, []))
    if not notes:
        raise DataMissing(
            "timit needs TRAIN and TEST of LDC93S1, or the sample that NLTK distributes (its package timit), not "
            f"found in {home}; the corpus is licensed and cannot be fetched: put either into {home / _ROOMS[0]}"
        )
    rows = [
        (spoken, label, recording.speaker, part)
        for path in notes
        for recording, part in [(Recording.read(_sound(path), _speaker(path)), _part(path.relative_to(top)))]
        for spoken, label in _phones(path, recording)
    ]
    if not rows:
        raise DataCorrupt(f"the .phn files in {top} name no phone but glottal stops; restore them from a copy")
    segments, *columns = zip(*rows, strict=True)
    labels, speakers, parts = (np.array(column) for column in columns)
    present = set(speakers)
    whole = present >= CORE_TEST | DEVELOPMENT and len(set(speakers[parts == "train"])) == TRAIN_SPEAKERS
    source = f"{len(notes)} utterances of {len(present)} speakers in {top}{'' if whole else ', not the whole of TIMIT'}"
    return Phones("timit", "official" if whole else "stand-in", source, list(segments), labels, speakers, parts)


def _annotations(top: Path) -> list[Path]:
    """The .phn files below a folder that count, in an order that does not depend on upper and lower case."""
    files = [p for p in top.glob("**/*") if not p.name.lower().startswith(("sa", "."))]
    notes = {str(p.with_suffix("")).lower(): p for p in files if p.suffix.lower() == ".phn"}
    for sound in (p for p in files if p.suffix.lower() in _SUFFIXES and notes):
        if str(sound.with_suffix("")).lower() not in notes:
            raise DataCorrupt(f"{sound} has no .phn beside it; restore that from a copy, or take the sound away")
    return [notes[name] for name in sorted(notes)]


def _sound(notes: Path) -> Path:
    """The sound file that belongs to a .phn."""
    beside = {p.name.lower(): p for p in notes.parent.iterdir()}
    for suffix in _SUFFIXES:
        if path := beside.get(f"{notes.stem.lower()}{suffix}"):
            return path
    raise DataCorrupt(f"{notes} has no sound beside it ({', '.join(_SUFFIXES)}); restore it from a copy")


def _speaker(notes: Path) -> str:
    return notes.parent.name.lower().rpartition("-")[2]  # the sample's folders are dr1-fvmh0


def _part(notes: Path) -> str:
    if "train" in (folder.name.lower() for folder in notes.parents):
        return "train"
    speaker = _speaker(notes)
    return "test" if speaker in CORE_TEST else "development" if speaker in DEVELOPMENT else ""


def _phones(path: Path, recording: Recording) -> list[tuple[Segment, str]]:
    return [
        (segment(recording, span.start, span.end, span.where), FOLD[span.label])
        for span in read_phn(path)
        if span.label in FOLD
    ]
