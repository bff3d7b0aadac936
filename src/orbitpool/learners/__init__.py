"""What learns filters: the sparse TIRBM, the autoencoder and TIOMP, on one training loop."""

from orbitpool.learners.autoencoder import TIAutoencoder
from orbitpool.learners.base import Learner
from orbitpool.learners.omp import TIOMP
from orbitpool.learners.shards import Shards
from orbitpool.learners.tirbm import TIRBM
from orbitpool.learners.training import Diverged

__all__ = ["CLASSES", "TIOMP", "TIRBM", "Diverged", "Learner", "Shards", "TIAutoencoder"]

CLASSES: dict[str, type[Learner]] = {c.__name__: c for c in (TIRBM, TIAutoencoder, TIOMP)}
