"""Whether what is fast costs accuracy: `PYTHONPATH=src python -m lab.precision --data-dir data`.

Rows of Tables 1 and 2 as their recipes have them, once by the fast path (products of bfloat16 numbers; Triton on a GPU,
C on a CPU) and once by torch alone in float32. A line of results/lab/precision.csv is one try: the accuracy in
cross-validation on the training (and validation) images, its C, and the seconds it took.
"""

import argparse
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from lab.judging import tried
from lab.keeping import keep
from orbitpool.experiments.recipes import select
from orbitpool.kernels import native, products

COLUMNS = ("row", "filters", "path", "seed", "device", "accuracy", "C", "seconds")
TABLES = {"rot TIRBM": "table1", "TIOMP combined": "table2"}
PRECISION = {"fast": "bfloat16", "torch": "full"}  # of each path


def compared(row: str, filters: int, path: str, seed: int, device: str, data_dir: Path | None) -> tuple[str, ...]:
    """Accuracy, its C, and seconds."""
    recipe, alone, precision = select(TABLES[row], [row])[0], path == "torch", {"precision": PRECISION[path]}
    different = {"parameters": {**recipe.parameters, **precision, "n_components": filters}, "conv": precision}
    functions: Any = dict if alone else native._functions  # none, or those in C
    with (
        patch.object(products, "TRITON", products.TRITON and not alone),
        patch.object(native, "_functions", functions),
    ):
        _, *measured, _ = tried(TABLES[row], row, different, data_dir, device, seed)
    return tuple(measured)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--filters", type=int, help="instead of as many as the recipe has")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/lab/precision.csv"))
    given = parser.parse_args()
    tries = (
        (row, given.filters or select(TABLES[row], [row])[0].parameters["n_components"], path, seed, given.device)
        for row, seed, path in product(given.rows, range(given.seeds), PRECISION)
    )
    keep(given.out, COLUMNS, tries, partial(compared, data_dir=given.data_dir))


if __name__ == "__main__":
    main()
