"""Figures: data sets and learned filters (3 and 4), invariance, what was found; as pictures and one JSON each."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orbitpool import datasets, transforms
from orbitpool.experiments import results
from orbitpool.experiments.drawing import Drawn, draw_filters, file_of
from orbitpool.experiments.found import found
from orbitpool.experiments.images import load_data, make_features
from orbitpool.experiments.invariance import invariance
from orbitpool.experiments.making import fit
from orbitpool.experiments.recipes import select
from orbitpool.experiments.trial import Tell
from orbitpool.images import random_patches
from orbitpool.images.whitening import whitening
from orbitpool.kernels import choose_device
from orbitpool.learners import TIRBM
from orbitpool.pictures import Bytes, mosaic, orientation_entropy, save_png
from orbitpool.progress import is_shown, task
from orbitpool.transforms import TransformSet
from orbitpool.wholefile import check_writable

POSES: dict[str, TransformSet | None] = {  # of Figure 4: nine shifts of 1 pixel, five turns of pi/8, two scales
    "RBM": None,
    "translation": transforms.translations(14, 12, 1),
    "rotation": transforms.rotations(14, count=5, step=pi / 8),
    "scaling": transforms.scalings(14, 12, 2),
}
EPOCHS = 25
NATURAL = {  # whitening of 0.1 and filters that are seldom on: the edges of a small RBM are blobs otherwise
    "n_components": 24,
    "visible": "gaussian",
    "sparsity_target": 0.02,
    "sparsity_cost": 20.0,
    "learning_rate": 0.02,
}


def draw(
    figure: str,
    folder: Path,
    quick: bool = False,
    data_dir: Path | None = None,
    device: str = "auto",
) -> dict[str, Any]:
    """Make a figure: its pictures, and a JSON with their titles and what else it says."""
    check_writable(folder)
    pictures, beside = FIGURES[figure](quick, data_dir, device)
    folder.mkdir(parents=True, exist_ok=True)
    name, files = f"{figure}{'-quick' if quick else ''}", {}
    for title, picture in pictures.items():
        files[title] = save_png(picture, folder / file_of(name, title)).name
    result = {"figure": figure, "quick": quick, "pictures": files, **beside, "versions": results.versions()}
    return results.write(result, folder / f"{name}.json")


def figure3(quick: bool, data_dir: Path | None, device: str) -> Drawn:
    """Samples of the six data sets, and filters of the TIRBM and the RBM on mnist-rot."""
    pictures, sources, orbits, recipes = {}, {}, {}, select("table1", ["rot"])
    count = len(datasets.VARIATIONS) + len(recipes)
    with task("figure3", sum(recipe.effort for recipe in recipes)) as progress:
        for name in datasets.VARIATIONS:
            progress.step(f"samples of {name}", count, work=0)  # next to nothing, beside learning
            data = datasets.mnist_variation(name, 0, data_dir)
            pictures[f"samples of {name}"] = mosaic(data.X_train[:100], zoom=1, each=False)
            sources[name] = {"data": data.provenance, "source": data.source}
        for whole in recipes:
            recipe, title = whole.quick() if quick else whole, f"filters of the {whole.method}"
            progress.step(title, count, work=whole.effort)
            data = load_data(recipe, 0, quick, data_dir)
            learner = make_features(recipe, 0, str(choose_device(device, None)))
            fit(learner, data.X_train)
            W = learner.components_[:100].reshape(-1, 28, 28)
            drawn, orbits[title] = draw_filters(title, W, learner.transforms_, 28)
            pictures |= drawn
    return pictures, {"sources": sources, "orbits": orbits}


def figure4(quick: bool, data_dir: Path | None, device: str) -> Drawn:
    """24 filters of an RBM and three TIRBMs from natural images, and the entropy of their orientations in bits."""
    photographs, provenance, source = datasets.natural_images(data_dir)
    X = natural_patches(photographs, 20_000 if quick else 100_000)
    with task("figure4", len(POSES)) as progress:
        pictures, said = draw_natural(X, POSES, EPOCHS, device, progress.step)
    return pictures, {**said, "data": provenance, "source": source}


def draw_natural(X: torch.Tensor, poses: dict[str, TransformSet | None], n_iter: int, device: str, tell: Tell) -> Drawn:
    """Filters of natural images for each set of poses, and the entropy of their orientations in bits."""
    pictures: dict[str, Bytes] = {}
    entropy, orbits = {}, {}
    for name, each in poses.items():
        tell(f"filters of natural images: {name}")
        filters = natural_filters(X, each, n_iter, device)
        entropy[name] = orientation_entropy(filters)
        drawn, orbits[name] = draw_filters(name, filters, each, 14)
        pictures |= drawn
    return pictures, {"orientation entropy in bits": entropy, "orbits": orbits}


def natural_patches(photographs: list[Any], count: int) -> torch.Tensor:
    """Whitened 14x14 patches of photographs, (N, 196), of unit variance."""
    rng, patches = torch.Generator().manual_seed(0), []
    for photograph in photographs:
        image = torch.from_numpy(np.asarray(photograph, dtype=np.float32))[None, :, :, None]
        patches.append(random_patches(image, count // len(photographs), (14, 14), rng).flatten(1))
    X = torch.cat(patches)
    X = X - X.mean(1, keepdim=True)
    X = X / X.std()
    mean, P = whitening(X, 0.1)
    X = (X - mean) @ P
    return X / X.std()


def natural_filters(X: torch.Tensor, poses: TransformSet | None, n_iter: int, device: str, seed: int = 0) -> Any:
    """24 filters, (24, h, w)."""
    place = str(choose_device(device, None))
    run = {"n_iter": n_iter, "random_state": seed, "device": place, "verbose": is_shown()}
    model = TIRBM(transforms=poses, **run, **NATURAL)  # type: ignore[arg-type]
    fit(model, X)
    side = round(model.components_.shape[1] ** 0.5)
    return model.components_.reshape(-1, side, side)


FIGURES: dict[str, Callable[[bool, Path | None, str], Drawn]] = {
    "figure3": figure3,
    "figure4": figure4,
    "invariance": invariance,
    "found": found,
}
