"""The minibatch loop: epochs, schedules, history, saving, interruption, divergence. It knows no model."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, Protocol

import torch
from torch import Tensor

from orbitpool.learners.progress import Progress
from orbitpool.learners.sources import Source

Schedule = float | Mapping[int, float]
LOOK_EVERY = 100  # updates between looks at the errors, because a look waits for the device
EXPLODED = 100.0  # times the first error


@dataclass
class Counters:
    """Where a run is."""

    seed: int
    epoch: int = 0
    batch: int = 0  # minibatches done in this epoch
    update: int = 0
    rows: int = 0  # inputs seen in this epoch
    seconds: float = 0.0  # spent in this epoch
    history: dict[str, list[float]] = field(default_factory=dict)


@dataclass
class State:
    """All that a run is: going on from a copy gives the same bits as never having stopped."""

    tensors: dict[str, Tensor]  # parameters, velocities, chains, sums
    generator: torch.Generator
    at: Counters

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """JSON and tensors."""
        return asdict(self.at), {**self.tensors, "generator": self.generator.get_state()}

    @classmethod
    def unpack(cls, counters: dict[str, Any], tensors: dict[str, Tensor], device: torch.device) -> State:
        """The state that `pack` took apart, on a device."""
        generator = torch.Generator(device)
        generator.set_state(tensors["generator"].cpu())
        placed = {name: t.to(device) for name, t in tensors.items() if name != "generator"}
        return cls(placed, generator, Counters(**counters))

    def copy(self) -> State:
        """A state that further training does not touch."""
        counters, tensors = self.pack()
        return State.unpack(counters, {name: t.clone() for name, t in tensors.items()}, self.generator.device)


class Model(Protocol):
    """What the loop asks of a model."""

    def _update(self, state: State, v: Tensor) -> Tensor:
        """Improve the state by one batch; its squared error a pixel and the activity of its hidden units, (2,)."""

    def _end_epoch(self, state: State) -> None:
        """Whatever is done once an epoch."""

    def _measure(self, state: State) -> dict[str, float]:
        """More columns of the history."""

    def _advice(self, epoch: int) -> str:
        """What to change when training diverges."""


class Diverged(FloatingPointError):
    """Training left the numbers a computer can hold, or was about to; `state` is the last good one."""

    def __init__(self, message: str, state: State) -> None:
        super().__init__(message)
        self.state = state


def at(schedule: Schedule, epoch: int) -> float:
    """The value of a schedule: a number, or {epoch: value} where each value holds from its epoch on."""
    if not isinstance(schedule, Mapping):
        return float(schedule)
    return float(max((int(start), value) for start, value in schedule.items() if int(start) <= epoch)[1])


def train(
    model: Model,
    state: State,
    source: Source,
    *,
    n_iter: int,
    batch_size: int,
    shuffle: bool = True,
    patience: int | None = None,
    save: Callable[[State], None] | None = None,
    save_every: int = 0,
    progress: Progress | None = None,
) -> State:
    """Train until `n_iter` epochs are done, early stopping ends it, or the user does; the state reached.

    The order of the inputs depends on the seed and the epoch alone. `save` is called every `save_every` updates, at the
    end of every epoch, and when the user interrupts.
    """
    watch, now = Watch(model, state), state.at
    with _interruptible() as interrupted:
        while now.epoch < n_iter and not interrupted() and not _stalled(now.history, patience):
            start = perf_counter() - now.seconds
            for v in source.batches(batch_size, now.seed + now.epoch if shuffle else None, now.batch):
                measures = model._update(state, v)
                state.tensors["sums"] += len(v) * measures
                now.batch, now.update, now.rows = now.batch + 1, now.update + 1, now.rows + len(v)
                now.seconds = perf_counter() - start
                watch.note(state, measures[0])
                if save and save_every and now.update % save_every == 0:
                    watch.look(state)
                    save(state)
                if progress:
                    progress.advance(now)
                if interrupted():
                    break
            else:
                watch.look(state)
                _end_epoch(model, state, start)
                watch.good = state.copy()
                if progress:
                    progress.epoch(now)
            if save:
                save(state)
    if interrupted():
        warnings.warn("training was interrupted; the model is as after its last update", stacklevel=4)
    return state


class Watch:
    """Looks at the errors now and then, and keeps the last state that was good."""

    def __init__(self, model: Model, state: State) -> None:
        self.model, self.good, self.limit = model, state.copy(), float("inf")
        self.errors: list[Tensor] = []

    def note(self, state: State, error: Tensor) -> None:
        """Take down the error of one update."""
        self.errors.append(error)
        if len(self.errors) == LOOK_EVERY:
            self.look(state)

    def look(self, state: State) -> None:
        """Raise `Diverged` if an error since the last look, or a number of the state, is not finite or too large."""
        errors = torch.stack(self.errors).tolist() if self.errors else []
        if self.limit == float("inf") and errors and errors[0] > 0:
            self.limit = EXPLODED * errors[0]
        bad = [i for i, error in enumerate(errors) if not error <= self.limit]
        if bad or not all(t.isfinite().all() for t in state.tensors.values()):
            update = state.at.update - len(errors) + 1 + (bad[0] if bad else len(errors) - 1)
            what = f"the reconstruction error became {errors[bad[0]]:.3g}" if bad else "a parameter is not finite"
            raise Diverged(
                f"training diverged at update {update} (epoch {state.at.epoch}): {what}; "
                f"{self.model._advice(state.at.epoch)}; the model is as after update {self.good.at.update}",
                self.good,
            )
        self.errors.clear()
        self.good = state.copy()


def _end_epoch(model: Model, state: State, start: float) -> None:
    now = state.at
    model._end_epoch(state)
    error, activity = (state.tensors["sums"] / max(now.rows, 1)).tolist()
    state.tensors["sums"].zero_()
    row = {"reconstruction_error": error, "sparsity": activity, **model._measure(state)}
    for name, value in {**row, "seconds": perf_counter() - start}.items():
        now.history.setdefault(name, []).append(value)
    now.epoch, now.batch, now.rows, now.seconds = now.epoch + 1, 0, 0, 0.0


def _stalled(history: dict[str, list[float]], patience: int | None) -> bool:
    """Whether the held-out error has been at its best more than `patience` epochs ago."""
    errors = history.get("validation_error", [])
    return patience is not None and len(errors) - 1 - errors.index(min(errors)) >= patience if errors else False


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks the loop to stop after the update at hand; a second Ctrl-C stops at once."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: Any) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
