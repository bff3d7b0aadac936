"""Write docs/results.md, the tables of the paper beside ours, from results/: `PYTHONPATH=src python -m lab.results`."""

from dataclasses import replace
from pathlib import Path

from orbitpool.report.page import markdown
from orbitpool.report.tables import report

HOME = Path(__file__).parent.parent
PAGE = HOME / "docs" / "results.md"
WORDS = (
    "This page is written by `python -m lab.results` from `results/`, whose files say more of every run; {doc}`lab` "
    "tells how settings were chosen."
)


def page() -> str:
    """The page as it should be now."""
    whole = report(HOME / "results")
    tables = [section for section in whole.sections if section.title.startswith(("Table", "Beyond"))]
    return markdown(replace(whole, words=f"{whole.words} {WORDS}", sections=tables))


if __name__ == "__main__":
    PAGE.write_text(page())
