"""Who says what when: TIMIT's .phn files, and tables of file, start, end, label."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from orbitpool.speech.audio import RATE
from orbitpool.speech.phones import PHONES
from orbitpool.speech.recordings import Recording, Segment, segment


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
    for where, row in _rows(path):
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


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The file and line of each row, and its fields by the names in the header."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            _check_header(path, reader.fieldnames or [])
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                if None in row or None in row.values():
                    count = len(reader.fieldnames or [])
                    raise ValueError(f"{where}: the row has not {count} fields as the header; quote what holds commas")
                if not row["file"]:
                    raise ValueError(f"{where}: the field file is empty; name a sound file")
                yield where, row
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is not a table of comma-separated fields in UTF-8: {error}; export it anew"
        ) from error


def _check_header(path: Path, columns: Sequence[str]) -> None:
    if missing := [name for name in ("file", "start", "end") if name not in columns]:
        raise ValueError(
            f"{path}, line 1: the header is {','.join(columns)!r} and lacks {', '.join(missing)}; "
            "it must be file,start,end and may have label,speaker"
        )


def _seconds(text: str, name: str, where: str) -> float | None:
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"{where}: {name} is {text!r}; give seconds, as in 0.25, or leave it empty") from error
