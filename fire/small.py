"""The command line with Table 1 and checkpoints in small, so that it can be killed often: `python -m fire.small …`."""

import os
import signal
from typing import Any

if __name__ == "__main__":  # what is imported here is no part of a command: it ends without a word
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)

from orbitpool import cli
from orbitpool.datasets import written
from orbitpool.experiments import making, recipes
from orbitpool.learners.progress import Progress
from orbitpool.userdata import commands, featurefolder, images

INTERVAL = 20  # updates between checkpoints


def count_updates(path: str) -> None:
    """Have every update leave its number in a file, which shows what was done before a kill."""
    file, advance = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), Progress.advance

    def counted(self: Progress, now: Any) -> None:
        os.pwrite(file, b"%08d" % now.update, 0)
        advance(self, now)

    Progress.advance = counted  # type: ignore[method-assign]


def main() -> None:
    written.SIZES = (600, 100, 300)
    if (path := os.environ.get("FIRE_UPDATES")) and os.environ.get("RANK", "0") == "0":
        count_updates(path)
    epochs = 8 if "RANK" not in os.environ else 4
    small = {"parameters": {"n_components": 30, "n_iter": epochs}, "images": {"train": 600, "valid": 100, "test": 300}}
    recipes.QUICK["table1"] = small
    making.CHECKPOINT_EVERY = commands.CHECKPOINT_EVERY = INTERVAL
    images.AT_ONCE, featurefolder.ROWS = 10, 50
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
