"""Memory of a CPU: what one piece of work gives back, the next one wants again."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

BLOCK = 2**25  # bytes; larger blocks always come from the system: older versions of glibc refuse a larger limit
KEPT = 2**27  # bytes that may lie free at the end of each of glibc's arenas
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h has them


@cache
def keep_freed() -> None:
    """Have glibc keep freed memory, unless its user has set how: new pages take longer than the work on them."""
    if sys.platform != "linux" or _set_by_user():
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other libraries have none
    if mallopt is not None and mallopt(_MMAP_THRESHOLD, BLOCK):
        mallopt(_TRIM_THRESHOLD, KEPT)


def _set_by_user() -> bool:
    older = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"
    return "glibc.malloc." in os.environ.get("GLIBC_TUNABLES", "") or any(name in os.environ for name in older)
