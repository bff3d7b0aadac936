"""What is being done, how far it is and how long it will take: the one way in which people and programs are told.

`say`, `task` and `result` go to the display that a command has chosen by `showing`: bars on a terminal, plain lines
elsewhere, JSON lines for programs, or the results alone. Where nothing is chosen, nothing is shown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf, isfinite
from time import perf_counter
from typing import Any, TypeVar

Item = TypeVar("Item")

EVERY = 1.0  # seconds, at least, between two lines of what happens often; and a twentieth of the time so far


@dataclass
class Task:
    """Work of a known amount: how much of it is done, where it is in words, and the figures it has to show."""

    name: str
    total: float
    display: Display
    before: float = 0.0  # what was done before the clock started
    done: float = 0.0
    begun: float = 0.0  # what will be done when the step at hand is
    steps: int = 0
    where: str = ""
    words: str = ""
    figures: dict[str, float] = field(default_factory=dict)
    start: float = field(default_factory=lambda: perf_counter())
    moved: float = 0.0  # when something was done last
    told: float = -inf  # when a line was written last

    def move(self, done: float) -> None:
        """So much is done now."""
        self.done, self.moved = done, perf_counter()
        self.display.moved(self)

    def tell(self, where: str, words: str = "", often: bool = False, figures: dict[str, float] | None = None) -> None:
        """Say where the work is; what happens `often` is not shown every time."""
        self.where, self.words, self.figures = where, words, figures or {}
        self.display.told(self, often)

    def count(self, done: int, unit: str) -> None:
        """So many are done of things that can be counted."""
        self.move(done)
        self.tell(f"{done:,}/{self.total:,.0f} {unit}", often=True)

    def step(self, words: str, of: int | None = None, work: float = 1.0) -> None:
        """What was begun is done, and this is next: one of so many steps, or of `total`, and so much of the work."""
        self.move(self.begun)
        self.begun, self.steps = self.begun + work, self.steps + 1
        self.tell(f"{self.steps}/{of or self.total:g}", words)

    @property
    def seconds_left(self) -> float | None:
        """An estimate, once some of the work is done."""
        if self.done <= self.before:
            return None
        whole = (self.moved - self.start) * (self.total - self.done) / (self.done - self.before)
        return max(0.0, whole - (perf_counter() - self.moved))

    @property
    def left(self) -> str:
        """The estimate in words, or nothing."""
        seconds = self.seconds_left
        if seconds is None:
            return ""
        return f"{seconds / 60:.0f} min left" if seconds > 100 else f"{seconds:.0f} s left"

    @property
    def due(self) -> bool:
        """Whether it is time for a line again."""
        now = perf_counter()
        return self.done >= self.total or now - self.told >= max(EVERY, (now - self.start) / 20)


class Display:
    """Shows nothing."""

    def say(self, words: str, problem: bool = False) -> None:
        """Show a sentence."""

    def opened(self, task: Task) -> None:
        """A task begins."""

    def moved(self, task: Task) -> None:
        """More of a task is done."""

    def told(self, task: Task, often: bool) -> None:
        """A task says where it is."""

    def closed(self, task: Task) -> None:
        """A task has ended."""

    def result(self, words: str, facts: dict[str, Any]) -> None:
        """Show what came out: words for people, facts for programs."""


class Results(Display):
    """Shows results on standard output, problems on standard error, and nothing else."""

    def say(self, words: str, problem: bool = False) -> None:
        """Show a sentence if it is about a problem."""
        if problem:
            print(words, file=sys.stderr, flush=True)

    def result(self, words: str, facts: dict[str, Any]) -> None:
        """Show what came out."""
        print(words, flush=True)


class Lines(Results):
    """Plain lines on standard error."""

    def say(self, words: str, problem: bool = False) -> None:
        """Show a sentence."""
        print(words, file=sys.stderr, flush=True)

    def told(self, task: Task, often: bool) -> None:
        """A line such as `[epoch 3/20, 12 s left] TIRBM: reconstruction error 0.03`, unless one was written lately."""
        if often and not task.due:
            return
        task.told = perf_counter()
        self.line(task)

    def line(self, task: Task) -> None:
        """Write where a task is."""
        what = ", ".join(part for part in (task.words, in_words(task.figures)) if part)
        print(f"[{_joined(task.where, task.left)}] {task.name}{what and ': '}{what}", file=sys.stderr, flush=True)


class JsonLines(Lines):
    """One JSON object a line on standard output: the results, and unless quiet what happens before."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def say(self, words: str, problem: bool = False) -> None:
        """Show a sentence."""
        if problem or not self.quiet:
            self._write(event="problem" if problem else "message", words=words)

    def line(self, task: Task) -> None:
        """Write where a task is."""
        if not self.quiet:
            fraction, left = task.done / task.total if task.total else 1.0, task.seconds_left
            about = {"task": task.name, "where": task.where, "words": task.words}
            self._write(event="progress", **about, fraction=fraction, seconds_left=left, **task.figures)

    def result(self, words: str, facts: dict[str, Any]) -> None:
        """Show what came out."""
        self._write(event="result", **facts)

    def _write(self, **content: Any) -> None:
        print(json.dumps(_finite(content), ensure_ascii=False, allow_nan=False), flush=True)


