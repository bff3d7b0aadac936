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
from orbitpool.experiments import results
from orbitpool.experiments.baselines import BASELINES
from orbitpool.experiments.recipes import QUICK, Recipe, Spec
from orbitpool.images import ConvFeatures
from orbitpool.kernels import choose_device
from orbitpool.learners import TIOMP, TIRBM
from orbitpool.transforms import TransformSet
from orbitpool.wholefile import check_writable

Tell = Callable[[str], None]
LEARNERS = {"TIRBM": TIRBM, "TIOMP": TIOMP, **BASELINES}


@dataclass
class Stages:
    """Seconds that each part of a run takes, and who is told of it."""

    tell: Tell = lambda stage: None
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


@dataclass
class Pace:
    """An estimate of the time left, as ", 3 min left", once some of the work is done."""

    work: float
    done: float = 0.0
    start: float = field(default_factory=perf_counter)

    def add(self, work: float) -> None:
        """So much more is done."""
        self.done += work

    def __str__(self) -> str:
        if not self.done:
            return ""
        seconds = (perf_counter() - self.start) * (self.work / self.done - 1)
        return f", {seconds / 60:.0f} min left" if seconds > 100 else f", {seconds:.0f} s left"


def reproduce(
    recipes: list[Recipe],
    folder: Path,
    *,
    seeds: int | None = None,
    quick: bool = False,
    data_dir: Path | None = None,
    device: str = "auto",
    tell: Tell = lambda stage: None,
) -> Iterator[dict[str, Any]]:
    """The results of rows, one after the other, kept in a folder: runs that are there already are not run again."""
    check_writable(folder)
    recipes = [recipe.quick() if quick else recipe for recipe in recipes]
    known = [results.runs(recipe, folder, quick) for recipe in recipes]
    missing = [range(len(runs), _repeats(recipe, seeds)) for recipe, runs in zip(recipes, known, strict=True)]
    pace = Pace(sum(recipe.effort * len(new) for recipe, new in zip(recipes, missing, strict=True)))
    for count, (recipe, runs, new) in enumerate(zip(recipes, known, missing, strict=True), 1):
        for seed in new:
            name = f"[{count}/{len(recipes)}{pace}] {recipe.row}, seed {seed}"
            runs.append(run(recipe, seed, quick, data_dir, device, lambda stage, name=name: tell(f"{name}: {stage}")))  # type: ignore[misc]
            pace.add(recipe.effort)
            results.save(recipe, runs, folder, quick)
        yield results.save(recipe, runs, folder, quick)


def _repeats(recipe: Recipe, seeds: int | None) -> int:
    return 1 if recipe.dataset == "stl10" else seeds or recipe.repeats  # STL-10's ten folds are its repeats


def run(
    recipe: Recipe,
    seed: int,
    quick: bool = False,
    data_dir: Path | None = None,
    device: str = "auto",
    tell: Tell = lambda stage: None,
) -> dict[str, Any]:
    """One run of a row: its values in percent, and what it took."""
    place, stages = choose_device(device, None), Stages(tell)
    if place.type == "cuda":
        torch.cuda.reset_peak_memory_stats(place)
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
    percent = [100 * (a if recipe.metric == "accuracy" else 1 - a) for a in accuracies]
    return {
        "seed": seed,
        "values": percent,
        "data": data.provenance,
        "source": data.source,
        "seconds": {name: round(taken, 3) for name, taken in stages.seconds.items()},
        "peak_memory_gb": round(_peak_memory(place), 3),
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else "cpu",
    }


def build_transforms(spec: Spec) -> TransformSet:
    """The transformation set that a recipe names."""
    name, arguments = spec
    if name == "union":
        return transforms.union(*(build_transforms(each) for each in arguments["sets"]))
    made: TransformSet = getattr(transforms, name)(**arguments)
    return made


def make_features(recipe: Recipe, seed: int, device: torch.device) -> Any:
    """The learner of a row, on patches or on whole images."""
    poses = {} if recipe.transforms is None else {"transforms": build_transforms(recipe.transforms)}
    learner = LEARNERS[str(recipe.learner)](random_state=seed, device=str(device), **poses, **recipe.parameters)
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
