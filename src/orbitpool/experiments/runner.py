"""Recipe and seed to result: the one runner."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from orbitpool import classifiers, datasets, transforms
from orbitpool.datasets import Dataset
from orbitpool.experiments import phones, results
from orbitpool.experiments.recipes import QUICK, Recipe, Spec
from orbitpool.images import ConvFeatures
from orbitpool.kernels import choose_device
from orbitpool.learners import TIOMP, TIRBM
from orbitpool.transforms import TransformSet

LEARNERS = {"TIRBM": TIRBM, "TIOMP": TIOMP}


@dataclass
class Stages:
    """Seconds that each part of a run takes, and who is told of it."""

    tell: Callable[[str], None] = lambda stage: None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time what is done inside."""
        self.tell(name)
        start = perf_counter()
        yield
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start


def reproduce(
    recipe: Recipe,
    folder: Path,
    *,
    seeds: int | None = None,
    quick: bool = False,
    data_dir: Path | None = None,
    device: str = "auto",
    tell: Callable[[str], None] = lambda stage: None,
) -> dict[str, Any]:
    """The result of a row, kept in a folder: runs that are there already are not run again."""
    recipe = recipe.quick() if quick else recipe
    path = results.path_of(recipe, folder, quick)
    before = results.load(path)
    known = before is not None and results.same(before["settings"], results.settings(recipe, quick))
    runs: list[dict[str, Any]] = before["runs"] if before and known else []
    wanted = 1 if recipe.dataset == "stl10" else seeds or recipe.repeats  # its ten folds are the repeats
    for seed in range(len(runs), wanted):
        runs.append(run(recipe, seed, quick, data_dir, device, tell))
        results.save(recipe, runs, path, quick)
    return results.save(recipe, runs, path, quick)


def run(
    recipe: Recipe,
    seed: int,
    quick: bool = False,
    data_dir: Path | None = None,
    device: str = "auto",
    tell: Callable[[str], None] = lambda stage: None,
) -> dict[str, Any]:
    """One run of a row: its values in percent, and what it took."""
    place, stages = choose_device(device, None), Stages(tell)
    if place.type == "cuda":
        torch.cuda.reset_peak_memory_stats(place)
    protocol = _of_images if recipe.speech is None else _of_phones
    accuracies, origin = protocol(recipe, seed, quick, data_dir, place, stages)
    percent = [100 * (a if recipe.metric == "accuracy" else 1 - a) for a in accuracies]
    return {
        "seed": seed,
        "values": percent,
        **origin,
        "seconds": {name: round(taken, 3) for name, taken in stages.seconds.items()},
        "peak_memory_gb": round(_peak_memory(place), 3),
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else "cpu",
    }


def _of_phones(
    recipe: Recipe, seed: int, quick: bool, data_dir: Path | None, place: torch.device, stages: Stages
) -> tuple[list[float], dict[str, Any]]:
    """Accuracies on the core test set or on folds of speakers, and what the data is."""
    return phones.accuracies(recipe, make_learner(recipe, seed, place), str(place), seed, quick, data_dir, stages)


def _of_images(
    recipe: Recipe, seed: int, quick: bool, data_dir: Path | None, place: torch.device, stages: Stages
) -> tuple[list[float], dict[str, Any]]:
    """Accuracies on the test set, and what the data is."""
    with stages("data"):
        data = load_data(recipe, seed, quick, data_dir)
    features = make_features(recipe, seed, place)
    with stages("learn"):
        features.fit(_inputs(recipe, data.X_train))
    encoded = {}
    for part in ("train", "valid", "test"):
        if (images := getattr(data, f"X_{part}")) is not None:
            with stages("encode"):
                encoded[part] = _encode(features, _inputs(recipe, images), place)
    with stages("classify"):
        accuracies = classify(recipe, data, encoded, seed)
    return accuracies, {"data": data.provenance, "source": data.source}


def build_transforms(spec: Spec | None) -> TransformSet | None:
    """The transformation set that a recipe names."""
    if spec is None:
        return None
    name, arguments = spec
    if name == "union":
        return transforms.union(*(build_transforms(each) or transforms.identity(1) for each in arguments["sets"]))
    made: TransformSet = getattr(transforms, name)(**arguments)
    return made


def make_learner(recipe: Recipe, seed: int, device: torch.device) -> Any:
    """The learner of a row, or None if it has none."""
    if recipe.learner is None:
        return None
    return LEARNERS[recipe.learner](
        transforms=build_transforms(recipe.transforms), random_state=seed, device=str(device), **recipe.parameters
    )


def make_features(recipe: Recipe, seed: int, device: torch.device) -> Any:
    """What turns the images of a row into features: the learner on patches or on whole images."""
    learner = make_learner(recipe, seed, device)
    return (
        learner if recipe.conv is None else ConvFeatures(learner, random_state=seed, device=str(device), **recipe.conv)
    )


def load_data(recipe: Recipe, seed: int, quick: bool, data_dir: Path | None) -> Dataset:
    """The data of a row; in small, if it is to be quick."""
    if recipe.dataset in datasets.VARIATIONS:
        data = datasets.mnist_variation(recipe.dataset, seed, data_dir)
    else:
        data = {"cifar10": datasets.cifar10, "stl10": datasets.stl10}[recipe.dataset](data_dir)
    return data.first(**QUICK[recipe.table]["images"]) if quick else data


def classify(recipe: Recipe, data: Dataset, encoded: dict[str, torch.Tensor], seed: int) -> list[float]:
    """Accuracies on the test set: one, or one a fold."""
    options = {name: value for name, value in recipe.classifier.items() if name != "class"}
    kind = getattr(classifiers, recipe.classifier["class"])
    labels = {part: torch.from_numpy(np.asarray(getattr(data, f"y_{part}"))) for part in encoded}
    held_out = {"X_valid": encoded["valid"], "y_valid": labels["valid"]} if "valid" in encoded else {}
    folds = [slice(None)] if data.folds is None else [torch.from_numpy(np.asarray(fold)) for fold in data.folds]
    accuracies = []
    for fold in folds:
        classifier = kind(random_state=seed, **options).fit(encoded["train"][fold], labels["train"][fold], **held_out)
        right = torch.as_tensor(classifier.predict(encoded["test"])).cpu() == labels["test"]
        accuracies.append(float(right.double().mean()))
    return accuracies


def _inputs(recipe: Recipe, images: np.ndarray[Any, Any]) -> Any:
    """Images as the learner takes them: whole ones as float32."""
    return images if recipe.conv is not None else np.asarray(images, dtype=np.float32)


def _encode(features: Any, images: Any, device: torch.device) -> torch.Tensor:
    """Features that stay on the device, (N, F)."""
    parts = torch.split(torch.from_numpy(np.ascontiguousarray(images)), 5000)
    return torch.cat([torch.as_tensor(features.transform(part.to(device))) for part in parts])


def _peak_memory(device: torch.device) -> float:
    """Gigabytes: of the GPU if there is one, else of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
