"""Features that stay the same when the input is moved, turned or scaled a little."""

from orbitpool import orbit, transforms
from orbitpool.transforms import TransformSet

__all__ = ["TransformSet", "orbit", "transforms"]
__version__ = "0.1.0"
