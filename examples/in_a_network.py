"""
A layer of a network
====================

What was learned without labels can go on learning with them: ``to_module()`` is a :class:`torch.nn.Module` whose
filters are parameters, and whose poses stay tied to the filters.
"""

# %%
# Learn filters from all digits, and a classifier from 200 labels.

from math import pi

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from orbitpool import TIRBM, datasets
from orbitpool import transforms as T
from orbitpool.pictures import mosaic

digits = datasets.turned_digits()
turns = T.rotations(16, count=16, step=pi / 8)
rbm = TIRBM(64, turns, batch_size=20, n_iter=10, random_state=0).fit(digits.X_train)

X, y = torch.from_numpy(digits.X_train[:200]), torch.from_numpy(digits.y_train[:200])
X_test, y_test = torch.from_numpy(digits.X_test), torch.from_numpy(digits.y_test)

# %%
# Four networks
# -------------
# The learned layer, kept as it is, or trained with the rest; the same layer from random filters; and, with about as
# many weights, a network that knows nothing of turns.


def learned():
    """Filters as the TIRBM left them."""
    return rbm.to_module()


def untrained():
    """The same layer with random filters of the same size."""
    layer = rbm.to_module()
    with torch.no_grad():
        layer.weight.copy_(torch.randn_like(layer.weight) * layer.weight.std())
        layer.bias.fill_(float(layer.bias.mean()))
    return layer


def plain():
    """Any other layer of 64 units."""
    return nn.Sequential(nn.Flatten(), nn.Linear(256, 64), nn.ReLU())


def train(first, rate_of_first, epochs=60):
    """A network around a first layer, and its test error after every epoch."""
    torch.manual_seed(0)
    layer = first()
    network = nn.Sequential(layer, nn.BatchNorm1d(64), nn.Linear(64, 10))
    groups = [{"params": layer.parameters(), "lr": rate_of_first}, {"params": network[1:].parameters()}]
    optimizer, errors = torch.optim.Adam(groups, lr=0.01), []
    for _ in range(epochs):
        network.train()
        for rows in torch.randperm(len(X)).split(40):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(X[rows]), y[rows]).backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            errors.append(float((network(X_test).argmax(1) != y_test).float().mean()))
    return network, errors


runs = {
    "learned layer, kept": train(learned, 0.0),
    "learned layer, trained on": train(learned, 0.003),
    "random filters, trained": train(untrained, 0.003),
    "ordinary layer, trained": train(plain, 0.003),
}
for name, (_, errors) in runs.items():
    print(f"{name:<28} test error {np.mean(errors[-10:]):.1%}")

# %%
# Filters before and after: the labels change little of what was learned without them, and poses stay tied: each filter
# is still one filter in sixteen turns.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained", width_ratios=(1.4, 1, 1))
for name, (_, errors) in runs.items():
    axes[0].plot([100 * e for e in errors], label=name)
axes[0].set(xlabel="epoch", ylabel="test error (%)", ylim=(0, 80))
axes[0].legend(fontsize="small")
tuned = runs["learned layer, trained on"][0][0].weight.detach().numpy()
for ax, title, filters in ((axes[1], "learned without labels", rbm.components_), (axes[2], "after training", tuned)):
    ax.imshow(mosaic(filters.reshape(-1, 16, 16)))
    ax.set_title(title)
    ax.axis("off")
plt.show()

# %%
# Out of Python
# -------------
# The whole network as an ONNX file (``pip install 'orbitpool[onnx]'``), for any batch size.

from pathlib import Path
from tempfile import mkdtemp

from orbitpool.modules import export_onnx

path = Path(mkdtemp()) / "network.onnx"
network = runs["learned layer, trained on"][0].eval()
export_onnx(network, torch.zeros(1, 16, 16), path)
print(f"{path.name}: {path.stat().st_size:,} bytes")
