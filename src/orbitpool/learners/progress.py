"""What a person sees while a model learns."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from orbitpool.progress import Task, asked_for, task

if TYPE_CHECKING:
    from orbitpool.learners.training import Counters


class Progress:
    """How many epochs of how many are done; nothing unless asked for."""

    def __init__(
        self, name: str, n_iter: int, n_batches: int | None, verbose: bool | int, now: Counters | None = None
    ) -> None:
        self.name, self.n_iter, self.n_batches, self.verbose, self.before = name, n_iter, n_batches, verbose, now
        self.task: Task | None = None
        self.open = ExitStack()

    def __enter__(self) -> Self:
        if self.verbose:
            self.open.enter_context(asked_for())
            self.task = self.open.enter_context(task(self.name, self.n_iter))
            if self.before:  # what was learned before says nothing of the time left
                self.advance(self.before)
                self.task.before = self.task.done
        return self

    def __exit__(self, *_: object) -> None:
        self.open.close()

    def advance(self, now: Counters) -> None:
        """One update is done."""
        if self.task:
            self.task.move(now.epoch + self._share(now.batch))

    def epoch(self, now: Counters) -> None:
        """One epoch is done."""
        if self.task:
            self.task.move(now.epoch)
            names = sorted(now.history.keys() - {"seconds", "reconstruction_error"})
            figures = {name: now.history[name][-1] for name in ("reconstruction_error", *names)}
            self.task.tell(f"epoch {now.epoch}/{self.n_iter}", often=True, figures=figures)

    def _share(self, batches: int) -> float:
        """Batches as a part of an epoch."""
        return batches / self.n_batches if self.n_batches else 0.0
