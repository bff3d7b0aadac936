"""Results as pages that people read: one content, in HTML and in Markdown."""

from orbitpool.report.page import Page, Picture, Section, Table, write
from orbitpool.report.tables import report

__all__ = ["Page", "Picture", "Section", "Table", "report", "write"]
