import os
import platform
import subprocess
import sys

import pytest

# A hundred megabytes in blocks are taken, written and given back, ten times; how many pages came anew after the first.
AGAIN = """
import ctypes, resource, sys
from orbitpool.kernels.memory import keep_freed

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
if sys.argv[1] == "kept":
    keep_freed()
for turn in range(10):
    blocks = [ctypes.c_void_p(libc.malloc(10_000_000)) for _ in range(10)]
    for block in blocks:
        libc.memset(block, 1, ctypes.c_size_t(10_000_000))
    for block in reversed(blocks):
        libc.free(block)
    if turn == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
PAGES = 9 * 100_000_000 // 4096


def faults(how, **settings):
    here = {name: value for name, value in os.environ.items() if "MALLOC" not in name and "GLIBC" not in name}
    given = {"capture_output": True, "text": True, "check": True, "env": here | settings}
    return int(subprocess.run([sys.executable, "-c", AGAIN, how], **given).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_what_was_freed_is_there_again_unless_users_say_how():
    assert faults("kept") < PAGES / 10
    assert faults("not kept") > PAGES / 2
    assert faults("kept", MALLOC_TRIM_THRESHOLD_="65536") > PAGES / 2