class Bars(Results):
    """A bar for every open task at the bottom of the terminal, with sentences and results above."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
        from rich.progress import Task as Row
        from rich.text import Text

        class Now(ProgressColumn):
            """What a task says of itself at this moment."""

            def __init__(self, of: Callable[[Task], str]) -> None:
                super().__init__()
                self.of = of

            def render(self, task: Row) -> Text:
                return Text(self.of(task.fields["work"]), no_wrap=True, overflow="ellipsis")

        self.console = Console(stderr=True, highlight=False)
        self.live = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(20),
            Now(lambda task: _joined(task.where, task.left)),
            Now(lambda task: next((p for p in (task.words, in_words(task.figures)) if p), "")),
            console=self.console,
            redirect_stdout=False,  # results go where they are asked for, not to the terminal
        )
        self.rows: list[tuple[Task, Any]] = []

    def say(self, words: str, problem: bool = False) -> None:
        """Show a sentence."""
        self.console.print(words, markup=False, style="yellow" if problem else None, soft_wrap=True)

    def opened(self, task: Task) -> None:
        """A task begins."""
        self.rows.append((task, self.live.add_task(task.name, total=task.total, work=task)))
        self.live.start()

    def moved(self, task: Task) -> None:
        """More of a task is done."""
        for own, row in self.rows:
            if own is task:
                self.live.update(row, completed=task.done)

    def closed(self, task: Task) -> None:
        """A task has ended: the last one stays to be seen, others make room."""
        (row,) = [row for own, row in self.rows if own is task]
        self.rows = [(own, row) for own, row in self.rows if own is not task]
        if not self.rows:
            self.live.stop()
        self.live.remove_task(row)

    def result(self, words: str, facts: dict[str, Any]) -> None:
        """Show what came out."""
        if self.rows and sys.stdout.isatty():
            self.console.print(words, markup=False, soft_wrap=True)
        else:
            super().result(words, facts)


def choose(quiet: bool = False, as_json: bool = False) -> Display:
    """The display for what a user asks for; of processes that work together one is heard."""
    if "torch" in sys.modules:  # else nobody can have been joined
        from orbitpool import together

        if not together.first():
            return Display()
    if as_json:
        return JsonLines(quiet)
    if quiet:
        return Results()
    return Bars() if sys.stderr.isatty() else Lines()


def _finite(value: Any) -> Any:
    """The same with None for numbers that JSON does not know."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


_NONE = Display()
_chosen: ContextVar[Display] = ContextVar("display", default=_NONE)  # each thread has its own


@contextmanager
def showing(display: Display) -> Iterator[None]:
    """Let everything inside be shown by a display."""
    before = _chosen.set(display)
    try:
        yield
    finally:
        _chosen.reset(before)


def is_shown() -> bool:
    """Whether a display is chosen."""
    return _chosen.get() is not _NONE


def asked_for() -> AbstractContextManager[None]:
    """Let everything inside be shown, on the display that is chosen, or if there is none on the usual one."""
    return showing(_chosen.get() if is_shown() else choose())


def say(words: str, problem: bool = False) -> None:
    """Say what is being done, or what went wrong without ending the work."""
    _chosen.get().say(words, problem)


@contextmanager
def task(name: str, total: float) -> Iterator[Task]:
    """Work of a known amount to show the progress of; the last step that was begun is done at the end."""
    work, display = Task(name, total, _chosen.get()), _chosen.get()
    display.opened(work)
    try:
        yield work
        work.move(max(work.done, work.begun))
    finally:
        display.closed(work)


def counted(items: Collection[Item], name: str, unit: str) -> Iterator[Item]:
    """Items one by one, with progress."""
    with task(name, len(items)) as work:
        for count, item in enumerate(items, 1):
            yield item
            work.count(count, unit)


def result(words: str, /, **facts: Any) -> None:
    """Show what came out: words for people, facts for programs."""
    _chosen.get().result(words, facts)


def in_words(figures: dict[str, float]) -> str:
    """Figures by their names."""
    return ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in figures.items())


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
