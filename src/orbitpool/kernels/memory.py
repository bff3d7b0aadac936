"""Memory of a CPU: what one piece of work gives back, the next one wants again."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

BLOCK = 2**25  # bytes; larger blocks always come from the system, which glibc allows no one to change
KEPT = 2**27  # bytes that are kept when they are given back
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h has them
_OF_USERS = "GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"


@cache
def keep_freed() -> None:
    """Have glibc keep freed memory, unless its user has set how: new pages take longer than the work on them."""
    if sys.platform != "linux" or any(name in os.environ for name in _OF_USERS):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other libraries have none
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, BLOCK)
        mallopt(_TRIM_THRESHOLD, KEPT)
