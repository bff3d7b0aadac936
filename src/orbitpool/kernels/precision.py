"""How torch multiplies float32 matrices: a setting of the whole program, which blocks ask for and put back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import torch

AMX = bool(torch.cpu.get_capabilities().get("amx_bf16"))
BACKENDS: Any = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)  # type: ignore[attr-defined]
_lock = RLock()
_asked: dict[object, str] = {}  # what each block asks for that has not been left, in any thread
_before: list[str] = []  # the setting of each backend outside of all blocks


@contextmanager
def rounding(precision: str) -> Iterator[None]:
    """For "bfloat16", products on a CPU with AMX round their factors, and add up in float32; others are as ever."""
    if precision != "bfloat16" or not AMX:
        yield
        return
    with _asking("bf16"):
        yield


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Products of float32 matrices in float32: no TF32, no bfloat16, no autocast; goes before `rounding` elsewhere."""
    with _asking("ieee"), torch.autocast(device.type, enabled=False):
        yield


@contextmanager
def _asking(what: str) -> Iterator[None]:
    block = object()
    try:
        with _lock:
            if not _asked:
                _before[:] = [_own(backend) for backend in BACKENDS]
            _asked[block] = what
            _settle()
        yield
    finally:
        with _lock:
            if _asked.pop(block, None):
                _settle()


def _own(backend: Any) -> str:
    """What a backend is set to, "none" if it goes by the setting for all."""
    value: str = backend.fp32_precision
    return "none" if value == torch.backends.fp32_precision else value  # type: ignore[attr-defined]


def _settle() -> None:
    """Set what is asked for, or what was set before."""
    what, (gpu, cpu) = set(_asked.values()), _before
    if "ieee" in what:
        gpu = cpu = "ieee"
    elif what:
        cpu = "bf16"
    for backend, value in zip(BACKENDS, (gpu, cpu), strict=True):
        backend.fp32_precision = value


def _forget() -> None:
    """Leave all blocks, which are in threads that a forked process does not have."""
    global _lock
    _lock = RLock()
    if _asked:
        _asked.clear()
        _settle()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)
