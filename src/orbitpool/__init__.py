"""Features that stay the same when the input is moved, turned or scaled a little."""

from orbitpool import kernels, orbit, transforms
from orbitpool.transforms import TransformSet

__all__ = ["TransformSet", "kernels", "orbit", "transforms"]
__version__ = "0.1.0"
