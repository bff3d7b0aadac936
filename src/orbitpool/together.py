"""Processes that work together: who does which rows, sums over all of them, and files that one of them writes.

They are those of torch's default process group, as torchrun starts them; without one, a process is alone and everything
here does nothing. Every process calls the same functions with the same data, and takes its own share of the rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from math import prod
from typing import Any, ParamSpec

import numpy as np
import torch
import torch.distributed as dist
from sklearn.utils import check_random_state
from torch import Tensor

from orbitpool import meeting

LOOK = 64  # rows that tell whether processes were given the same
ALL_OF_IT = "give every process all of it, and each takes its own share, or work inside orbitpool.together.apart()"
FEWEST = 2  # rows a process, below which each does all of them
PATIENCE = timedelta(days=1)  # for processes that are slower, or wait for others; torchrun sees those that have died

P = ParamSpec("P")
_apart: ContextVar[bool] = ContextVar("apart", default=False)


@contextmanager
def joined() -> Iterator[None]:
    """Inside, the processes that torchrun has started work together; nothing happens if it has not, or if they do."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1 or "RANK" not in os.environ or dist.is_initialized():
        yield
        return
    meeting.begin(PATIENCE)
    try:
        yield
    except SystemExit as end:
        if not end.code:
            dist.destroy_process_group()
        raise
    else:
        dist.destroy_process_group()  # not after an error: others may be waiting, and torchrun ends them


@contextmanager
def apart() -> Iterator[None]:
    """Inside, this process works alone, whatever the others do."""
    before = _apart.set(True)
    try:
        yield
    finally:
        _apart.reset(before)


def processes() -> int:
    """How many processes work together."""
    return 1 if _apart.get() or not dist.is_available() or not dist.is_initialized() else dist.get_world_size()


def place() -> int:
    """Which of them this is, from 0."""
    return dist.get_rank() if processes() > 1 else 0


def first() -> bool:
    """Whether this process is the one that writes and speaks."""
    return place() == 0


@dataclass(frozen=True)
class Part:
    """The share of n rows that a process has: its `own`, which follow each other, and their `weight` in a mean of all.

    Where there are only few, each process does all of them, and each counts for its share.
    """

    n: int
    own: slice
    weight: float
    alone: bool  # whether nobody else works on them

    @property
    def whole(self) -> bool:
        """Whether all rows are here."""
        return bool(self.own == slice(0, self.n))

    def weigh(self, mean: Tensor) -> Tensor:
        """What a mean over the own rows adds to that over all, to be summed."""
        return mean if self.alone else mean * self.weight

    def sum_(self, *tensors: Tensor, later: bool = False) -> Callable[[], None]:
        """Add up what all processes have, in place, as one message.

        If it is to be `later`, work can go on meanwhile, until what comes back is called.
        """
        finish = _nothing if self.alone else _begin_sum(tensors)
        if not later:
            finish()
        return finish

    def same_(self, decided: Tensor) -> Tensor:
        """What the first process has decided, in place: rounding may have the others decide otherwise."""
        if not self.alone:
            same_(decided)
        return decided

    def mean(self, own: Tensor) -> Tensor:
        """The mean over all rows, from that over the own."""
        total = self.weigh(own)
        self.sum_(total)
        return total

    def drawn(self, draw: Callable[[Tensor], Tensor], own: Tensor) -> Tensor:
        """What is drawn for the own rows when one process draws for all n, which lie in memory as the own do."""
        if self.whole:
            return draw(own)
        inside = own.stride(0) == 1  # rows are last in memory
        shape = own.shape[1:]
        batch = own.new_zeros(*shape, self.n).movedim(-1, 0) if inside else own.new_zeros(self.n, *shape)
        batch[self.own] = own
        return draw(batch)[self.own]

    def gather(self, own: Tensor) -> Tensor:
        """What all processes have for their own rows, (n, ...)."""
        if self.whole:
            return own
        shares = [_share(self.n, each, processes()) for each in range(processes())]
        padded = own.new_zeros(shares[0].stop, *own.shape[1:])
        padded[: len(own)] = own
        parts = zip(_gathered(padded), shares, strict=True)
        return torch.cat([rows[: share.stop - share.start] for rows, share in parts]).to(own.device)


def part(n: int) -> Part:
    """The share of n rows that this process has."""
    size = processes()
    if n < FEWEST * size:
        return Part(n, slice(0, n), 1 / size, size == 1)
    own = _share(n, place(), size)
    return Part(n, own, (own.stop - own.start) / n, size == 1)


def alone(n: int) -> Part:
    """All of n rows, for this process only."""
    return Part(n, slice(0, n), 1.0, True)


def agreed(number: int) -> int:
    """The first process's number, on all of them."""
    if processes() == 1:
        return number
    t = _carried(torch.tensor(number))
    dist.broadcast(t, 0)
    return int(t)


def seed_of(random_state: Any) -> int:
    """A seed, the same for all processes that work together."""
    return agreed(int(check_random_state(random_state).randint(2**31 - 1)))


def same_(*tensors: Tensor) -> None:
    """Make tensors those of the first process, in place."""
    for t in tensors if processes() > 1 else ():
        sent = _carried(t.contiguous())
        dist.broadcast(sent, 0)
        t.copy_(sent)


