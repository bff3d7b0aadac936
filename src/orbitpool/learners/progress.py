"""What a person sees while a model learns."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from orbitpool.learners.training import Counters


class Progress:
    """A bar with the time left on a terminal, one line an epoch elsewhere; nothing unless asked for."""

    def __init__(self, name: str, n_iter: int, n_batches: int | None, verbose: bool | int) -> None:
        self.name, self.n_iter, self.n_batches, self.verbose = name, n_iter, n_batches, verbose
        self.bar: Any = None

    def __enter__(self) -> Self:
        if self.verbose and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            text, row = TextColumn("{task.description}"), TextColumn("{task.fields[row]}")
            self.bar = Progress(text, BarColumn(), TimeRemainingColumn(), row, console=Console(stderr=True))
            self.task = self.bar.add_task(self.name, total=self.n_batches and self.n_batches * self.n_iter, row="")
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def advance(self, now: Counters) -> None:
        """One update is done."""
        if self.bar:
            self.bar.update(self.task, completed=now.update)

    def epoch(self, now: Counters) -> None:
        """One epoch is done."""
        if self.bar:  # little enough for eighty columns
            error = now.history["reconstruction_error"][-1]
            self.bar.update(self.task, row=f"epoch {now.epoch}/{self.n_iter} error {error:.4g}")
        elif self.verbose:
            row = "  ".join(f"{name.replace('_', ' ')} {values[-1]:.4g}" for name, values in now.history.items())
            print(f"{self.name}  epoch {now.epoch}/{self.n_iter}  {row}", file=sys.stderr, flush=True)
