"""One step of gradient descent with momentum."""

from __future__ import annotations

from torch import Tensor

from orbitpool.kernels.poses import fused


def descend_(t: Tensor, velocity: Tensor, gradient: Tensor, rate: float, momentum: float) -> None:
    """Velocity becomes momentum velocity - rate gradient and is added to t, both in place."""
    if fused(t):
        from orbitpool.kernels import fused as kernels

        return kernels.descend_(t, velocity, gradient, rate, momentum)
    velocity.mul_(momentum).sub_(gradient, alpha=rate)
    t += velocity
    return None
