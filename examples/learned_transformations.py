"""
Transformations that nobody named
=================================

What if you have pairs of images that differ by *something*, two frames of a film or two shots of an object, and do not
know by what? ``discovery.learn_transforms`` finds the linear operators that take one image of each pair to the other,
and says what they look like. And if you know roughly what happens, but not by how much, ``transforms.learned`` lets a
model move its poses while it learns its filters.
"""

# %%
# Pairs
# -----
# Digits at any angle, each beside itself turned by one of five angles. Nobody tells the angles, nor that it is a turn.

import warnings
from math import pi, radians
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

from orbitpool import TIRBM, LinearSVM, datasets
from orbitpool import transforms as T
from orbitpool.discovery import draw_operators, learn_transforms
from orbitpool.pictures import mosaic

data, rng = datasets.turned_digits(), np.random.default_rng(0)
unknown = [radians(angle) for angle in (-130, -75, -20, 40, 110)]
X = np.concatenate([data.X_train, data.X_train])
Y = datasets.move_digits("rot", X, rng.choice(unknown, len(X)))

figure, axes = plt.subplots(2, 1, figsize=(9, 1.4), layout="constrained")
for ax, images, name in zip(axes, (X, Y), ("image", "partner"), strict=True):
    ax.imshow(mosaic(images[:24], columns=24))
    ax.set_ylabel(name, rotation=0, ha="right", va="center")
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Operators
# ---------
# We look for six, which is one too many: the one that is left over is dropped, and we are told.

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    operators = learn_transforms(X, Y, count=6, field=16, random_state=0)
print(*(w.message for w in told))
print(*operators.labels, sep="\n")

# %%
# Each operator is a sparse matrix of 256 x 256 weights that nothing but pairs has taught. The grid shows where the
# pixels of the turned image are taken from.

with TemporaryDirectory() as folder:
    sheet = plt.imread(draw_operators(operators, data.X_train[7], f"{folder}/operators.png"))
figure, ax = plt.subplots(figsize=(7, 6), layout="constrained")
ax.imshow(sheet)
ax.axis("off")
plt.show()

# %%
# The set is a set like any other: a model learns filters in these poses, and its file keeps them.

models = {"one pose": None, "five learned operators": operators}
for name, poses in models.items():
    model = TIRBM(64, poses, batch_size=20, n_iter=10, random_state=0).fit(data.X_train)
    judge = LinearSVM(C=0.1, standardize=True).fit(model.transform(data.X_train), data.y_train)
    print(f"{name:<24} test error {1 - judge.score(model.transform(data.X_test), data.y_test):.1%}")

# %%
# Poses that move
# ---------------
# ``transforms.learned`` starts from a set and lets a TIRBM change it along with the filters, by the gradient of the
# same objective, through the interpolation. Five digits, each seen as it is and turned by 20 degrees either way, are
# to be explained by six filters. We start from turns by ten degrees.

digits = data.X_train[:5][rng.integers(5, size=1000)]
seen = datasets.move_digits("rot", digits, np.radians(rng.choice([-20, 0, 20], 1000)))
start = T.rotations(16, count=3, step=pi / 18)
model = TIRBM(6, T.learned(start, every=20), sparsity_target=0.17, batch_size=20, n_iter=20)
model.set_params(random_state=0).fit(seen)
print("start: ", ", ".join(start.labels))
print("became:", ", ".join(model.transforms_.labels))
