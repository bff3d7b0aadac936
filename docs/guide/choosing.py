"""
Choosing transformations and settings
=====================================

Which poses should filters have, how many of them, and what of the other settings? Three experiments, and a search
without labels, answer for small digits; do the same with a part of your own data before you learn from all of it.
"""

# %%
# Poses that happen in the data
# -----------------------------
# The same digits four times: upright, turned by any angle, shifted, and scaled.

from math import pi
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits

from orbitpool import TIRBM, LinearSVM
from orbitpool import transforms as T
from orbitpool.pictures import mosaic

rng, digits = np.random.default_rng(0), load_digits()
order = rng.permutation(len(digits.images))[:1500]
y = digits.target[order]


def on_canvas(image, size, top=None, left=None):
    """A digit at a size, on 16x16 black pixels; in the middle if no place is given."""
    small = ndimage.zoom(image / 16, size / 8, order=1)
    canvas = np.zeros((16, 16), np.float32)
    top, left = ((16 - size) // 2 if place is None else place for place in (top, left))
    canvas[top : top + size, left : left + size] = small
    return canvas


def turned(image):
    """A digit at any angle."""
    return ndimage.rotate(on_canvas(image, 12), rng.uniform(0, 360), reshape=False, order=1)


kinds = {
    "upright": [on_canvas(digits.images[i], 12) for i in order],
    "turned": [turned(digits.images[i]) for i in order],
    "shifted": [on_canvas(digits.images[i], 10, *rng.integers(0, 7, 2)) for i in order],
    "scaled": [on_canvas(digits.images[i], rng.integers(6, 17)) for i in order],
}
data = {name: np.stack(images).clip(0, 1).astype(np.float32) for name, images in kinds.items()}

figure, axes = plt.subplots(4, 1, figsize=(8, 2.4), layout="constrained")
for ax, (name, X) in zip(axes, data.items(), strict=True):
    ax.imshow(mosaic(X[:24], columns=24))
    ax.set_ylabel(name, rotation=0, ha="right", va="center")
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Five sets of poses. A filter of 16x16 pixels can turn in place; one that moves or grows needs a window smaller than
# the field. Filters learn from 1,200 digits without labels, the classifier from 200 of them with labels; 300 are for
# judging.

sets = {
    "none": None,
    "16 turns": T.rotations(16, count=16, step=pi / 8),
    "16 shifts": T.translations(16, 10, stride=2),
    "4 scales": T.scalings(16, 10, step=2),
    "turns, shifts, scales": T.union(
        T.rotations(10, count=16, step=pi / 8, field=16), T.translations(16, 10, stride=2), T.scalings(16, 10, step=2)
    ),
}


def error(X, **settings):
    """Test error with 200 labels of a classifier on learned features."""
    model = TIRBM(**{"n_components": 64, "batch_size": 20, "n_iter": 6, "random_state": 0, **settings}).fit(X[:1200])
    classifier = LinearSVM(C=0.1, standardize=True).fit(model.transform(X[:200]), y[:200])
    return 1 - classifier.score(model.transform(X[1200:]), y[1200:])


errors = np.array([[error(X, transforms=poses) for poses in sets.values()] for X in data.values()])

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
ax.imshow(100 * errors, cmap="viridis_r", aspect="auto")
ax.set(
    xticks=range(len(sets)), xticklabels=sets, yticks=range(len(data)), yticklabels=data, xlabel="poses of the filters"
)
ax.set_title("test error with 200 labels (%)")
for i, j in np.ndindex(*errors.shape):
    dark = errors[i, j] > (errors.min() + errors.max()) / 2
    ax.text(j, i, f"{100 * errors[i, j]:.1f}", ha="center", va="center", color="white" if dark else "black")
plt.show()

# %%
# What to take from it:
#
# - Poses help where they are what happens to the data, and by a lot: turns for turned digits, shifts for shifted ones.
#   Scales made no difference to scaled ones here, so try before you believe.
# - Poses that do not happen can cost something: a filter may match where it should not. The most are not the best.
# - If you do not know, compare some sets like this, by what you want in the end. With 300 test digits, two or three
#   points more or less are chance.

for name, row in zip(data, errors, strict=True):
    print(f"{name:<8} digits: best with {list(sets)[row.argmin()]} ({row.min():.1%}), with none {row[0]:.1%}")

# %%
# Or let them be found
# --------------------
# ``transforms="auto"`` needs no labels. A small network is taught to tell moved digits from digits as they are. Where
# it fails, moved digits look like digits, and the data has that transformation: filters get poses as far as that goes.
# It is about half as far as digits were moved before, or any angle if all of them happened.

from orbitpool import discover

found = discover(data["turned"][:600], random_state=0)
print(f"turned digits: {found.words()}")

# %%
# In pictures: what was tried, and how much digits moved like this look like the others.

figure, ax = plt.subplots(figsize=(10, 10), layout="constrained")
with TemporaryDirectory() as folder:
    ax.imshow(plt.imread(found.picture(f"{folder}/found.png")))
ax.axis("off")
plt.show()

# %%
# How many poses, how many filters
# --------------------------------
# On turned digits: the full circle in 1 to 32 steps with 64 filters, and 16 to 128 filters with 1 and with 16 poses.

X = data["turned"]
counts, sizes = (1, 2, 4, 8, 16, 32), (16, 64, 128)
by_count = [error(X, transforms=T.rotations(16, count, step=2 * pi / count)) for count in counts]
by_size = {poses: [error(X, transforms=sets[poses], n_components=K) for K in sizes] for poses in ("none", "16 turns")}

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
left.plot(counts, [100 * e for e in by_count], "o-")
left.set(xscale="log", xlabel="turns of 64 filters", ylabel="test error (%)")
for (name, row), marker in zip(by_size.items(), "s^", strict=True):
    right.plot(sizes, [100 * e for e in row], marker=marker, label=f"poses: {name}")
right.set(xscale="log", xlabel="filters", ylim=(0, None))
right.legend()
for ax, ticks in ((left, counts), (right, sizes)):
    ax.minorticks_off()
    ax.set_xticks(ticks, ticks)
plt.show()

# %%
# Sixteen turns move the rim of these filters by three pixels a step. Coarser steps leave digits between two poses,
# finer ones cost time. And poses are cheaper than filters, which have to be learned one by one:

for size, poses, e in ((sizes[0], "16 turns", by_size["16 turns"][0]), (sizes[-1], "one pose", by_size["none"][-1])):
    print(f"{size:3} filters in {poses}: {e:.1%}")

# %%
# Settings, one at a time
# -----------------------
# Turned digits, 64 filters, 16 turns. The first value of each row is the one used above.

trials = {
    "batch_size": (20, 10, 100),
    "n_iter": (6, 2, 12),
    "learning_rate": (0.05, 0.005, 0.2),
    "sparsity_target": (0.1, 0.02, 0.4),
    "sparsity_cost": (3.0, 0.0, 30.0),
}
usual = error(X, transforms=sets["16 turns"])
for name, (value, *others) in trials.items():
    row = {value: usual, **{other: error(X, transforms=sets["16 turns"], **{name: other}) for other in others}}
    print(f"{name:<16}", "   ".join(f"{each:g}: {e:5.1%}" for each, e in row.items()))

# %%
# Rules of thumb
# --------------
# - **Inputs.** Black and white drawings in 0 to 1 are ``visible="binary"``. Everything else is real-valued: whitened
#   patches of unit variance, ``visible="gaussian"``, and ``sigma="learned"`` if reconstructions matter.
# - **Whole images or patches.** Small images of one thing can be learned whole. Photographs are learned by patches, 6x6
#   to 14x14 pixels, with :class:`~orbitpool.images.ConvFeatures`, which also averages them over a grid.
# - **One layer or two.** Where whole images turn, a :class:`~orbitpool.images.Stack` errs less often than one layer of
#   whole images: small edges, whose poses are kept, and whole shapes made of them, whose transformations are
#   :func:`~orbitpool.transforms.turned_maps`. The second layer wants whitened maps.
# - **Batches.** A thousand inputs want batches of 10 or 20, ten thousand and more 100 or 200; what counts is the number
#   of updates: hundreds for a thousand small digits, many thousands for photographs.
# - **Rates.** 0.05 for binary inputs, 0.005 to 0.02 for real-valued ones of unit variance.
# - **Sparsity.** Filters should be on for a part of the inputs: a target of 0.1, and 0.02 where few things happen in an
#   input, as in whitened patches. The cost keeps filters from dying; ``history_`` says how often they are on.
# - **Which learner.** :class:`~orbitpool.TIRBM` has probabilities, poses and samples; :class:`~orbitpool.TIOMP` needs
#   the fewest settings and no learning rate; :class:`~orbitpool.TIAutoencoder` learns by plain gradients.
#
# If learning does not go as here, see :doc:`when_learning_fails`.
