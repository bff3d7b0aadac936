"""What a value looks like, cut short for an error message."""

from __future__ import annotations

from typing import Any


def excerpt(value: Any, most: int = 60) -> str:
    """The repr of a value, or the beginning of it and "…", so many characters at most."""
    whole = repr(value)
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"
