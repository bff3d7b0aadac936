"""Products of float32 matrices on a CPU, by the faster of the two libraries that torch has for them.

torch asks MKL, which does without AVX-512 on processors that are not Intel's; there oneDNN multiplies twice as fast.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor


def _whole_teams() -> bool:
    """Whether OpenMP starts as many threads as torch counts on; with fewer, oneDNN leaves parts of products out."""
    limit, dynamic, levels = (
        os.environ.get(f"OMP_{name}", "").strip().lower() for name in ("THREAD_LIMIT", "DYNAMIC", "MAX_ACTIVE_LEVELS")
    )
    return not limit and dynamic in ("", "0", "false") and levels != "0"


WHOLE = _whole_teams()
LEAST = 2**20  # multiplications, below which asking oneDNN takes longer than it saves
_linear: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)  # x W' as torch.compile has it done
ONEDNN = (
    WHOLE
    and _linear is not None
    and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    and torch.backends.cpu.get_cpu_capability() == "AVX512"
    and "Intel" not in torch.cpu.get_capabilities().get("cpu_name", "Intel")
)


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """The product of two matrices, as `a @ b`; row by row in memory."""
    if ONEDNN and _fit(a, b):
        product: Tensor = _linear(a, _close(b).T, None, "none", [], "")  # gaps would take forever
        return product
    # With AMX, oneDNN multiplies what lies in gaps by nought, which spoils sums if it is not a number (its issue 5717).
    return (_close(a) if a.dtype == torch.bfloat16 else a) @ b


def _close(x: Tensor) -> Tensor:
    """The same matrix, without gaps between its rows or columns."""
    return x if x.is_contiguous() or x.T.is_contiguous() else x.contiguous()


def _fit(a: Tensor, b: Tensor) -> bool:
    """Whether these are for oneDNN: large, without gradients, and torch was told nothing else."""
    return (
        a.dtype == b.dtype == torch.float32
        and a.device.type == "cpu"
        and unwatched()
        and a.numel() * b.shape[1] >= LEAST
        and bool(torch.backends.mkldnn.enabled)
    )


def unwatched() -> bool:
    """Whether torch wants no gradients, makes no graph of what is done, and chooses no types for it."""
    return not (torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"))
