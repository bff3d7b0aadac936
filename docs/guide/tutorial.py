"""
Ten minutes with orbitpool
==========================

Pictures move, turn and grow, and features should not change when they do. Here digits are turned by any angle; we
learn features from them without their names, look at what was learned, and tell the digits apart by it. You need to
know some scikit-learn; what an RBM is will be said on the way. Everything on this page was run when it was built.
"""

# %%
# The data
# --------
# scikit-learn's handwritten digits, enlarged to 16x16 pixels and turned by any angle. Nothing is downloaded.

from math import pi

import matplotlib.pyplot as plt
import numpy as np

import orbitpool
from orbitpool import TIRBM, LinearSVM, datasets
from orbitpool import transforms as T
from orbitpool.pictures import mosaic

digits = datasets.turned_digits()
print(digits.X_train.shape, digits.X_test.shape)

plt.figure(figsize=(8, 1.4), layout="constrained")
plt.imshow(mosaic(digits.X_train[:60], columns=20))
plt.axis("off")
plt.show()

# %%
# The poses
# ---------
# A *transformation set* says how a filter may appear. This one turns it by 16 multiples of 22.5 degrees: a full circle.
# A filter and all its poses are its *orbit*.

turns = T.rotations(16, count=16, step=pi / 8)
print(turns)

poses = turns.apply(digits.X_train[1].ravel())
plt.figure(figsize=(8, 0.7), layout="constrained")
plt.imshow(mosaic(poses.reshape(-1, 16, 16), columns=16))
plt.axis("off")
plt.show()

# %%
# Learn
# -----
# A restricted Boltzmann machine (RBM) is a layer of hidden units that learn to explain inputs: each has a filter, is on
# or off, and those that are on draw the input again. In the transformation-invariant RBM each hidden unit is off, or on
# in exactly one pose. ``transforms=None`` gives one pose: the plain RBM. A thousand digits want small batches.

settings = {"n_components": 100, "batch_size": 20, "n_iter": 20, "random_state": 0}
rbm = TIRBM(transforms=None, **settings).fit(digits.X_train)
tirbm = TIRBM(transforms=turns, **settings).fit(digits.X_train)

# %%
# ``history_`` says how learning went; look at it first when something is odd.

figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
for name, ax in zip(("reconstruction_error", "sparsity"), axes, strict=True):
    for label, model in (("RBM", rbm), ("TIRBM", tirbm)):
        ax.plot(range(1, 21), model.history_[name], label=label)
    ax.set(xlabel="epoch", title=name.replace("_", " "))
axes[0].legend()
plt.show()

# %%
# Look at the filters
# -------------------
# Both learn strokes and rings. The RBM has to learn a stroke at every angle anew; the TIRBM needs it once, and has room
# for more kinds of them, and for larger parts of digits.

figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
for ax, (label, model) in zip(axes, (("RBM", rbm), ("TIRBM", tirbm)), strict=True):
    ax.imshow(mosaic(model.components_.reshape(-1, 16, 16)))
    ax.set_title(f"100 filters of the {label}")
    ax.axis("off")
plt.show()

# %%
# Features that stay, poses that follow
# -------------------------------------
# ``transform`` gives one number a filter: the probability that it is there in any pose. ``pose`` says in which one, or
# -1 where the filter is rather off. We turn a digit that was not learned from around the circle: features stay, and
# poses move on by one for every 22.5 degrees.

digit = digits.X_test[25:26]
turned = turns.apply(digit.reshape(1, -1))[0].astype(np.float32)  # the digit in all sixteen poses
circle = np.argsort([float(label.split()[1].rstrip("°")) for label in turns.labels])

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for model, label in ((rbm, "RBM"), (tirbm, "TIRBM")):
    z = model.transform(turned)[circle]
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    left.plot(np.arange(16) * 22.5, z @ z[0], "o-", label=label)
left.set(xlabel="turned by (degrees)", title="cosine between features", ylim=(0, 1.05))
left.legend()
pose = tirbm.pose(turned)[circle]
for k in np.flatnonzero((pose >= 0).all(0))[:4]:
    right.plot(np.arange(16) * 22.5, pose[:, k], "o-", label=f"filter {k}")
right.set(xlabel="turned by (degrees)", title="poses of filters that are on")
right.legend(fontsize="small")
plt.show()

# %%
# Tell digits apart
# -----------------
# Everything is a scikit-learn transformer, so features go into any classifier, alone or in a pipeline.

for count in (50, 200, 1300):
    errors = {}
    for label, encode in (
        ("pixels", lambda X: X.reshape(len(X), -1)),
        ("RBM", rbm.transform),
        ("TIRBM", tirbm.transform),
    ):
        classifier = LinearSVM(C=0.1, standardize=True).fit(encode(digits.X_train[:count]), digits.y_train[:count])
        errors[label] = 1 - classifier.score(encode(digits.X_test), digits.y_test)
    print(f"{count:5} labels: error on", ", ".join(f"{label} {error:.1%}" for label, error in errors.items()))

# %%
# See what the model sees
# -----------------------
# ``reconstruct`` draws inputs again from the filters that are on; ``sample`` lets the model dream.

dreams = tirbm.reconstruct(tirbm.sample(20, steps=200, random_state=0))
rows = {"inputs": digits.X_test[:20], "reconstructed": tirbm.reconstruct(digits.X_test[:20]), "samples": dreams}
figure, axes = plt.subplots(3, 1, figsize=(8, 2.2), layout="constrained")
for ax, (label, tiles) in zip(axes, rows.items(), strict=True):
    ax.imshow(mosaic(tiles.reshape(-1, 16, 16), columns=20))
    ax.set_ylabel(label, rotation=0, ha="right", va="center")
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Keep it
# -------
# A file holds the model, its transformations and all that is needed to go on learning; opening it runs nothing.

from pathlib import Path
from tempfile import TemporaryDirectory

with TemporaryDirectory() as folder:
    path = Path(folder) / "digits.safetensors"
    tirbm.save(path)
    again = orbitpool.load(path)
    same = np.array_equal(again.transform(digit), tirbm.transform(digit))
    print(f"{path.stat().st_size:,} bytes; the same features as before: {same}")

# %%
# Where to go from here
# ---------------------
# - your own images without a line of Python: :doc:`/run/examples/own_folder`
# - which transformations, how many filters, which settings: :doc:`choosing`
# - training diverges, or nothing is learned: :doc:`when_learning_fails`
# - features as a layer of a torch network: :doc:`/run/examples/in_a_network`
