"""The command line with Table 1 and checkpoints in small, so that it can be killed often: `python -m fire.small …`."""

from orbitpool import cli
from orbitpool.datasets import written
from orbitpool.experiments import making, recipes
from orbitpool.userdata import commands, featurefolder, images

INTERVAL = 20  # updates between checkpoints


def main() -> None:
    written.SIZES = (600, 100, 300)
    small = {"parameters": {"n_components": 30, "n_iter": 8}, "images": {"train": 600, "valid": 100, "test": 300}}
    recipes.QUICK["table1"] = small
    making.CHECKPOINT_EVERY = commands.CHECKPOINT_EVERY = INTERVAL
    images.AT_ONCE, featurefolder.ROWS = 10, 50
    cli.main()


if __name__ == "__main__":
    main()
