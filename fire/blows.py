"""Ways to end processes: a command by itself, and a command whose processes torchrun has started."""

import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

LONGEST = 240  # seconds that no run takes


@dataclass(frozen=True)
class Blow:
    """A way to end a process, given its number; whether it can be struck is what `strike` gives back."""

    name: str
    strike: Callable[[int], bool]
    orderly: bool = False  # whether the command can put things in order
    mended: bool = False  # whether torchrun starts again what has died


def send(number: signal.Signals) -> Callable[[int], bool]:
    """What sends a signal to a process, and says whether that was there."""

    def strike(process: int) -> bool:
        with suppress(ProcessLookupError):
            os.kill(process, number)
            return True
        return False

    return strike


def workers(process: int) -> list[int]:
    """The processes that torchrun has started, as long as it runs."""
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


def _lives(process: int) -> bool:
    with suppress(OSError):
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    return False


def _kill_one(process: int) -> bool:
    found = workers(process)
    return bool(found) and send(signal.SIGKILL)(random.choice(found))


def _kill_all(process: int) -> bool:
    """As when the power fails: torchrun first, which would start others."""
    found = workers(process)
    ended = send(signal.SIGKILL)(process)
    for each in found:
        send(signal.SIGKILL)(each)
    return ended


def _kill_launcher(process: int) -> bool:
    """Torchrun alone: its workers go on by themselves, to their end."""
    found = workers(process)
    ended = bool(found) and send(signal.SIGKILL)(process)
    until = perf_counter() + LONGEST
    while ended and any(map(_lives, found)) and perf_counter() < until:
        sleep(0.05)
    return ended


ALONE = (
    Blow("SIGKILL", send(signal.SIGKILL)),
    Blow("SIGTERM", send(signal.SIGTERM), orderly=True),
    Blow("SIGINT", send(signal.SIGINT), orderly=True),
)
UNDER_TORCHRUN = (
    Blow("SIGKILL of a worker", _kill_one, mended=True),
    Blow("SIGKILL of all", _kill_all),
    Blow("SIGKILL of torchrun", _kill_launcher),
    Blow("SIGTERM of torchrun", send(signal.SIGTERM), orderly=True),
    Blow("SIGINT of torchrun", send(signal.SIGINT), orderly=True),
)
