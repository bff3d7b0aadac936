"""One step of gradient descent with momentum."""

from __future__ import annotations

from torch import Tensor

from orbitpool.kernels import native
from orbitpool.kernels.products import Statistics, correlate, fused, scaled


def descend_(
    t: Tensor, velocity: Tensor, gradient: Tensor | Statistics, rate: float, momentum: float, decay: float = 0.0
) -> None:
    """Velocity becomes momentum velocity - rate (gradient + decay t) and is added to t, both in place."""
    if fused(t):
        from orbitpool.kernels import fused as kernels

        return kernels.descend_(t, velocity, summed(gradient, t), rate, momentum, decay)
    slope, factor = (gradient, 1.0) if isinstance(gradient, Tensor) else scaled(gradient, t.dtype)
    if native.ready(t, velocity) and native.ready(slope, kinds=native.BRIEF) and t.shape == slope.shape:
        return native.descend_(t, velocity, slope, -rate * factor, momentum, rate * decay)
    velocity.mul_(momentum).sub_(slope, alpha=rate * factor)
    if decay:
        velocity.sub_(t, alpha=rate * decay)
    t += velocity
    return None


def summed(gradient: Tensor | Statistics, t: Tensor) -> Tensor:
    """A gradient by t as one tensor."""
    return gradient if isinstance(gradient, Tensor) else correlate(gradient, t.dtype)[:, : t.shape[1]].to(t.dtype)
