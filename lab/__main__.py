"""Try settings and keep what each scored on training data alone: `PYTHONPATH=src python -m lab table2 --data-dir data`.

A line of results/lab/TABLE.csv is one try: the row of the paper's table, what is different from `lab.tries.BASE`, and
the accuracy of the classifier in cross-validation on the training images. Tries that are there are not run again.
"""

import argparse
import csv
import json
from pathlib import Path
from time import perf_counter

import torch

from lab.judging import COLUMNS, tried
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
    path, start = given.out / f"{given.table}.csv", perf_counter()
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {(r["row"], r["different"]) for r in csv.DictReader(path.open())} if path.exists() else set()
    with path.open("a", newline="") as file:
        out = csv.writer(file)
        if not path.stat().st_size:
            out.writerow(COLUMNS)
        for row, different in TRIES[given.table][first::step]:
            words = json.dumps(different, sort_keys=True)
            if (row, words) in done or perf_counter() - start > given.seconds:
                continue
            line = (row, words, *tried(given.table, row, different, given.data_dir, given.device))
            out.writerow(line)
            file.flush()
            print(*line, sep="  ", flush=True)


if __name__ == "__main__":
    main()
