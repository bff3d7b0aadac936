"""
Digits at any angle
===================

How little do features change when a digit is turned, and what is that worth when labels are few? An RBM, a TIRBM with
4, 8 and 16 turns, and the other two learners with 16 turns, on digits that they have not learned from.
"""

# %%
# Six models learn from 1,300 turned digits, none of which has a name.

from math import pi

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

from orbitpool import TIOMP, TIRBM, LinearSVM, TIAutoencoder, datasets
from orbitpool import transforms as T

digits = datasets.turned_digits()
turns = {count: T.rotations(16, count, step=2 * pi / count) for count in (4, 8, 16)}
few = {"n_iter": 10, "random_state": 0}
small = {**few, "batch_size": 20}

models = {"RBM (one pose)": TIRBM(100, None, **small)}
models |= {f"TIRBM, {count} turns": TIRBM(100, poses, **small) for count, poses in turns.items()}
models["TIAutoencoder, 16 turns"] = TIAutoencoder(100, turns[16], **small)
models["TIOMP, 16 turns"] = TIOMP(100, turns[16], **few)
for model in models.values():
    model.fit(digits.X_train)

# %%
# Invariance is a number
# ----------------------
# The mean cosine similarity between the features of a held-out digit and those of the same digit turned: 1 means that
# nothing changes. Turns between those of the set (multiples of 22.5 degrees) are the test that matters.

angles = np.arange(0, 181, 7.5)
held_out = digits.X_test[:200]
turned = {a: ndimage.rotate(held_out, a, axes=(1, 2), reshape=False, order=1).clip(0, 1) for a in angles}


def similarity(model, a):
    """Mean cosine between features of digits and of the same digits turned."""
    z, y = (Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in map(model.transform, (held_out, turned[a])))
    return float((z * y).sum(1).mean())


curves = {name: [similarity(model, a) for a in angles] for name, model in models.items()}
for name, curve in curves.items():
    print(f"{name:<24} mean over 0-180 degrees {np.mean(curve):.3f}, least {min(curve):.3f}")

# %%
# Errors
# ------
# A linear classifier that is told the names of 50, 200 or all 1,300 digits.

labels = (50, 200, 1300)


def error(encode, count):
    """Test error of a classifier that has seen so many labels."""
    classifier = LinearSVM(C=0.1, standardize=True).fit(encode(digits.X_train[:count]), digits.y_train[:count])
    return 1 - classifier.score(encode(digits.X_test), digits.y_test)


encoders = {"pixels": lambda X: X.reshape(len(X), -1), **{name: m.transform for name, m in models.items()}}
errors = {name: [error(encode, count) for count in labels] for name, encode in encoders.items()}
for name, row in errors.items():
    print(f"{name:<24}", "  ".join(f"{e:6.1%}" for e in row))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for i, name in enumerate(encoders):
    style = {"color": f"C{i}", "marker": "os^Dvx*"[i % 7], "markersize": 4, "label": name}
    right.plot(labels, [100 * e for e in errors[name]], **style)
    if name in curves:
        left.plot(angles, curves[name], **style)
left.set(xlabel="turned by (degrees)", ylabel="cosine similarity of features", ylim=(0, 1.05))
left.set_title("how features change with a turn")
right.set(xscale="log", xticks=labels, xticklabels=labels, xlabel="labels", ylabel="test error (%)", ylim=(0, None))
right.set_title("what that is worth")
right.legend(fontsize="small")
plt.show()
