"""What a try scores: accuracy in cross-validation of the classifier of its row, on training (and validation) images."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from lab.readings import reread
from lab.tries import BASE
from orbitpool import encoders
from orbitpool.datasets import Dataset
from orbitpool.encoders import Encoder
from orbitpool.experiments import images
from orbitpool.experiments.making import fit
from orbitpool.experiments.recipes import Recipe, select
from orbitpool.kernels import reduce_templates
from orbitpool.learners import Diverged, contrast

COLUMNS = ("row", "different", "seed", "accuracy", "C", "seconds", "device")


def tried(
    table: str, row: str, different: dict[str, Any], data_dir: Path | None, device: str, seed: int = 0
) -> tuple[int, str, str, str, str]:
    """The seed, the accuracy in percent, its C, the seconds it took, and the device."""
    start, place = perf_counter(), torch.device(device)
    recipe = varied(select(table, [row])[0], different)
    data = load(recipe.dataset, table, different.get("reading"), seed, data_dir)
    features = images.make_features(recipe, seed, device)
    name = torch.cuda.get_device_name(place) if place.type == "cuda" else "cpu"
    approximate = (
        patch.object(contrast, "tilt_", _tilt_approximately)
        if different.get("gradient") == "approximate"
        else nullcontext()
    )
    try:
        with approximate:
            fit(features, images.inputs(recipe, data.X_train))
    except Diverged:
        return seed, "diverged", "", f"{perf_counter() - start:.1f}", name
    learner = features if recipe.conv is None else features.learner_
    if "encoding" in different:
        learner.encoder = partial(_encoder, learner.encoder, different["encoding"])
    known = [part for part in ("train", "valid") if getattr(data, f"X_{part}") is not None]
    X = np.concatenate([getattr(data, f"X_{part}") for part in known])
    y = torch.from_numpy(np.concatenate([getattr(data, f"y_{part}") for part in known]))
    encoded = images.encode(features, images.inputs(recipe, X), place)
    kind, options = images.classifier_of(recipe)
    folds = [torch.arange(len(y))] if data.folds is None else [torch.from_numpy(np.asarray(f)) for f in data.folds[:4]]
    judges = [kind(random_state=seed, **options).fit(encoded[fold], y[fold]) for fold in folds]
    score = 100 * np.mean([j.cv_results_["mean_test_score"] for j in judges], 0).max()
    chosen = float(np.median([j.C_ for j in judges]))
    return seed, f"{score:.2f}", f"{chosen:g}", f"{perf_counter() - start:.1f}", name


def varied(recipe: Recipe, different: dict[str, Any]) -> Recipe:
    """A recipe with the settings that tries start from, and what is different from them."""
    conv = None if recipe.conv is None else {**recipe.conv, **different.get("conv", {})}
    K = {"n_components": recipe.parameters["n_components"]}
    parameters = {**BASE[recipe.table, recipe.learner], **K, **different.get("parameters", {})}
    poses = different.get("transforms", recipe.transforms)
    classifier = {**recipe.classifier, **different.get("classifier", {})}
    return replace(recipe, conv=conv, parameters=parameters, transforms=poses, classifier=classifier)


@lru_cache(maxsize=1)
def load(dataset: str, table: str, reading: str | None, seed: int, data_dir: Path | None) -> Dataset:
    """The data of a row, or one of the other readings of footnote 6."""
    if reading is not None:
        return reread(dataset, reading, seed, data_dir)
    return images.load_data(next(r for r in select(table) if r.dataset == dataset), seed, False, data_dir)


def _tilt_approximately(p: Tensor, z: Tensor, cost: float, slope: Tensor, n: int) -> Tensor:
    """`kernels.tilt_` with h (1 - h) for the gradient of a pose, as in the authors' code."""
    p *= 1 - cost * slope[:, None] * (1 - p)
    return p.float().sum(0) / n


@dataclass(frozen=True)
class Softplus:
    """What each filter adds to the free energy, instead of its probability."""

    of: Encoder

    def folded(self, P: Tensor) -> Callable[[Tensor], Tensor]:
        """As `Encoder.folded`."""
        templates = self.of.templates(P)
        return lambda v: softplus(reduce_templates(v, templates, self.of.bias, self.of.how, self.of.two_sided))


def _encoder(made: Any, encoding: Any, *args: Any, **kwargs: Any) -> Encoder | Softplus:
    """Another way to encode with the same filters: "softplus", or [what, a number]."""
    old: Encoder = made(*args, **kwargs)
    if encoding == "softplus":
        return Softplus(old)
    what, number = encoding
    if what == "threshold":  # as the paper encodes with TIOMP
        gain = encoders.unit_gain(old.transforms.orbit(old.W))
        return encoders.soft_threshold(old.W, old.transforms, number, old.two_sided, gain)
    assert old.bias is not None
    if what == "times":
        return replace(old, W=old.W * number, bias=old.bias * number)
    assert what == "plus", f"there is no encoding {what!r}; choose softplus, threshold, times or plus"
    return replace(old, bias=old.bias + number)
