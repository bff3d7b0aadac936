"""Other readings of the paper's footnote 6, and how well backgrounds agree with published errors.

`PYTHONPATH=src python -m lab.readings --data-dir data` puts noise and photographs behind upright digits in several ways
and prints the error of an RBF-kernel SVM, which Larochelle et al. (2007) report for their own: 14.58 % with noise and
22.61 % with photographs.
"""

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from orbitpool.datasets import Dataset, mnist, mnist_variation, natural_images, variations

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
    from sklearn.svm import SVC

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    folder, rng = parser.parse_args().data_dir, np.random.default_rng(0)
    digits = mnist(folder)
    some = rng.permutation(len(digits.X_train))[:15_000]
    X, y = digits.X_train[some] / np.float32(255), digits.y_train[some]
    photographs = variations._usable(natural_images(folder)[0], 28)
    grounds = {"noise": rng.random(X.shape, np.float32), "photographs": variations._patches(X.shape, rng, photographs)}
    for ground, behind in grounds.items():
        for way, put in WAYS.items():
            Z = put(X, behind).reshape(len(X), -1)
            errors = [100 - 100 * _svm(SVC(C=5, gamma=gamma), Z, y) for gamma in (0.01, 0.02, 0.03)]
            print(f"{ground:<12} {way:<34} {min(errors):6.2f} %", flush=True)


def _svm(svc: Any, Z: Any, y: Any) -> float:
    return float(svc.fit(Z[:10_000], y[:10_000]).score(Z[10_000:], y[10_000:]))


if __name__ == "__main__":
    main()
