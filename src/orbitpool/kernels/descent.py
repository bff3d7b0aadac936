"""One step of gradient descent with momentum."""

from __future__ import annotations

from torch import Tensor

from orbitpool.kernels.products import Statistics, correlate, fused, joined


def descend_(
    t: Tensor, velocity: Tensor, gradient: Tensor | Statistics, rate: float, momentum: float, decay: float = 0.0
) -> None:
    """Velocity becomes momentum velocity - rate (gradient + decay t) and is added to t, both in place."""
    if fused(t):
        from orbitpool.kernels import fused as kernels

        return kernels.descend_(t, velocity, summed(gradient, t), rate, momentum, decay)
    if isinstance(gradient, Tensor):
        velocity.mul_(momentum).sub_(gradient, alpha=rate)
    else:
        for h, u, alpha in joined([(h, u, -rate * alpha) for h, u, alpha in gradient]):
            correlate(h, u, alpha, t.dtype, velocity, momentum)  # added up in the velocity itself
            momentum = 1.0
    if decay:
        velocity.sub_(t, alpha=rate * decay)
    t += velocity
    return None


def summed(gradient: Tensor | Statistics, t: Tensor) -> Tensor:
    """A gradient by t as one tensor."""
    if isinstance(gradient, Tensor):
        return gradient
    total = None
    for h, u, alpha in joined(gradient):
        total = correlate(h, u, alpha, t.dtype, total)
    assert total is not None
    return total[:, : t.shape[1]]
