"""What the kinds of data share."""

from __future__ import annotations

from typing import Any

Columns = dict[str, list[Any]]  # what each row of features is: file, label, …
