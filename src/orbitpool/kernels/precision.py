"""How torch multiplies float32 matrices, a setting of the whole program, and what else callers ask of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import torch

BACKENDS: Any = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)  # type: ignore[attr-defined]
_lock = RLock()
_inside: set[object] = set()  # the blocks that have not been left, in any thread
_before: list[str] = []  # the setting of each backend outside of all blocks


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Products of float32 matrices in float32: no TF32, no bfloat16, no autocast."""
    block = object()
    try:
        with _lock:
            if not _inside:
                _before[:] = [_own(backend) for backend in BACKENDS]
            _inside.add(block)
            _settle()
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        with _lock:
            if block in _inside:
                _inside.remove(block)
                _settle()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Work as if no caller had asked for autocast or inference mode, which would round numbers or forbid gradients."""
    wanted = torch.is_grad_enabled()  # which leaving inference mode would switch on
    with (
        torch.inference_mode(False),
        torch.set_grad_enabled(wanted),
        torch.autocast("cpu", enabled=False),
        torch.autocast("cuda", enabled=False),
    ):
        yield


def _own(backend: Any) -> str:
    """What a backend is set to, "none" if it goes by the setting for all."""
    value: str = backend.fp32_precision
    return "none" if value == torch.backends.fp32_precision else value  # type: ignore[attr-defined]


def _settle() -> None:
    """Set what blocks ask for, or what was set before."""
    for backend, value in zip(BACKENDS, _before, strict=True):
        backend.fp32_precision = "ieee" if _inside else value


def _forget() -> None:
    """Leave all blocks, which are in threads that a forked process does not have."""
    global _lock
    _lock = RLock()
    if _inside:
        _inside.clear()
        _settle()


if hasattr(os, "register_at_fork"):  # not on Windows
    # the lock by its name, because a forked process has another one
    os.register_at_fork(before=lambda: _lock.acquire(), after_in_parent=lambda: _lock.release(), after_in_child=_forget)
