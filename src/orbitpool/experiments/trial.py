"""One run of a row: what it is given, and how long its stages take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import torch

from orbitpool.experiments.recipes import Recipe

Tell = Callable[[str], None]


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

    def tell_of(self, provenance: str, source: str) -> None:
        """Say so if data stands in for what the paper used."""
        if provenance == "stand-in":
            self.tell(f"this is a stand-in: {source}")


@dataclass(frozen=True)
class Trial:
    """A recipe and a seed, and where and how they are run."""

    recipe: Recipe
    seed: int
    quick: bool
    data_dir: Path | None
    device: torch.device
    stages: Stages
    checkpoint: Path | None  # where learning that was stopped goes on from
