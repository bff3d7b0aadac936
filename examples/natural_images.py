"""
Filters of photographs
======================

Patches of photographs give edges, and an edge that is turned or moved a little is an edge still. This is the paper's
Figure 4 in small, on the two photographs that come with scikit-learn.
"""

# %%
# Patches, whitened: neighbouring pixels are alike, and a model should not have to learn that.

from math import pi

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.pipeline import make_pipeline

from orbitpool import TIRBM, datasets
from orbitpool import transforms as T
from orbitpool.images import ZCA, ContrastNormalizer, dense_patches, random_patches
from orbitpool.pictures import mosaic, orientation_entropy

photographs = torch.from_numpy(np.stack(datasets.sample_photographs()))[..., None]
generator = torch.Generator().manual_seed(0)
patches = random_patches(photographs, 20_000, (14, 14), generator).flatten(1).numpy()
whiten = make_pipeline(ContrastNormalizer(), ZCA()).fit(patches)
scale = whiten.transform(patches).std()
X = whiten.transform(patches) / scale
print(X.shape, f"mean {X.mean():.2f}, standard deviation {X.std():.2f}")

# %%
# The inputs are real numbers: ``visible="gaussian"``. Filters that are seldom on (``sparsity_target``) become edges
# rather than blobs, and with 24 filters there is no room for two of a kind.

settings = {
    "n_components": 24,
    "visible": "gaussian",
    "learning_rate": 0.02,
    "sparsity_target": 0.02,
    "sparsity_cost": 20.0,
    "n_iter": 12,
    "random_state": 0,
}
poses = {
    "one pose": None,
    "nine shifts": T.translations(14, 10, stride=2),
    "five turns of 22.5°": T.rotations(14, count=5, step=pi / 8),
}
models = {name: TIRBM(transforms=each, **settings).fit(X) for name, each in poses.items()}
filters = {
    name: model.components_.reshape(-1, *(model.transforms.window_shape if model.transforms else (14, 14)))
    for name, model in models.items()
}

figure, axes = plt.subplots(1, 4, figsize=(11, 3.4), layout="constrained", width_ratios=(1, 1, 1, 1.1))
axes[0].imshow(mosaic(X[:24].reshape(-1, 14, 14), columns=4))
axes[0].set_title("whitened patches")
for ax, (name, tiles) in zip(axes[1:], filters.items(), strict=True):
    ax.imshow(mosaic(tiles, columns=4))
    ax.set_title(f"{name}:\norientation entropy {orientation_entropy(tiles):.2f} bits")
for ax in axes:
    ax.axis("off")
plt.show()

# %%
# The entropy says how evenly orientations are spread over eight bins: 3 bits are all alike, 0 one alone. Filters that
# may move are small things that could be anywhere; filters that may turn are edges.
#
# The orbit of three filters: the same edge in five poses, all tied to one set of weights.

model = models["five turns of 22.5°"]
orbits = model.transforms.orbit(model.components_[:3]).reshape(-1, 14, 14)
plt.figure(figsize=(5, 3), layout="constrained")
plt.imshow(mosaic(orbits, columns=5))
plt.axis("off")
plt.show()

# %%
# A photograph as the features see it: at every place, how many of the 24 filters are there, at whatever turn.

image = photographs[:1, 100:260, 200:440]
dense = dense_patches(image, (14, 14), 1)[0].flatten(0, 1).flatten(1).numpy()
there = model.transform(whiten.transform(dense) / scale).sum(1)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
left.imshow(image[0, 6:-7, 6:-7, 0], cmap="gray")
left.set_title("photograph")
shown = right.imshow(there.reshape(160 - 13, 240 - 13), cmap="magma")
right.set_title("filters that are on, in any pose")
figure.colorbar(shown, ax=right)
for ax in (left, right):
    ax.axis("off")
plt.show()
