"""Who says what when: TIMIT's .phn files, and tables of file, start, end, label."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from orbitpool.progress import counted
from orbitpool.speech.audio import RATE
from orbitpool.speech.phones import PHONES
from orbitpool.speech.recordings import Recording, Segment, segment
from orbitpool.tables import rows


class Span(NamedTuple):
    """A labelled stretch of time in seconds, and the file and line that it stands in."""

    start: float
    end: float
    label: str
    where: str


class Table(NamedTuple):
    """Segments of a user's recordings, and a label of each, "" where there is none."""

    segments: list[Segment]
    labels: list[str]


def read_phn(path: str | os.PathLike[str]) -> list[Span]:
    """The phones of an utterance, in order, by TIMIT's 61 symbols; gaps may be, overlaps may not."""
    spans: list[Span] = []
    for number, line in enumerate(Path(path).read_text(encoding="latin-1").splitlines(), 1):
        if line.strip():
            spans.append(_span(line, f"{path}, line {number}", after=spans[-1].end if spans else 0.0))
    if not spans:
        raise ValueError(f"{path} names no phones; it needs lines of first sample, end and symbol")
    return spans


def _span(line: str, where: str, after: float) -> Span:
    fields = line.split()
    if len(fields) != 3 or not all(re.fullmatch("[0-9]{1,12}", field) for field in fields[:2]):
        raise ValueError(f"{where}: {line.strip()!r} is not a first sample, an end and a symbol, as in '0 2193 h#'")
    start, end, label = int(fields[0]) / RATE, int(fields[1]) / RATE, fields[2].lower()
    if end <= start:
        raise ValueError(f"{where}: the phone goes from sample {fields[0]} to {fields[1]}; it must end after its start")
    if start < after:
        raise ValueError(
            f"{where}: the phone starts at sample {fields[0]}, before the one above ends at {after * RATE:.0f}; "
            "phones must not overlap"
        )
    if label not in PHONES:
        raise ValueError(f"{where}: {fields[2]!r} is not one of TIMIT's 61 phones; choose from {' '.join(PHONES)}")
    return Span(start, end, label, where)


def read_table(path: str | os.PathLike[str]) -> Table:
    """Segments and labels of a CSV with the columns file, start, end, label and, if given, speaker.

    Files are relative to the table; start and end are in seconds, and empty ones mean the whole recording; label and
    speaker may be missing. Segments may overlap.
    """
    path = Path(path)
    recordings: dict[tuple[str, str], Recording] = {}
    table = Table([], [])
    lines = list(rows(path, needs=("file", "start", "end"), may=("label", "speaker")))
    for where, row in counted(lines, "read", "segments"):
        key = row["file"], row.get("speaker", "")
        if key not in recordings:
            try:
                recordings[key] = Recording.read(path.parent / row["file"], key[1])
            except FileNotFoundError as error:
                raise ValueError(f"{where}: there is no {path.parent / row['file']}; correct the path") from error
            except (OSError, ValueError) as error:
                raise ValueError(f"{where}: {error}") from error
        recording = recordings[key]
        start, end = (_seconds(row[name], name, where) for name in ("start", "end"))
        table.segments.append(
            segment(recording, 0.0 if start is None else start, recording.seconds if end is None else end, where)
        )
        table.labels.append(row.get("label", ""))
    if not table.segments:
        raise ValueError(f"{path} has no rows below its header; give one a segment: file,start,end,label")
    if any(table.labels) and not all(table.labels):
        number = table.labels.index("") + 1
        raise ValueError(f"{path}: segment {number} has no label although others have; label all of them or none")
    return table


def _seconds(text: str, name: str, where: str) -> float | None:
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"{where}: {name} is {text!r}; give seconds, as in 0.25, or leave it empty") from error
