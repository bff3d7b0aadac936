"""The minibatch loop: epochs, schedules, history, saving, interruption, divergence. It knows no model."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from orbitpool import together
from orbitpool.learners.progress import Progress
from orbitpool.learners.sources import Source
from orbitpool.together import seed_of as seed_of

Schedule = float | Mapping[int, float]
LOOK_EVERY = 100  # updates between looks at the errors, because a look waits for the device
EXPLODED = 100.0  # times the mean square of the inputs, or of inputs of size one


@dataclass
class Counters:
    """Where a run is."""

    seed: int
    epoch: int = 0
    batch: int = 0  # minibatches done in this epoch
    update: int = 0
    rows: int = 0  # inputs seen in this epoch
    seconds: float = 0.0  # spent in this epoch
    energy: float = 1.0  # the largest mean square of a batch so far
    history: dict[str, list[float]] = field(default_factory=dict)

    def restart_epoch(self) -> None:
        """Forget an epoch that was not finished."""
        self.batch, self.rows, self.seconds = 0, 0, 0.0


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
    def unpack(cls, counters: dict[str, Any], tensors: dict[str, Tensor], device: torch.device, exact: bool) -> State:
        """The state that `pack` took apart, on a device.

        A generator of another kind of device cannot go on; if that need not be `exact`, a new one is seeded.
        """
        at, generator = Counters(**counters), torch.Generator(device)
        kept = tensors["generator"].cpu()
        if kept.shape == generator.get_state().shape:
            generator.set_state(kept)
        elif exact:
            raise ValueError(f"the run was on another kind of device than {device} and cannot go on there bit for bit")
        else:
            generator.manual_seed(at.seed + at.update)
        return cls({name: t.to(device) for name, t in tensors.items() if name != "generator"}, generator, at)

    def copy(self) -> State:
        """A state that further training does not touch."""
        counters, tensors = self.pack()
        return State.unpack(counters, {name: t.clone() for name, t in tensors.items()}, self.generator.device, True)

    def __reduce__(self) -> tuple[Any, ...]:
        counters, tensors = self.pack()
        return State.unpack, (counters, {name: t.cpu() for name, t in tensors.items()}, torch.device("cpu"), False)


class Model(Protocol):
    """What the loop asks of a model."""

    REPLAYS: ClassVar[bool]

    def _update(self, state: State, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Improve the state by one batch; its squared error a pixel, activity of hidden units, and mean square."""

    def _pace(self, epoch: int) -> tuple[float, ...]:
        """The numbers of an update that change with the epoch."""

    def _begin_epoch(self, state: State, v: Tensor) -> None:
        """Whatever is done before an epoch's first batch."""

    def _beside(self, state: State, v: Tensor) -> None:
        """Whatever is done with a batch beside the update."""

    def _end_epoch(self, state: State) -> None:
        """Whatever is done after an epoch's last batch."""

    def _measure(self, state: State) -> dict[str, float]:
        """More columns of the history, or better ones."""

    def _weight_limit(self) -> float:
        """The size of weights beyond which a model is not learning any more."""

    def _advice(self, epoch: int) -> str:
        """What to change when training diverges."""


class Diverged(FloatingPointError):
    """Training left the numbers a computer can hold, or was about to; `state` is the last good one."""

    def __init__(self, message: str, state: State) -> None:
        super().__init__(message)
        self.state = state

    def __reduce__(self) -> tuple[Any, ...]:
        return Diverged, (str(self), self.state)


