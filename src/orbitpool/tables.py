"""Comma-separated tables with a header, whose errors name the file and the line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path


def header(path: Path) -> list[str]:
    """The names of a table's columns."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        return next(csv.reader(file), [])


def rows(path: Path, needs: Sequence[str], may: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The file and line of each row, and its fields by the names in the header; `file` must not be empty."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            _check_header(path, reader.fieldnames or [], needs, may)
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                if None in row or None in row.values():
                    count = len(reader.fieldnames or [])
                    raise ValueError(f"{where}: the row has not {count} fields as the header; quote what holds commas")
                if not row["file"]:
                    raise ValueError(f"{where}: the field file is empty; name a file")
                yield where, row
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is not a table of comma-separated fields in UTF-8: {error}; export it anew"
        ) from error


def _check_header(path: Path, columns: Sequence[str], needs: Sequence[str], may: Sequence[str]) -> None:
    if missing := [name for name in needs if name not in columns]:
        raise ValueError(
            f"{path}, line 1: the header is {','.join(columns)!r} and lacks {', '.join(missing)}; "
            f"it must be {','.join(needs)} and may have {','.join(may)}, with commas between them"
        )
