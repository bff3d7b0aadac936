"""Try settings and keep what each scored on training data alone: `PYTHONPATH=src python -m lab table2 --data-dir data`.

A line of results/lab/TABLE.csv is one try: the row of the paper's table, what is different from `lab.tries.BASE`, and
the accuracy of the classifier in cross-validation on the training images. Tries that are there are not run again.
"""

import argparse
import json
from pathlib import Path

import torch

from lab.judging import COLUMNS, tried
from lab.keeping import keep
from lab.tries import TRIES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=TRIES)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("results/lab"))
    parser.add_argument(
        "--share", default="0/1", help="i/n: every n-th try from the i-th on, for processes side by side"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no try after this time")
    given = parser.parse_args()
    first, step = map(int, given.share.split("/"))
    tries = {
        (row, json.dumps(different, sort_keys=True)): different for row, different in TRIES[given.table][first::step]
    }

    def run(row: str, words: str) -> tuple[int, str, str, str, str]:
        return tried(given.table, row, tries[row, words], given.data_dir, given.device)

    keep(given.out / f"{given.table}.csv", COLUMNS, tries, run, given.seconds)


if __name__ == "__main__":
    main()
