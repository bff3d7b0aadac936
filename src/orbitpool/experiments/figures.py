"""Figures 3 and 4: samples of the data sets and learned filters, as pictures."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orbitpool import datasets
from orbitpool import transforms as T
from orbitpool.experiments.recipes import select
from orbitpool.experiments.runner import load_data, make_features
from orbitpool.images import random_patches
from orbitpool.images.pictures import mosaic, orientation_entropy, save_png
from orbitpool.images.whitening import whitening
from orbitpool.kernels import choose_device
from orbitpool.learners import TIRBM

Tell = Callable[[str], None]
FIGURE4 = {  # 24 filters on 14x14 patches: nine shifts of 1 pixel, five turns of pi/8, two scales 2 pixels apart
    "RBM": None,
    "translation": T.translations(14, 12, 1),
    "rotation": T.rotations(14, count=5, step=pi / 8),
    "scaling": T.scalings(14, 12, 2),
}


def figure3(out: Path, data_dir: Path | None, device: str, quick: bool, tell: Tell) -> dict[str, Any]:
    """Samples of the six data sets, and the filters of TIRBM and RBM on mnist-rot; the files written."""
    out.mkdir(parents=True, exist_ok=True)
    files = {}
    for name in datasets.VARIATIONS:
        tell(f"samples of {name}")
        images = datasets.mnist_variation(name, 0, data_dir).X_train[:100]
        files[f"samples of {name}"] = save_png(mosaic(images, zoom=1, each=False), out / f"figure3-{name}.png")
    for recipe in select("table1", ["rot"]):
        recipe = recipe.quick() if quick else recipe
        tell(f"learning filters: {recipe.method}")
        data = load_data(recipe, 0, quick, data_dir)
        learner = make_features(recipe, 0, choose_device(device, None)).fit(data.X_train)
        picture = mosaic(learner.components_[:100].reshape(-1, 28, 28))
        files[f"filters of the {recipe.method}"] = save_png(
            picture, out / f"figure3-{recipe.row.replace(' ', '-')}.png"
        )
    return {"files": {what: path.name for what, path in files.items()}}


def figure4(out: Path, data_dir: Path | None, device: str, quick: bool, tell: Tell) -> dict[str, Any]:
    """Filters learned from natural images by RBM and TIRBMs, and the entropy of their orientations in bits."""
    out.mkdir(parents=True, exist_ok=True)
    photographs, provenance, source = datasets.natural_images(data_dir)
    X = natural_patches(photographs, 20_000 if quick else 100_000)
    files, entropies = {}, {}
    for name, filters in natural_filters(X, FIGURE4, 20 if quick else 60, device, tell).items():
        files[name] = save_png(mosaic(filters, columns=6, zoom=4), out / f"figure4-{name.lower()}.png").name
        entropies[name] = orientation_entropy(filters)
    return {"files": files, "orientation entropy, bits": entropies, "data": provenance, "source": source}


def natural_patches(photographs: list[Any], count: int) -> torch.Tensor:
    """Whitened 14x14 patches of photographs, (N, 196), of unit variance."""
    rng, patches = torch.Generator().manual_seed(0), []
    for photograph in photographs:
        image = torch.from_numpy(np.asarray(photograph, dtype=np.float32))[None, :, :, None]
        patches.append(random_patches(image, count // len(photographs), (14, 14), rng).flatten(1))
    X = torch.cat(patches)
    X = X - X.mean(1, keepdim=True)
    X = X / X.std()
    mean, P = whitening(X, 0.01)
    X = (X - mean) @ P
    return X / X.std()


def natural_filters(X: torch.Tensor, sets: dict[str, Any], n_iter: int, device: str, tell: Tell) -> dict[str, Any]:
    """24 filters of each kind, (24, h, w)."""
    filters = {}
    for name, transforms in sets.items():
        tell(f"natural images: {name}")
        model = TIRBM(
            24,
            transforms,
            visible="gaussian",
            sparsity_target=0.05,
            sparsity_cost=5.0,
            learning_rate=0.005,
            n_iter=n_iter,
            batch_size=200,
            random_state=0,
            device=device,
        ).fit(X)
        side = round(model.components_.shape[1] ** 0.5)
        filters[name] = model.components_.reshape(-1, side, side)
    return filters