def at(schedule: Schedule, epoch: int) -> float:
    """The value of a schedule: a number, or {epoch: value} where each value holds from its epoch on."""
    if not isinstance(schedule, Mapping):
        return float(schedule)
    return float(max((start, value) for start, value in schedule.items() if start <= epoch)[1])


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
    end, and when the user interrupts. An interruption that comes when all is learned is raised once that is saved.
    """
    watch, updates, now = Watch(model, state), Updates(model, state), state.at
    # processes that work together each read their own rows of a batch
    batches = source.batches if together.processes() == 1 else getattr(source, "chosen", source.batches)

    def over() -> bool:
        return now.epoch >= n_iter or _stalled(now.history, patience)

    with _interruptible() as interrupted:
        stop, asked = together.anywhere(interrupted()), Asked(interrupted)
        while not over() and not stop:
            start = perf_counter() - now.seconds
            for v in batches(batch_size, now.seed + now.epoch if shuffle else None, now.batch):
                figures = updates(v)
                now.batch, now.update, now.rows = now.batch + 1, now.update + 1, now.rows + len(v)
                now.seconds = perf_counter() - start
                watch.note(state, figures)
                if save and save_every and now.update % save_every == 0:
                    watch.look(state)
                    save(state)
                if progress:
                    progress.advance(now)
                if stop := asked():
                    break
            else:
                _end_epoch(model, state, start)
                if progress:
                    progress.epoch(now)
                stop = together.anywhere(interrupted())
            watch.look(state)
        if save:
            save(state)
        late = together.anywhere(interrupted()) and over()
    if late:
        raise KeyboardInterrupt
    if stop:
        warnings.warn("training was interrupted; the model is as after its last update", stacklevel=4)
    return state


class Asked:
    """Whether to stop now: at once, or where processes work together at an update at which all of them ask.

    That is about every second by the first one's clock: torchrun kills after half a minute what does not end.
    """

    def __init__(self, interrupted: Callable[[], bool]) -> None:
        self.interrupted = interrupted
        self.every, self.since, self.last = 1, 0, perf_counter()

    def __call__(self) -> bool:
        """After an update."""
        if together.processes() == 1:
            return self.interrupted()
        self.since += 1
        if self.since < self.every:
            return False
        a_second = self.since / max(perf_counter() - self.last, 1e-9)
        self.every, self.since, self.last = together.agreed(int(min(LOOK_EVERY, max(1, a_second)))), 0, perf_counter()
        return together.anywhere(self.interrupted())


class Updates:
    """A model's updates, one a batch.

    On a GPU they are recorded once and replayed, because telling a GPU what to do takes longer than doing it.
    """

    def __init__(self, model: Model, state: State) -> None:
        self.model, self.state = model, state
        self.seen: dict[torch.Size, tuple[float, ...]] = {}  # the pace of the last update that was not replayed
        self.recorded: dict[torch.Size, tuple[Any, Any, Tensor, Tensor]] = {}  # pace, graph, its input and its output

    def __call__(self, v: Tensor) -> Tensor:
        """Update by a batch; its squared error a pixel, activity, and mean square, (3,)."""
        if self.state.at.batch == 0:
            self.model._begin_epoch(self.state, v)
        self.model._beside(self.state, v)
        if together.processes() > 1:
            return self._update(v)
        pace = self.model._pace(self.state.at.epoch)
        if not (v.is_cuda and self.model.REPLAYS and self.seen.get(v.shape) == pace):
            self.seen[v.shape] = pace
            return self._update(v)
        if v.shape not in self.recorded or self.recorded[v.shape][0] != pace:
            self.recorded[v.shape] = pace, *self._record(v)
        _, graph, given, figures = self.recorded[v.shape]
        given.copy_(v)
        graph.replay()
        return figures.clone()

    def _update(self, v: Tensor) -> Tensor:
        figures = torch.stack(self.model._update(self.state, v))
        self.state.tensors["sums"].add_(figures[:2], alpha=len(v))
        return figures

    def _record(self, v: Tensor) -> tuple[Any, Tensor, Tensor]:
        graph, given = torch.cuda.CUDAGraph(), v.T.contiguous().T  # kernels read one pixel of all inputs at a time
        graph.register_generator_state(self.state.generator)
        with torch.cuda.graph(graph):
            figures = self._update(given)
        return graph, given, figures


class Watch:
    """Looks at the errors now and then, and keeps the last state that was good."""

    def __init__(self, model: Model, state: State) -> None:
        self.model, self.good = model, state.copy()
        self.noted: list[Tensor] = []  # the figures of every update since the last look

    def note(self, state: State, figures: Tensor) -> None:
        """Take down the figures of one update."""
        self.noted.append(figures)
        if len(self.noted) == LOOK_EVERY:
            self.look(state)

    def look(self, state: State) -> None:
        """Raise `Diverged` if an error since the last look, or a number of the state, is not finite or too large."""
        noted, now = (torch.stack(self.noted).tolist() if self.noted else []), state.at
        for update, (error, _, energy) in enumerate(noted, now.update - len(noted) + 1):
            now.energy = max(now.energy, energy)
            if not error <= EXPLODED * now.energy:
                self._raise(state, update, f"the reconstruction error became {error:.3g}")
        if not all(t.isfinite().all() for t in state.tensors.values()):
            self._raise(state, now.update, "a parameter is not finite")
        if (largest := float(state.tensors["W"].abs().max())) > self.model._weight_limit():
            self._raise(state, now.update, f"a weight became {largest:.3g}")
        self.noted.clear()
        self.good = state.copy()

    def _raise(self, state: State, update: int, what: str) -> None:
        epoch = state.at.epoch - (state.at.batch == 0)  # an epoch that has ended is counted already
        raise Diverged(
            f"training diverged at update {update} (epoch {epoch}): {what}; {self.model._advice(epoch)}; "
            f"the model is as after update {self.good.at.update}",
            self.good,
        )


def _end_epoch(model: Model, state: State, start: float) -> None:
    now = state.at
    model._end_epoch(state)
    error, activity = (state.tensors["sums"] / max(now.rows, 1)).tolist()
    state.tensors["sums"].zero_()
    row = {"reconstruction_error": error, "sparsity": activity, **model._measure(state), "seconds": 0.0}
    row["seconds"] = perf_counter() - start
    for name in dict.fromkeys([*row, *now.history]):  # a column that is new, or has ended, is filled up
        column = now.history.setdefault(name, [float("nan")] * now.epoch)
        column.append(row.get(name, float("nan")))
    now.epoch += 1
    now.restart_epoch()


def _stalled(history: dict[str, list[float]], patience: int | None) -> bool:
    """Whether the held-out error has been at its best `patience` or more epochs ago."""
    errors = history.get("validation_error", [])
    if patience is None or not errors:
        return False
    return bool(together.agreed(int(len(errors) - 1 - errors.index(min(errors)) >= patience)))


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
