"""Recipe and seed to result: the one runner."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from glob import escape
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from orbitpool import together
from orbitpool.experiments import images, phones, results
from orbitpool.experiments.recipes import Recipe
from orbitpool.experiments.trial import Stages, Tell, Trial
from orbitpool.kernels import choose_device
from orbitpool.progress import say as tell_all
from orbitpool.progress import task
from orbitpool.wholefile import alone, check_writable


def reproduce(
    recipes: list[Recipe],
    folder: Path,
    *,
    seeds: int | None = None,
    quick: bool = False,
    data_dir: Path | None = None,
    device: str = "auto",
) -> Iterator[dict[str, Any]]:
    """The results of rows, one after the other, kept in a folder: runs that are there already are not run again."""
    if seeds and (folds := [recipe.row for recipe in recipes if recipe.folds]):
        raise ValueError(f"seeds is {seeds}, but {folds[0]!r} has published folds to repeat over; leave --seeds out")
    rows = [Row(recipe.quick() if quick else recipe, folder, quick) for recipe in recipes]
    missing = [range(len(row.runs), seeds or row.recipe.repeats) for row in rows]
    if any(missing):
        check_writable(folder)
    work = sum(row.recipe.effort * len(new) for row, new in zip(rows, missing, strict=True))
    with task(recipes[0].table, work) as progress:
        for count, (row, new) in enumerate(zip(rows, missing, strict=True), 1):
            if new:
                with alone(row.path, partial(_wait, row.path)):
                    row.look()  # another process may have been at work on it
                    for seed in range(len(row.runs), new.stop):

                        def say(stage: str, name: str = f"{row.recipe.row}, seed {seed}", count: int = count) -> None:
                            progress.tell(f"{count}/{len(rows)}", f"{name}: {stage}")

                        row.add(run(row.recipe, seed, quick, data_dir, device, folder, say), say)
                        _forget(checkpoint_of(row.recipe, seed, quick, folder))
                        progress.move(progress.done + row.recipe.effort)
            yield row.result


def _wait(path: Path) -> None:
    tell_all(f"another process is at work on {path}; waiting until it has ended")


def checkpoint_of(recipe: Recipe, seed: int, quick: bool, folder: Path) -> Path:
    """Where learning that was stopped goes on from."""
    return folder / f".{recipe.key}-{seed}{'-quick' * quick}.checkpoint"


@together.once
def _forget(checkpoint: Path) -> None:
    """Remove a checkpoint, and those of the parts of its run."""
    for kept in checkpoint.parent.glob(f"{escape(checkpoint.name)}*"):
        kept.unlink()


class Row:
    """A row and the runs of it that a folder holds, made with the same settings."""

    def __init__(self, recipe: Recipe, folder: Path, quick: bool) -> None:
        self.recipe, self.folder, self.quick = recipe, folder, quick
        self.settings = settings(recipe, quick)
        self.path = results.path_of(recipe, folder, quick)
        self.look()

    def look(self) -> None:
        """Read what is there: the same for all processes, whoever else is writing."""
        self.before: dict[str, Any] | None = together.told(partial(results.load, self.path))
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
            _move(self.path, aside)
            tell(f"the earlier result had other settings and is now {aside}")
            self.before = None
        self.result = results.save(self.recipe, self.settings, [*self.runs, run], self.folder, self.quick)


@together.once
def _move(path: Path, aside: Path) -> None:
    path.replace(aside)


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
    checkpoint = None if folder is None else checkpoint_of(recipe, seed, quick, folder)
    trial = Trial(recipe, seed, quick, data_dir, place, stages, checkpoint)
    accuracies, beside = _protocol(recipe).accuracies(trial)
    return {
        "seed": seed,
        "values": [100 * (a if recipe.metric == "accuracy" else 1 - a) for a in accuracies],
        **beside,
        "seconds": {name: round(taken, 3) for name, taken in stages.seconds.items()},
        "peak_memory_gb": round(_peak_memory(place), 3),
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else "cpu",
        "versions": results.versions(),
    }


def settings(recipe: Recipe, quick: bool) -> dict[str, Any]:
    """All that a result depends on but the seed and the data's origin, as JSON has it."""
    plain: dict[str, Any] = json.loads(json.dumps(_protocol(recipe).settings(recipe, quick)))
    return plain


def _protocol(recipe: Recipe) -> ModuleType:
    return images if recipe.speech is None else phones


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
