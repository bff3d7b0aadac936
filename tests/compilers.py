"""Whether there is a C compiler, and what torch gives in its place.

If there is one, a build that fails is a failure and no reason to skip.
"""

import os
import shlex
import shutil

import pytest
from torch.testing import assert_close

from orbitpool.kernels import native
from orbitpool.kernels.compiled import wanted

CALLED = shlex.split(os.environ.get("CC") or "cc")[0]
COMPILER = shutil.which(CALLED) if wanted() else None
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs a C compiler")


def by_torch(work):
    """What some work gives where there is no compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "_functions", dict)
        return work()


def same(work, **close):
    """Assert that some work gives the same with and without a compiler, and return it."""
    result = work()
    assert_close(result, by_torch(work), **close)
    return result