def everywhere(text: str) -> list[str]:
    """What each process has to say, in their order."""
    if processes() == 1:
        return [text]
    own = torch.tensor(list(text.encode()), dtype=torch.uint8)
    lengths = _gathered(torch.tensor([len(own)]))
    padded = torch.zeros(max(map(int, lengths)), dtype=torch.uint8)
    padded[: len(own)] = own
    return [bytes(t[: int(n)].tolist()).decode() for t, n in zip(_gathered(padded), lengths, strict=True)]


def anywhere(here: bool) -> bool:
    """Whether something holds on any process."""
    if processes() == 1:
        return here
    t = _carried(torch.tensor(int(here)))
    dist.all_reduce(t)
    return bool(t)


def check_same(what: str, counts: dict[str, int], numbers: list[float] | None = None, way: str = ALL_OF_IT) -> None:
    """Raise ValueError, with a way out, unless all processes have the same counts, and numbers to four digits."""
    if processes() == 1:
        return
    t = torch.tensor([*counts.values(), *(numbers or ())], dtype=torch.float64)
    both = _carried(torch.cat([t, -t]))
    dist.all_reduce(both, dist.ReduceOp.MAX)
    high, low = both.cpu().chunk(2)
    low, exact = -low, len(counts)
    differ = [f"{k} {a:.0f} to {b:.0f}" for k, a, b in zip(counts, low, high, strict=False) if a != b]
    if not torch.allclose(high[exact:], low[exact:], rtol=0, atol=1e-4, equal_nan=True):
        differ.append("other values")
    if differ:
        raise ValueError(f"{what} is not the same on all {processes()} processes ({', '.join(differ)}); {way}")


def check_rows(what: str, *pieces: Any, **counts: int) -> None:
    """Raise ValueError, on every process, unless all have the same rows (n, ...), as far as some of them show."""
    if processes() == 1:
        return
    shown = torch.zeros(2, 2, LOOK, dtype=torch.float64)
    for at, x in zip(shown, (pieces[0], pieces[-1]), strict=True):
        some = x[:: max(1, len(x) // LOOK)][:LOOK]
        values = some.double() if isinstance(some, Tensor) else torch.from_numpy(np.array(some, np.float64))
        at[:, : len(some)] = _traits(values.flatten(1).cpu())
    first = pieces[0]
    counts |= {"rows": sum(map(len, pieces)), "columns": prod(first.shape[1:]), "bytes a number": first.dtype.itemsize}
    check_same(what, counts, shown.flatten().tolist())


def _traits(rows: Tensor) -> Tensor:
    """Two numbers by which rows can be told apart, (2, n): the logarithm of their length, and their direction.

    Neither their size nor a mean of 0 makes a difference to how well.
    """
    length = rows.norm(dim=1).clamp_min(1e-300)
    return torch.stack([length.log(), rows @ torch.arange(rows.shape[1], dtype=torch.float64).cos() / length])


def once(write: Callable[P, object]) -> Callable[P, None]:
    """What is done by the first process alone, while the others wait; all of them fail if it does."""

    @wraps(write)
    def done(*args: P.args, **options: P.kwargs) -> None:
        error = None
        if first():
            try:
                write(*args, **options)
            except BaseException as raised:
                error = raised
        if anywhere(error is not None) and error is None:
            raise OSError(f"the first process failed to {write.__name__} {args[0] if args else ''}; see its own error")
        if error is not None:
            raise error

    return done


def told(find: Callable[[], Any]) -> Any:
    """What the first process finds, which JSON can hold, on all of them; all of them fail if it does."""
    found: list[Any] = [None]

    def read() -> None:
        found[0] = find()

    once(read)()
    return found[0] if processes() == 1 else json.loads(everywhere(json.dumps(found[0]))[0])


def _nothing() -> None:
    """What is left to do alone."""


def _share(n: int, which: int, size: int) -> slice:
    """Rows of a process: n // size, and one more for the first n % size processes."""
    least, more = divmod(n, size)
    start = which * least + min(which, more)
    return slice(start, start + least + (which < more))


def _begin_sum(tensors: tuple[Tensor, ...]) -> Callable[[], None]:
    """Begin to add up over processes; the end of it, to be called."""
    flat = _carried(torch.cat([t.reshape(-1) for t in tensors]))
    work = dist.all_reduce(flat, async_op=True)

    def finish() -> None:
        work.wait()
        for t, total in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            t.copy_(total.view(t.shape))

    return finish


def _gathered(t: Tensor) -> list[Tensor]:
    """The tensors, all of one shape, of all processes."""
    sent = _carried(t)
    parts = [torch.empty_like(sent) for _ in range(processes())]
    dist.all_gather(parts, sent)
    return parts


def _carried(t: Tensor) -> Tensor:
    """T on a device whose tensors the group can send."""
    known = dict(pair.split(":") for pair in dist.get_backend_config().split(","))
    if t.is_cuda and known.get("cuda") != "nccl":
        return t.cpu()
    return t if t.is_cuda or "cpu" in known else t.cuda()
