"""
A transformation of your own
============================

People slant their handwriting. No slant comes with orbitpool, but any linear function of an image makes a
transformation: ``transforms.from_function`` asks it about every pixel, and checks that it is linear.
"""

# %%
# Slanted digits
# --------------
# scikit-learn's digits, enlarged to 16x16, each slanted by a random amount.

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits

from orbitpool import TIRBM, LinearSVM
from orbitpool import transforms as T
from orbitpool.pictures import mosaic


def slant(image, amount):
    """An image whose rows are moved sideways, the more the further they are from the middle row."""
    middle = (image.shape[0] - 1) / 2
    return ndimage.affine_transform(image, [[1, 0], [amount, 1]], [0, -amount * middle], order=1)


rng, digits = np.random.default_rng(0), load_digits()
upright = [np.pad(ndimage.zoom(image / 16, 1.5, order=1), 2) for image in digits.images]
order = rng.permutation(len(upright))
X = np.stack([slant(upright[i], rng.uniform(-0.8, 0.8)) for i in order]).clip(0, 1).astype(np.float32)
y = digits.target[order]
X_train, y_train, X_test, y_test = X[:1300], y[:1300], X[1300:], y[1300:]

# %%
# The set
# -------
# One function a pose, joined by ``union``. What is asked for must be linear: no clipping, no rounding. Anything else is
# refused, with the reason.

amounts = np.linspace(-0.8, 0.8, 9)
slants = T.union(*(T.from_function(lambda v, a=a: slant(v, a), 16, 16, f"slant {a:+.1f}") for a in amounts))
print(slants)
try:
    T.from_function(lambda v: slant(v, 0.4).clip(0, 1), 16, 16)
except ValueError as error:
    print("refused:", error)

figure, axes = plt.subplots(2, 1, figsize=(9, 2.2), layout="constrained")
axes[0].imshow(mosaic(X_train[:27], columns=27))
axes[0].set_title("what is learned from")
axes[1].imshow(mosaic(slants.apply(upright[2].ravel()).reshape(-1, 16, 16), columns=9))
axes[1].set_title("a digit in the nine poses")
for ax in axes:
    ax.axis("off")
plt.show()

# %%
# Is it worth it?
# ---------------
# Against one pose, and against turns, which are not what happened to these digits.

poses = {"one pose": None, "nine turns": T.rotations(16, count=9, step=0.17), "nine slants": slants}
models = {name: TIRBM(64, each, batch_size=20, n_iter=10, random_state=0).fit(X_train) for name, each in poses.items()}
counts, errors = (50, 200, 1300), {}
for name, model in models.items():
    Z, Z_test = model.transform(X_train), model.transform(X_test)
    fitted = [LinearSVM(C=0.1, standardize=True).fit(Z[:count], y_train[:count]) for count in counts]
    errors[name] = [1 - classifier.score(Z_test, y_test) for classifier in fitted]
    print(f"{name:<12}", "  ".join(f"{count:5} labels {e:6.1%}" for count, e in zip(counts, errors[name], strict=True)))

# %%
# The pose says how a digit was slanted: it is the slant that brings the digit back to its filter. We slant test digits
# by known amounts, and read the amounts off the poses of the filters that are on in the upright and in the slanted one.

upright_test = np.stack([upright[i] for i in order[1300:]]).astype(np.float32)
known = rng.uniform(-0.8, 0.8, len(upright_test))
written = np.stack([slant(v, a) for v, a in zip(upright_test, known, strict=True)]).clip(0, 1)
before, after = (models["nine slants"].pose(v) for v in (upright_test, written))
both = (before >= 0) & (after >= 0)
moved = np.where(both, amounts[before] - amounts[after], 0).sum(1)
found = both.any(1)
known, read = known[found], moved[found] / both.sum(1)[found]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (name, row), marker in zip(errors.items(), "os^", strict=True):
    left.plot(counts, [100 * e for e in row], marker=marker, label=name)
left.set(xscale="log", xticks=counts, xticklabels=counts, xlabel="labels", ylabel="test error (%)", ylim=(0, None))
left.legend()
right.scatter(known, read, s=8)
right.set(xlabel="slant", ylabel="slant read off the poses")
right.set_title(f"{found.sum()} test digits, correlation {np.corrcoef(known, read)[0, 1]:.2f}")
plt.show()

# %%
# On the command line a set goes into a file: ``numpy.save("slants.npy", slants.to_dense())``, then
# ``orbitpool fit digits --transforms slants.npy --out model.safetensors``.
