"""Recipe and seed to result: the one runner."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
from orbitpool.learners import TIOMP, TIRBM, Learner
from orbitpool.transforms import TransformSet
from orbitpool.wholefile import check_writable

Tell = Callable[[str], None]
CHECKPOINT_EVERY = 5000  # updates
IRRELEVANT = {"device", "random_state", "verbose", "checkpoint", "checkpoint_every"}  # to what a result is
LEARNERS = {"TIRBM": TIRBM, "TIOMP": TIOMP, **BASELINES}


@dataclass
class Stages:
    """Seconds that each part of a run takes, and who is told of it."""

    tell: Tell = lambda stage: None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str, what: str = "") -> Iterator[None]:
        """Time what is done inside."""
        self.tell(f"{name} {what}".strip())
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
    last: float = 0.0  # when something was done last

    def add(self, work: float) -> None:
        """So much more is done."""
        self.done += work
        self.last = perf_counter()

    def __str__(self) -> str:
        if not self.done:
            return ""
        whole = (self.last - self.start) * (self.work / self.done - 1)
        seconds = max(0.0, whole - (perf_counter() - self.last))
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
    if seeds and (folds := [recipe.row for recipe in recipes if recipe.folds]):
        raise ValueError(f"seeds is {seeds}, but {folds[0]!r} has published folds to repeat over; leave --seeds out")
    rows = [Row(recipe.quick() if quick else recipe, folder, quick) for recipe in recipes]
    missing = [range(len(row.runs), seeds or row.recipe.repeats) for row in rows]
    if any(missing):
        check_writable(folder)
    pace = Pace(sum(row.recipe.effort * len(new) for row, new in zip(rows, missing, strict=True)))
    for count, (row, new) in enumerate(zip(rows, missing, strict=True), 1):
        for seed in new:

            def say(stage: str, name: str = f"{row.recipe.row}, seed {seed}", count: int = count) -> None:
                tell(f"[{count}/{len(rows)}{pace}] {name}: {stage}")

            row.add(run(row.recipe, seed, quick, data_dir, device, folder, say), say)
            pace.add(row.recipe.effort)
        yield row.result


class Row:
    """A row and the runs of it that a folder holds, made with the same settings."""

    def __init__(self, recipe: Recipe, folder: Path, quick: bool) -> None:
        self.recipe, self.folder, self.quick = recipe, folder, quick
        self.settings = settings(recipe, quick)
        self.path = results.path_of(recipe, folder, quick)
        self.before = results.load(self.path)
        self.known = self.before is not None and self.before["settings"] == self.settings
        self.result: dict[str, Any] = self.before if self.before and self.known else {"runs": []}

    @property
    def runs(self) -> list[dict[str, Any]]:
        """One a seed."""
        return list(self.result["runs"])

    def add(self, run: dict[str, Any], tell: Tell) -> None:
        """Keep one more run; a result of other settings is set aside first."""
        if self.runs and self.runs[0]["data"] != run["data"]:
            raise ValueError(
                f"{self.path} has runs on {self.runs[0]['data']} data and this one was on {run['data']} data; "
                "give another folder as --results"
            )
        if self.before and not self.known:
            aside = self.path.with_suffix(".json.old")
            self.path.replace(aside)
            tell(f"the earlier result had other settings and is now {aside}")
            self.before = None
        self.result = results.save(self.recipe, self.settings, [*self.runs, run], self.folder, self.quick)


def run(
    recipe: Recipe,
    seed: int,
    quick: bool = False,
    data_dir: Path | None = None,
    device: str = "auto",
    folder: Path | None = None,
    tell: Tell = lambda stage: None,
) -> dict[str, Any]:
    """One run of a row: its values in percent, and what it took; with a folder, one that was stopped goes on."""
    place, stages = choose_device(device, None), Stages(tell)
    _reset_peak_memory(place)
    with stages("data"):
        data = load_data(recipe, seed, quick, data_dir)
    if data.provenance == "stand-in":
        tell(f"this is a stand-in: {data.source}")
    checkpoint = None if folder is None else folder / f".{recipe.key}-{seed}{'-quick' * quick}.checkpoint"
    features = make_features(recipe, seed, place, checkpoint)
    with stages("learn"):
        fit(features, _inputs(recipe, data.X_train))
    encoded = {}
    for part in ("train", "valid", "test"):
        if (images := getattr(data, f"X_{part}")) is not None:
            with stages("encode", f"{len(images):,} {part} images"):
                encoded[part] = _encode(features, _inputs(recipe, images), place)
    with stages("classify"):
        fitted, accuracies = classify(recipe, data, encoded, seed)
    if checkpoint:
        checkpoint.unlink(missing_ok=True)
    return {
        "seed": seed,
        "values": [100 * (a if recipe.metric == "accuracy" else 1 - a) for a in accuracies],
        "data": data.provenance,
        "source": data.source,
        "seconds": {name: round(taken, 3) for name, taken in stages.seconds.items()},
        "peak_memory_gb": round(_peak_memory(place), 3),
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else "cpu",
        "C": [float(classifier.C_) for classifier in fitted],
        "solver_steps": [int(classifier.n_iter_) for classifier in fitted],
        "versions": results.versions(),
    }


def fit(features: Any, X: Any) -> None:
    """Learn to the end; a user who interrupts that does not want to go on with half a model."""
    features.fit(X)
    learner = getattr(features, "learner_", features)
    if getattr(learner, "n_iter_", learner.n_iter) < learner.n_iter:
        raise KeyboardInterrupt


def settings(recipe: Recipe, quick: bool) -> dict[str, Any]:
    """All that a result depends on but the seed and the data's origin, as JSON has it."""
    kind, options = _classifier(recipe)
    exact = {
        "dataset": recipe.dataset,
        "images": QUICK[recipe.table]["images"] if quick else "all",
        "features": _plain(make_features(recipe, 0, torch.device("cpu"))),
        "classifier": _plain(kind(**options)),
    }
    plain: dict[str, Any] = json.loads(json.dumps(exact))
    return plain


