"""Sparse coding, against scikit-learn's dictionary learning: as many filters and passes, theirs by the lasso."""

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.decomposition import MiniBatchDictionaryLearning
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.image import extract_patches_2d

from benchmarks.timing import Row, seconds
from orbitpool import TIOMP

K, GAMMA, PASSES = 64, 4, 5


def run() -> Iterator[Row]:
    """Ratios of the time to learn, and of what the learned filters leave of held-out patches."""
    grey = load_sample_image("china.jpg").mean(-1).astype(np.float32) / 255
    X = extract_patches_2d(grey, (8, 8), max_patches=4000, random_state=0).reshape(4000, -1)
    X -= X.mean(1, keepdims=True)
    X /= X.std()
    learn, held_out = X[:3000], X[3000:]
    theirs = MiniBatchDictionaryLearning(
        K, max_iter=PASSES, max_no_improvement=None, tol=0.0, batch_size=256, random_state=0, fit_algorithm="cd",
        transform_algorithm="omp", transform_n_nonzero_coefs=GAMMA,
    )  # fmt: skip
    ours = TIOMP(K, gamma=GAMMA, n_iter=PASSES, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # some patches need more steps than it takes
        own, other = seconds(lambda: ours.fit(learn), lambda: theirs.fit(learn), repeats=5)
    name = f"dictionary of 3000x64, K={K}, {PASSES} passes: over scikit-learn's MiniBatchDictionaryLearning"
    yield Row(name, own / other)
    left = held_out - theirs.transform(held_out) @ theirs.components_
    error = -ours.score(held_out) / float((left**2).mean())
    yield Row(f"the same: squared error of held-out patches by {GAMMA} filters each", error, timed=False)
