"""The same kills of commands that torchrun has started: of a worker, of all, and of torchrun."""

from fire import kills
from fire.summary import Part


def run(seconds: float, seed: int) -> Part:
    """Kill two processes that work together, which torchrun starts again, or a user does."""
    return kills.run(seconds, seed, processes=2)
