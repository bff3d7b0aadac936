"""Whether there is a C compiler: if so, a build that fails is a failure and no reason to skip."""

import os
import shlex
import shutil

import pytest

from orbitpool.kernels.compiled import wanted

CALLED = shlex.split(os.environ.get("CC") or "cc")[0]
COMPILER = shutil.which(CALLED) if wanted() else None
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs a C compiler")
