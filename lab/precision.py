"""Whether rounded products cost accuracy: `PYTHONPATH=src python -m lab.precision --data-dir data`, on a GPU.

Rows of Table 2 as the recipes have them, with the fast path and with float32 throughout, three seeds each: accuracy in
cross-validation on the training images, in results/lab/precision.csv.
"""

import argparse
import csv
from pathlib import Path
from statistics import mean, stdev

from lab.judging import tried
from orbitpool.experiments.recipes import select

ROWS, SEEDS = ("TIOMP combined", "TIRBM combined"), range(3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/lab/precision.csv"))
    given = parser.parse_args()
    with given.out.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("row", "precision", "seed", "accuracy", "seconds"))
        for row in ROWS:
            recipe = select("table2", [row])[0]
            for precision in ("auto", "full"):
                different = {
                    "parameters": {**recipe.parameters, "precision": precision},
                    "conv": {**(recipe.conv or {}), "precision": precision},
                }
                lines = [tried("table2", row, different, given.data_dir, "cuda", seed) for seed in SEEDS]
                out.writerows((row, precision, line[0], line[1], line[3]) for line in lines)
                scores = [float(line[1]) for line in lines]
                print(f"{row}, {precision}: {mean(scores):.2f} ± {stdev(scores):.2f} of {scores}", flush=True)


if __name__ == "__main__":
    main()
