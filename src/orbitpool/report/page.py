"""What a page holds, and its two forms: one HTML file that needs nothing else, and Markdown with pictures beside it."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path

from orbitpool.wholefile import check_writable, whole


@dataclass(frozen=True)
class Table:
    """Rows of words and numbers under a head; the first column names the row."""

    head: tuple[str, ...]
    rows: list[tuple[str, ...]]


@dataclass(frozen=True)
class Picture:
    """A PNG file's content, under which name it is kept, its caption, and what it shows to those who cannot see it."""

    name: str
    png: bytes
    caption: str
    shows: str

    @property
    def address(self) -> str:
        """The picture itself, as an address that a page can hold."""
        return f"data:image/png;base64,{b64encode(self.png).decode()}"


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    title: str
    words: str = ""
    table: Table | None = None
    pictures: list[Picture] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """A title, an opening, and sections."""

    title: str
    words: str
    sections: list[Section]


def write(page: Page, folder: Path) -> Path:
    """Write index.html, index.md and the pictures into a folder, each whole or not at all; the path of index.html."""
    check_writable(folder)
    for picture in (picture for section in page.sections for picture in section.pictures):
        with whole(folder / picture.name) as file:
            file.write(picture.png)
    for name, text in (("index.md", markdown(page)), ("index.html", html(page))):
        with whole(folder / name) as file:
            file.write(text.encode())
    return folder / "index.html"


def html(page: Page) -> str:
    """The page as one HTML file, pictures included."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    rooms = Environment(
        loader=PackageLoader("orbitpool.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return rooms.get_template("page.html").render(page=page)


def markdown(page: Page) -> str:
    """The page as Markdown that names its pictures."""
    parts = [f"# {page.title}", page.words]
    for section in page.sections:
        parts += [f"## {section.title}", section.words]
        if section.table:
            parts.append("\n".join(_row(row) for row in _lines(section.table)))
        parts += [f"![{_flat(p.shows)}]({p.name})\n\n{p.caption}" for p in section.pictures]
    return "\n\n".join(part for part in parts if part) + "\n"


def _lines(table: Table) -> list[tuple[str, ...]]:
    return [table.head, ("---",) * len(table.head), *table.rows]


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_flat(cell).replace("|", "\\|") for cell in cells) + " |"


def _flat(text: str) -> str:
    return " ".join(text.split())
