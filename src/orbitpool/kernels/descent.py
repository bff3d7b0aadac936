"""One step of gradient descent with momentum."""

from __future__ import annotations

from torch import Tensor

from orbitpool.kernels.products import fused


def descend_(t: Tensor, velocity: Tensor, gradient: Tensor, rate: float, momentum: float, decay: float = 0.0) -> None:
    """Velocity becomes momentum velocity - rate (gradient + decay t) and is added to t, both in place."""
    if fused(t):
        from orbitpool.kernels import fused as kernels

        return kernels.descend_(t, velocity, gradient, rate, momentum, decay)
    velocity.mul_(momentum).sub_(gradient, alpha=rate)
    if decay:
        velocity.sub_(t, alpha=rate * decay)
    t += velocity
    return None
