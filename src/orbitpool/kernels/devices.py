"""Which device to work on."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orbitpool.kernels.memory import keep_freed


def choose_device(wish: str | torch.device, X: Any) -> torch.device:
    """The device that was asked for; for "auto" that of a tensor, else a GPU if there is one, else the CPU."""
    device = _chosen(wish, X)
    if device.type == "cpu":
        keep_freed()  # before the first of the work there
    return device


def _chosen(wish: str | torch.device, X: Any) -> torch.device:
    if wish != "auto":
        try:
            return torch.empty(0, device=wish).device
        except (RuntimeError, AssertionError, TypeError) as error:
            reason = str(error).splitlines()[0][:100]
            raise ValueError(
                f"device is {wish!r}, which is not to be had here ({reason}); choose 'auto' or 'cpu'"
            ) from error
    if isinstance(X, Tensor):
        return X.device
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
