"""
More data than memory
=====================

Learning goes through the data in small batches, so the data may lie in a file that is mapped into memory, or come as
batches that you make; it may be stopped and go on. What comes out is the same to the last bit.
"""

# %%
# A file of patches
# -----------------
# Patches of photographs, written to a file piece by piece: here 40 MB, but it could be larger than memory.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import torch

from orbitpool import TIRBM, datasets
from orbitpool import transforms as T
from orbitpool.images import ZCA, ContrastNormalizer, random_patches
from orbitpool.pictures import mosaic

home, rows = Path(mkdtemp()), 100_000
photographs = torch.from_numpy(np.stack(datasets.sample_photographs()))[..., None]
generator = torch.Generator().manual_seed(0)


def some(count):
    """Normalised patches of 10x10 pixels, (count, 100)."""
    return ContrastNormalizer().fit_transform(
        random_patches(photographs, count, (10, 10), generator).flatten(1).numpy()
    )


zca = ZCA().fit(some(20_000))
written = np.lib.format.open_memmap(home / "patches.npy", "w+", np.float32, (rows, 100))
for start in range(0, rows, 20_000):
    written[start : start + 20_000] = zca.transform(some(20_000))
written.flush()
print(f"{(home / 'patches.npy').stat().st_size / 1e6:.0f} MB in {home / 'patches.npy'}".replace(str(home), "…"))

# %%
# Learn from the mapped file
# --------------------------
# ``mmap_mode="r"`` reads nothing yet. Each batch is read, checked and converted when it is its turn.

X = np.load(home / "patches.npy", mmap_mode="r")
poses = T.translations(10, 8, stride=2)
settings = {
    "n_components": 32,
    "transforms": poses,
    "visible": "gaussian",
    "learning_rate": 0.03,
    "sparsity_target": 0.02,
    "sparsity_cost": 10.0,
    "batch_size": 100,
    "random_state": 0,
}
mapped = TIRBM(n_iter=2, **settings).fit(X)
print("learned from", type(X).__name__, "- error", [round(e, 3) for e in mapped.history_["reconstruction_error"]])

# %%
# Stop, and go on
# ---------------
# With ``checkpoint`` a run is kept in one file. A run that stopped after one epoch goes on to the same bits as one that
# was never stopped; a killed process goes on from the last ``checkpoint_every`` updates in the same way.

TIRBM(n_iter=1, checkpoint=home / "run", **settings).fit(X)
resumed = TIRBM(n_iter=2, checkpoint=home / "run", **settings).fit(X)
print("the same bits:", np.array_equal(resumed.components_, mapped.components_))

# %%
# Batches of your own
# -------------------
# Anything that gives batches will do: a list, a data loader, or an object whose ``__iter__`` starts anew every epoch.
# ``partial_fit`` takes one piece at a time, when the pieces come as they like.


class Stream:
    """Fresh patches without end would do as well; these are 200 batches an epoch, never twice the same."""

    def __iter__(self):
        return (zca.transform(some(100)) for _ in range(200))


streamed = TIRBM(n_iter=10, **settings).fit(Stream())
pieces = TIRBM(**settings)
for _ in range(10):
    pieces.partial_fit(zca.transform(some(20_000)))
errors = {
    "mapped file": mapped.history_["reconstruction_error"],
    "stream": streamed.history_["reconstruction_error"],
    "partial_fit": pieces.history_["reconstruction_error"],
}

# %%
# How far each is after so many patches: an epoch is a pass through the file, 200 batches of the stream, or one piece.
# The error of an epoch is the mean over it, so it stands in its middle.

seen = {"mapped file": rows, "stream": 20_000, "partial_fit": 20_000}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (name, values), marker in zip(errors.items(), "os^", strict=True):
    middle = (np.arange(len(values)) + 0.5) * seen[name] / 1000
    left.plot(middle, values, marker=marker, label=name)
left.set(xlabel="thousands of patches seen", ylabel="reconstruction error")
left.legend()
right.imshow(mosaic(mapped.components_.reshape(-1, 8, 8), columns=8))
right.set_title("32 filters, learned from the file")
right.axis("off")
plt.show()
