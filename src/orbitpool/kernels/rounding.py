"""Products of float32 numbers whose factors are rounded to bfloat16, on CPUs that are faster with such."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_lock = Lock()
_before: list[str] = []  # what was set before the first block that has not been left, once for each of them


@contextmanager
def rounding(precision: str) -> Iterator[None]:
    """For "bfloat16", products in this block round their factors and add up in float32 if the processor has AMX.

    Others multiply as ever. It holds for the whole program until the last such block is left, in any thread.
    """
    if precision != "bfloat16":
        yield
        return
    backend = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    with _lock:
        _before.append(_before[0] if _before else backend.fp32_precision)
        backend.fp32_precision = "bf16"
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before:
                backend.fp32_precision = before
