import os
import platform
import subprocess
import sys

import pytest

# A hundred megabytes in blocks are taken, written and given back; which share of them the program still holds.
SHARE = """
import ctypes, sys
from orbitpool.kernels.devices import choose_device

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
if sys.argv[1] == "kept":
    choose_device("cpu", None)
before = resident()
blocks = [ctypes.c_void_p(libc.malloc(10_000_000)) for _ in range(10)]
for block in blocks:
    libc.memset(block, 1, ctypes.c_size_t(10_000_000))
full = resident()
for block in reversed(blocks):
    libc.free(block)
print((resident() - before) / (full - before))
"""


def share_kept(how, **settings):
    here = {name: value for name, value in os.environ.items() if "MALLOC" not in name and "GLIBC" not in name}
    given = {"capture_output": True, "text": True, "check": True, "env": here | settings}
    return float(subprocess.run([sys.executable, "-c", SHARE, how], **given).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_freed_memory_is_kept_where_a_cpu_is_chosen():
    assert share_kept("kept") > 0.9
    assert share_kept("not kept") < 0.5


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_users_who_set_how_memory_is_kept_are_obeyed():
    assert share_kept("kept", MALLOC_TRIM_THRESHOLD_="65536") < 0.5
    assert share_kept("kept", GLIBC_TUNABLES="glibc.malloc.trim_threshold=65536") < 0.5
    assert share_kept("kept", GLIBC_TUNABLES="glibc.cpu.x86_ibt=off") > 0.9
