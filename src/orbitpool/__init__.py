"""Features that stay the same when the input is moved, turned or scaled a little."""

from orbitpool import kernels, orbit, transforms
from orbitpool.learners import TIOMP, TIRBM, Diverged, TIAutoencoder, load
from orbitpool.modelfile import ModelFileError
from orbitpool.transforms import TransformSet

__all__ = [
    "TIOMP",
    "TIRBM",
    "Diverged",
    "ModelFileError",
    "TIAutoencoder",
    "TransformSet",
    "kernels",
    "load",
    "orbit",
    "transforms",
]
__version__ = "0.1.0"
