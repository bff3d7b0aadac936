"""Checks of parameters at an estimator's edge: each error says the value, the limit and the way out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor


def whole(name: str, value: Any, least: int = 1) -> None:
    """A whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, {least} or more")


def within(name: str, value: Any, low: float, high: float) -> None:
    """A number strictly between two others."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low < float(value) < high:
        raise ValueError(f"{name} is {value!r}; it must lie between {low} and {high}, both excluded")


def at_least(name: str, value: Any, least: float) -> None:
    """A finite number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value) or float(value) < least:
        raise ValueError(f"{name} is {value!r}; it must be a finite number, {least} or more")


def above(name: str, value: Any, low: float) -> None:
    """A finite number greater than another."""
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value) or float(value) <= low:
        raise ValueError(f"{name} is {value!r}; it must be a finite number greater than {low}")


def one_of(name: str, value: Any, choices: Iterable[Any]) -> None:
    """One of a few names."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(map(repr, choices))}")


def schedule(name: str, value: Any, below: float = inf) -> None:
    """A number from 0 up, or {epoch: number} that says what holds from epoch 0 on."""
    numbers = value if isinstance(value, Mapping) else {0: value}
    if 0 not in numbers or any(isinstance(e, bool) or not isinstance(e, Integral) or e < 0 for e in numbers):
        raise ValueError(f"{name} is {value!r}; a schedule names whole epochs and what holds from 0 on: {{0: …, 5: …}}")
    for epoch, number in numbers.items():
        at_least(f"{name}[{epoch}]" if isinstance(value, Mapping) else name, number, 0)
        if number >= below:
            raise ValueError(f"{name} is {value!r}; it must be less than {below:g}")


def rows(X: Any) -> None:
    """Not a list of arrays of more than one axis, such as batches: a list is taken as one array."""
    parts = [tuple(part.shape) for part in X if getattr(part, "ndim", 1) > 1] if isinstance(X, (list, tuple)) else []
    if parts:
        raise ValueError(
            f"X is a {type(X).__name__} of {len(X)} that holds an array of shape {parts[0]}, but it is taken as one "
            "array (N, features); give batches by a generator or a DataLoader, or join them by np.concatenate"
        )


def finite(x: Tensor) -> None:
    """Raise ValueError if a tensor holds NaN or infinity, looking at some rows at a time."""
    if not all(part.isfinite().all() for part in torch.split(x, max(1, 2**24 // max(1, x[:1].numel())))):
        raise ValueError("Input contains NaN or infinity; every value must be finite: drop or fill those rows first")
