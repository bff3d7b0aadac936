"""Other readings of the paper's footnote 6, and how well backgrounds agree with published errors.

`PYTHONPATH=src python -m lab.readings --data-dir data` puts noise and photographs behind digits in several ways and
keeps the test error of an RBF-kernel SVM in results/lab/readings.csv. Larochelle et al. (2007) report 14.58 % for their
upright digits on noise, 22.61 % on photographs, and 55.18 % for turned digits on photographs. It takes half an hour.
"""

import argparse
import csv
from contextlib import ExitStack
from math import pi
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from orbitpool.datasets import Dataset, mnist, mnist_variation, move_digits, natural_images, variations

WAYS: dict[str, Any] = {  # digit and background to image
    "where it is brighter": np.maximum,
    "where the digit is black": lambda digit, behind: np.where(digit > 0, digit, behind),
    "where the digit is below a tenth": lambda digit, behind: np.where(digit > 0.1, digit, behind),
    "where the digit is below a half": lambda digit, behind: np.where(digit > 0.5, digit, behind),
    "mixed by the digit": lambda digit, behind: digit + (1 - digit) * behind,
    "added and cut at one": lambda digit, behind: np.minimum(digit + behind, 1),
}


def reread(name: str, reading: str, seed: int, folder: Path | None) -> Dataset:
    """A variation in which *frame* scales the whole image, or *brighter* lets noise show where it is brighter."""
    with ExitStack() as stack:
        if "frame" in reading:
            stack.enter_context(patch.object(variations, "largest_factors", lambda digits: np.ones(len(digits))))
        if "brighter" in reading:
            stack.enter_context(patch.object(variations, "_put", lambda image, behind, _: np.maximum(image, behind)))
        return mnist_variation(name, seed, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/lab/readings.csv"))
    given, rng = parser.parse_args(), np.random.default_rng(0)
    digits = mnist(given.data_dir)
    X, y = np.concatenate([digits.X_train, digits.X_test]), np.concatenate([digits.y_train, digits.y_test])
    some = rng.permutation(len(X))[:17_000]
    upright, y = X[some] / np.float32(255), y[some]
    turned = move_digits("rot", upright, rng.uniform(0, 2 * pi, len(upright)))
    photographs = variations._usable(natural_images(given.data_dir)[0], 28)
    patches, noise = variations._patches(upright.shape, rng, photographs), rng.random(upright.shape, np.float32)
    sets = {
        "upright digits on noise": (upright, noise),
        "upright digits on photographs": (upright, patches),
        "turned digits on photographs": (turned, patches),
    }
    with given.out.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("set", "background shows", "gamma", "error"))
        for name, (image, behind) in sets.items():
            for way, put in WAYS.items():
                for gamma in (0.005, 0.01, 0.02):
                    error = _svm_error(put(image, behind).reshape(len(y), -1), y, gamma)
                    out.writerow((name, way, gamma, f"{error:.2f}"))
                    file.flush()


def _svm_error(Z: Any, y: Any, gamma: float) -> float:
    from sklearn.svm import SVC

    svc = SVC(C=5, gamma=gamma, cache_size=1500).fit(Z[:10_000], y[:10_000])
    return 100 - 100 * float(svc.score(Z[12_000:], y[12_000:]))


if __name__ == "__main__":
    main()
