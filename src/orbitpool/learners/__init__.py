"""What learns filters: the sparse TIRBM, the autoencoder and TIOMP, on one training loop."""

import os

from orbitpool.learners import files
from orbitpool.learners.autoencoder import TIAutoencoder
from orbitpool.learners.base import Learner
from orbitpool.learners.omp import TIOMP
from orbitpool.learners.tirbm import TIRBM
from orbitpool.learners.training import Diverged

__all__ = ["TIOMP", "TIRBM", "Diverged", "Learner", "TIAutoencoder", "load"]


def load(path: str | os.PathLike[str], device: str = "auto") -> Learner:
    """The model that `save` wrote, or that a checkpoint holds; runs nothing from the file, refuses what is damaged."""
    return files.read(path, {c.__name__: c for c in (TIRBM, TIAutoencoder, TIOMP)}, device)
