"""Tables 1-3: images, whole or by patches, and a linear classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orbitpool import classifiers, datasets
from orbitpool.datasets import Dataset
from orbitpool.datasets.variations import READING, TILT
from orbitpool.discovery.auto import in_numbers
from orbitpool.experiments import pairs
from orbitpool.experiments.beside import Beside
from orbitpool.experiments.beyond import AUTO
from orbitpool.experiments.making import fit, in_words, make_learner
from orbitpool.experiments.recipes import QUICK, Recipe
from orbitpool.experiments.trial import Trial
from orbitpool.images import ConvFeatures, Stack
from orbitpool.progress import counted
from orbitpool.transforms import LearnedSet


def accuracies(trial: Trial) -> tuple[list[float], dict[str, Any]]:
    """Accuracies on the test set, one or one a fold; what the data is, and what was chosen."""
    recipe, seed, device, stages = trial.recipe, trial.seed, trial.device, trial.stages
    with stages("data"):
        data = load_data(recipe, seed, trial.quick, trial.data_dir)
    stages.tell_of(data.provenance, data.source)
    features = make_features(recipe, seed, str(device), trial.checkpoint)
    found = {}
    if recipe.pairs is not None:
        with stages("operators"):
            found = pairs.give(features, recipe.pairs, data.X_train, seed)
    with stages("learn"):
        fit(features, inputs(recipe, data.X_train))
    encoded = {}
    for part in ("train", "valid", "test"):
        if (images := getattr(data, f"X_{part}")) is not None:
            with stages("encode", f"{len(images):,} {part} images"):
                encoded[part] = encode(features, inputs(recipe, images), device)
    with stages("classify"):
        fitted, right = classify(recipe, data, encoded, seed)
    chosen = {"C": [float(c.C_) for c in fitted], "solver_steps": [int(c.n_iter_) for c in fitted]}
    return right, {"data": data.provenance, "source": data.source, **chosen, **found, **_poses(features)}


def _poses(features: Any) -> dict[str, Any]:
    """What learned poses became, or which transformations were found in the data, and how."""
    learned = isinstance(getattr(features, "transforms", None), LearnedSet)
    discovery = getattr(getattr(features, "learner_", features), "discovery_", None)
    if discovery is not None:
        return {"found": discovery.words(), "overlaps": discovery.table()}
    return {"poses": list(features.transforms_.labels)} if learned else {}


def settings(recipe: Recipe, quick: bool) -> dict[str, Any]:
    """All that a result depends on but the seed and the data's origin."""
    kind, options = classifier_of(recipe)
    made: dict[str, Any] = {"reading": READING} if recipe.dataset in datasets.VARIATIONS else {}
    if recipe.pairs is not None:  # the turns that it is compared with are not what it learns with
        made |= {"pairs": recipe.pairs, "operators": "learned from pairs"}
        recipe = replace(recipe, transforms=None)
    made |= {"finding": in_numbers()} if recipe.transforms == AUTO else {}
    return {
        "dataset": recipe.dataset,
        **made,
        "images": QUICK[recipe.table]["images"] if quick else "all",
        "features": in_words(make_features(recipe, 0, "cpu")),
        "classifier": in_words(kind(**options)),
    }


def make_features(recipe: Recipe, seed: int, device: str, checkpoint: Path | None = None) -> Any:
    """What turns the images of a row into features: the learner on patches or on whole images, or several of them."""

    def made(what: str, **different: Any) -> Any:
        kept = None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}-{what}")
        return make_features(replace(recipe, **different), seed, device, kept)

    def other(what: str, layer: Mapping[str, Any]) -> Any:
        """A layer above or beside, whose transformations are its own, if it has any."""
        own = {name: value for name, value in layer.items() if name != "stack"}
        return made(what, **{"transforms": None, **own, "above": None, "beside": None})

    if recipe.beside is not None:
        return Beside(made("first", beside=None), other("beside", recipe.beside))
    if recipe.above is not None:
        options = recipe.above.get("stack", {})
        return Stack(made("below", above=None), other("above", recipe.above), device=device, **options)
    learner = make_learner(recipe, seed, device, checkpoint)
    return learner if recipe.conv is None else ConvFeatures(learner, random_state=seed, device=device, **recipe.conv)


def load_data(recipe: Recipe, seed: int, quick: bool, data_dir: Path | None) -> Dataset:
    """The data of a row; in small, if it is to be quick."""
    if recipe.dataset in (*datasets.VARIATIONS, TILT):
        data = datasets.mnist_variation(recipe.dataset, seed, data_dir)
    else:
        data = READERS[recipe.dataset](data_dir)
    return data.first(**QUICK[recipe.table]["images"]) if quick else data


def _upright(data_dir: Path | None) -> Dataset:
    """Digits of MNIST in 0-1, of which as many are learned from as of its variations."""
    data = datasets.mnist(data_dir).first(train=10_000)
    X_train, X_test = (np.float32(1 / 255) * images for images in (data.X_train, data.X_test))
    return replace(data, X_train=X_train, X_test=X_test)


READERS: dict[str, Callable[[Path | None], Dataset]] = {
    "cifar10": datasets.cifar10,
    "stl10": datasets.stl10,
    "mnist": _upright,
}


def classify(
    recipe: Recipe, data: Dataset, encoded: dict[str, torch.Tensor], seed: int
) -> tuple[list[Any], list[float]]:
    """Classifiers and their accuracies on the test set: one, or one a fold."""
    kind, options = classifier_of(recipe)
    labels = {part: torch.from_numpy(np.asarray(getattr(data, f"y_{part}"))) for part in encoded}
    held_out = {"X_valid": encoded["valid"], "y_valid": labels["valid"]} if "valid" in encoded else {}
    folds = [slice(None)] if data.folds is None else [torch.from_numpy(np.asarray(fold)) for fold in data.folds]
    fitted, right = [], []
    for fold in folds:
        classifier = kind(random_state=seed, **options).fit(encoded["train"][fold], labels["train"][fold], **held_out)
        guessed = torch.as_tensor(classifier.predict(encoded["test"])).cpu()
        fitted.append(classifier)
        right.append(float((guessed == labels["test"]).double().mean()))
    return fitted, right


def classifier_of(recipe: Recipe) -> tuple[Any, dict[str, Any]]:
    """The class of a row's classifier, and its parameters."""
    options = {name: value for name, value in recipe.classifier.items() if name != "class"}
    return getattr(classifiers, recipe.classifier["class"]), options


def inputs(recipe: Recipe, images: np.ndarray[Any, Any]) -> Any:
    """Images as the learner takes them: whole ones as float32."""
    return images if recipe.conv is not None else np.asarray(images, dtype=np.float32)


def encode(features: Any, images: Any, device: torch.device) -> torch.Tensor:
    """Features that stay on the device, (N, F)."""
    parts = torch.split(torch.from_numpy(np.ascontiguousarray(images)), 5000)
    done = counted(parts, "encode", "parts")
    return torch.cat([torch.as_tensor(features.transform(part.to(device))) for part in done])
