"""What a page holds, and its two forms: one HTML file that needs nothing else, and Markdown with pictures beside it."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orbitpool.report.charts import Chart
from orbitpool.report.templates import fill
from orbitpool.wholefile import check_writable, write_whole

LARGE = 500  # pixels


@dataclass(frozen=True)
class Table:
    """Rows of words and numbers under a head; the first column names the row."""

    head: tuple[str, ...]
    rows: list[tuple[str, ...]]


@dataclass(frozen=True)
class Sheet:
    """Tiles edge to edge in a PNG file, whose rows and columns have names: filters and poses, or digits and angles."""

    name: str
    png: bytes
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def address(self) -> str:
        """The sheet itself, as an address that a page can hold."""
        return _address(self.png)

    @property
    def middle(self) -> int:
        """The column of a filter as it is: sets of poses go from one end to the other."""
        return (len(self.columns) - 1) // 2


@dataclass(frozen=True)
class Picture:
    """A PNG file's content, under which name it is kept, its caption, and what it shows to those who cannot see it.

    A picture of filters can have their orbits: a page then shows those of the filter that is pointed at.
    """

    name: str
    png: bytes
    caption: str
    shows: str
    orbits: Sheet | None = None

    @property
    def address(self) -> str:
        """The picture itself, as an address that a page can hold."""
        return _address(self.png)

    @property
    def large(self) -> bool:
        """Whether it takes the width of a page to be read."""
        return int.from_bytes(self.png[16:20]) >= LARGE  # where a PNG file has its width

    @property
    def files(self) -> dict[str, bytes]:
        """The picture as a file, and its orbits."""
        return {self.name: self.png} | ({self.orbits.name: self.orbits.png} if self.orbits else {})


@dataclass(frozen=True)
class Explorer:
    """A digit to turn by a slider, and for each machine its filters, and numbers that say which are on in which pose.

    The numbers are those of `experiments.invariance.Study.explore`: `on`, `pose` and `similarity`.
    """

    digits: Sheet
    step: int  # degrees
    machines: dict[str, tuple[Picture, dict[str, str]]]

    @property
    def files(self) -> dict[str, bytes]:
        """All pictures as files."""
        found = {self.digits.name: self.digits.png}
        for picture, _ in self.machines.values():
            found |= picture.files
        return found


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    title: str
    words: str = ""
    table: Table | None = None
    pictures: list[Picture] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    explorer: Explorer | None = None

    @property
    def files(self) -> dict[str, bytes]:
        """All that is kept in files of its own, by their names."""
        parts: list[Any] = [*self.pictures, *self.charts, *([self.explorer] if self.explorer else [])]
        return {name: content for part in parts for name, content in part.files.items()}


@dataclass(frozen=True)
class Page:
    """A title, an opening, and sections."""

    title: str
    words: str
    sections: list[Section]


def write(page: Page, folder: Path) -> Path:
    """Write index.html, index.md and the pictures into a folder, each whole or not at all; the path of index.html."""
    check_writable(folder)
    files = {name: content for section in page.sections for name, content in section.files.items()}
    for name, content in (files | {"index.md": markdown(page).encode(), "index.html": html(page).encode()}).items():
        write_whole(folder / name, content)
    return folder / "index.html"


def html(page: Page) -> str:
    """The page as one HTML file, pictures included."""
    return fill("page.html", page=page)


def markdown(page: Page) -> str:
    """The page as Markdown that names its pictures."""
    parts = [f"# {page.title}", page.words]
    for section in page.sections:
        parts += [f"## {section.title}", section.words]
        if section.table:
            parts.append("\n".join(_row(row) for row in _lines(section.table)))
        explored = [picture for picture, _ in section.explorer.machines.values()] if section.explorer else []
        shown: list[Picture | Chart] = [*section.charts, *section.pictures, *explored]
        parts += ["[The page](index.html) has a slider to turn them by."] if section.explorer else []
        parts += [_shown(part) for part in shown]
    return "\n\n".join(part for part in parts if part) + "\n"


def _shown(part: Picture | Chart) -> str:
    orbits = getattr(part, "orbits", None)
    poses = f" ([in every pose]({orbits.name}), one row a filter)" if orbits and len(orbits.columns) > 1 else ""
    return f"![{_flat(part.shows)}]({part.name})\n\n{part.caption}{poses}"


def _lines(table: Table) -> list[tuple[str, ...]]:
    return [table.head, ("---",) * len(table.head), *table.rows]


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_flat(cell).replace("|", "\\|") for cell in cells) + " |"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _address(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode()}"