def _plain(value: Any) -> Any:
    """An estimator as its class and parameters; transformations as they describe themselves."""
    if hasattr(value, "get_params"):
        parameters = {name: _plain(v) for name, v in value.get_params(deep=False).items() if name not in IRRELEVANT}
        return {"class": type(value).__name__, **parameters}
    return [repr(value), *value.labels] if isinstance(value, TransformSet) else value


def build_transforms(spec: Spec) -> TransformSet:
    """The transformation set that a recipe names."""
    name, arguments = spec
    if name == "union":
        return transforms.union(*(build_transforms(each) for each in arguments["sets"]))
    made: TransformSet = getattr(transforms, name)(**arguments)
    return made


def make_features(recipe: Recipe, seed: int, device: torch.device, checkpoint: Path | None = None) -> Any:
    """The learner of a row, on patches or on whole images."""
    poses = {} if recipe.transforms is None else {"transforms": build_transforms(recipe.transforms)}
    learner = LEARNERS[str(recipe.learner)](random_state=seed, device=str(device), **poses, **recipe.parameters)
    if isinstance(learner, Learner):
        learner.set_params(checkpoint=checkpoint, checkpoint_every=CHECKPOINT_EVERY, verbose=sys.stderr.isatty())
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


def classify(
    recipe: Recipe, data: Dataset, encoded: dict[str, torch.Tensor], seed: int
) -> tuple[list[Any], list[float]]:
    """Classifiers and their accuracies on the test set: one, or one a fold."""
    kind, options = _classifier(recipe)
    labels = {part: torch.from_numpy(np.asarray(getattr(data, f"y_{part}"))) for part in encoded}
    held_out = {"X_valid": encoded["valid"], "y_valid": labels["valid"]} if "valid" in encoded else {}
    folds = [slice(None)] if data.folds is None else [torch.from_numpy(np.asarray(fold)) for fold in data.folds]
    fitted, accuracies = [], []
    for fold in folds:
        classifier = kind(random_state=seed, **options).fit(encoded["train"][fold], labels["train"][fold], **held_out)
        right = torch.as_tensor(classifier.predict(encoded["test"])).cpu() == labels["test"]
        fitted.append(classifier)
        accuracies.append(float(right.double().mean()))
    return fitted, accuracies


def _classifier(recipe: Recipe) -> tuple[Any, dict[str, Any]]:
    options = {name: value for name, value in recipe.classifier.items() if name != "class"}
    return getattr(classifiers, recipe.classifier["class"]), options


def _inputs(recipe: Recipe, images: np.ndarray[Any, Any]) -> Any:
    """Images as the learner takes them: whole ones as float32."""
    return images if recipe.conv is not None else np.asarray(images, dtype=np.float32)


def _encode(features: Any, images: Any, device: torch.device) -> torch.Tensor:
    """Features that stay on the device, (N, F)."""
    parts = torch.split(torch.from_numpy(np.ascontiguousarray(images)), 5000)
    return torch.cat([torch.as_tensor(features.transform(part.to(device))) for part in parts])


def _reset_peak_memory(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    with suppress(OSError):  # a system without it reports the peak of the process so far
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory(device: torch.device) -> float:
    """Gigabytes since the reset: of the GPU if there is one, else of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
