"""Every reader of files: something small and whole that it reads, and what must hold of whatever it gives back."""

from fire.readers import arrays, models, odd, official, pictures, results, sharded, sounds
from fire.readers.reader import Reader
from orbitpool.datasets import objects, photographs, written

__all__ = ["Reader", "readers"]


def small_sizes() -> None:
    """Let the readers of official files expect small ones, so that ten thousand of them can be tried."""
    objects.CIFAR_RECORDS, objects.STL_SIZES, objects.STL_FOLDS = 4, (4, 6), (2, 3)
    photographs._IML = (24, 32)
    written.SIZES = (6, 2, 4)


def readers() -> list[Reader]:
    """All of them."""
    small_sizes()
    return [
        *official.digits(),
        *official.objects(),
        *pictures.images(),
        *arrays.arrays(),
        *sharded.shards(),
        *sharded.folders(),
        *pictures.tables(),
        *sounds.sounds(),
        *models.models(),
        *models.checkpoints(),
        *results.rows_and_figures(),
        *odd.images(),
        *odd.names(),
        *odd.arrays(),
    ]
