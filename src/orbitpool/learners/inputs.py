"""Where data comes into a learner: its kind, its shape, and the poses that fit it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data
from torch import Tensor

from orbitpool import transforms as T
from orbitpool.discovery import Discovery
from orbitpool.kernels import choose_device
from orbitpool.learners import checks
from orbitpool.learners.shards import ShardRows, Shards
from orbitpool.learners.sources import Batches, Rows, Source, is_stream, working_dtype


class Inputs(BaseEstimator):  # type: ignore[misc]
    """What a learner knows of its inputs: how many numbers a row has, and the transformations that act on them."""

    n_features_in_: int
    _operators: T.TransformSet
    _found: Discovery | None
    _filter_size: int

    def _source(self, X: Any, reset: bool, like: Tensor | None = None) -> Source:
        """Where batches come from, in the float type and on the device of `like`, or else of X."""
        dtype, device = (None, None) if like is None else (like.dtype, like.device)
        if isinstance(X, Shards):
            shards = ShardRows(X, dtype, device or choose_device(self.device, None))
            self._check_width(shards.n_features, reset, named=False)
            return shards
        if is_stream(X):
            stream = Batches(X, dtype, device or choose_device(self.device, None))
            self._check_width(stream.n_features, reset, named=False)
            return stream
        rows = self._rows(X, reset)
        return Rows(rows.X, dtype or rows.dtype, device or rows.device, rows.checked).resident()

    def _rows(self, X: Any, reset: bool) -> Rows:
        """X as rows of D1 numbers, checked but not converted."""
        checks.rows(X)
        X = self._flat(X, reset)
        mapped = isinstance(X, np.memmap)  # its values are checked batch by batch
        named = not isinstance(X, Tensor)
        if named:
            X = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=not mapped)
        elif X.ndim != 2 or 0 in X.shape:
            shape = tuple(X.shape)
            raise ValueError(f"X has shape {shape}; give (N, features) or images (N, H, W[, C]), none of them 0")
        self._check_width(X.shape[1], reset, named)
        return Rows(X, working_dtype(X), choose_device(self.device, X), checked=named and not mapped)

    def _flat(self, X: Any, reset: bool) -> Any:
        """Images as rows, if X holds images."""
        if getattr(X, "ndim", 2) not in (3, 4):
            return X
        poses = self.transforms if reset else self._operators
        field = poses.field_shape if isinstance(poses, T.TransformSet) else tuple(X.shape[1:3])
        if len(field) == 2 and tuple(X.shape[1:3]) != field:
            raise ValueError(
                f"images have shape {tuple(X.shape[1:])}, but the transformations act on fields of "
                f"{field[0]}×{field[1]} pixels; give (N, {field[0]}, {field[1]}[, C]), channels last"
            )
        return X.reshape(len(X), prod(X.shape[1:]))  # also of no images

    def _check_width(self, n_features: int, reset: bool, named: bool) -> None:
        if not reset:
            if n_features != self.n_features_in_:
                raise ValueError(
                    f"X has {n_features} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
            return
        self._found = None
        self._fit_poses(self.transforms if isinstance(self.transforms, T.TransformSet) else None, n_features)
        if not named and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = n_features

    def _fit_poses(self, transforms: T.TransformSet | None, n_features: int) -> None:
        """Make transformations those of the model, if they fit its inputs; none of them is one pose."""
        self._operators = T.identity((n_features,)) if transforms is None else transforms
        pixels = prod(self._operators.field_shape)
        if n_features % pixels:
            raise ValueError(
                f"X has {n_features} features a row, but the transformations act on fields of {pixels} pixels, "
                f"{self._operators!r}; give {pixels} times the number of channels"
            )
        self._filter_size = n_features // pixels * prod(self._operators.window_shape)
