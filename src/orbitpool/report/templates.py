"""The texts that pages are made from."""

from __future__ import annotations

from functools import cache
from typing import Any


def fill(name: str, **values: Any) -> str:
    """A template of this folder, filled with values, which are escaped."""
    text: str = _rooms().get_template(name).render(**values)
    return text


@cache
def _rooms() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("orbitpool.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
