"""What the kinds of data share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Columns = dict[str, list[Any]]  # what each row of features is: file, label, …
Tell = Callable[[str], None]
