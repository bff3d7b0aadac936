"""Sets out of other sets, out of matrices, and out of any linear function of an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from orbitpool.excerpt import excerpt
from orbitpool.transforms.families import as_shape
from orbitpool.transforms.learned import LearnedSet
from orbitpool.transforms.set import Shape, TransformSet, by, stack


def union(*sets: TransformSet) -> TransformSet:
    """All transformations of all sets in order, each once, under the label it had first."""
    if not sets:
        raise ValueError("union got 0 sets; give at least one")
    _check_sets(*sets)
    field, window = sets[0].field_shape, sets[0].window_shape
    for other in sets[1:]:
        if (other.field_shape, other.window_shape) != (field, window):
            raise ValueError(
                f"a set of {by(other.field_shape)} → {by(other.window_shape)} cannot join one of {by(field)} → "
                f"{by(window)}; build both for the same field and window"
            )
    kept: dict[bytes, tuple[Any, str]] = {}
    for each in sets:
        for matrix, label in zip(each.matrices(), each.labels, strict=True):
            kept.setdefault(_key(matrix), (matrix, label))
    matrices, labels = zip(*kept.values(), strict=True)
    return stack(matrices, field, window, labels).to(sets[0].device, sets[0].dtype)


def compose(outer: TransformSet, inner: TransformSet) -> TransformSet:
    """Every product T_o T_i, first `inner`, then `outer`, with the outer index running faster."""
    _check_sets(outer, inner)
    if outer.field_shape != inner.window_shape:
        raise ValueError(
            f"the inner set ends in {by(inner.window_shape)} but the outer one starts from {by(outer.field_shape)}; "
            "the two must agree"
        )
    matrices = [T_o @ T_i for T_i, T_o in product(inner.matrices(), outer.matrices())]
    steps = product(inner.labels, outer.labels)
    labels = [", then ".join(name for name in step if name != "identity") or "identity" for step in steps]
    return stack(matrices, inner.field_shape, outer.window_shape, labels).to(inner.device, inner.dtype)


def from_matrices(
    matrices: ArrayLike,
    field: int | Sequence[int] | None = None,
    window: int | Sequence[int] | None = None,
    labels: Sequence[str] | None = None,
) -> TransformSet:
    """A set from dense matrices, (S, D2, D1) or one (D2, D1).

    Parameters
    ----------
    matrices : array
        What is done to one channel.
    field, window : int or sequence of int, optional
        Shapes of D1 and D2 pixels; sequences of that length if not given.
    labels : sequence of str, optional
        One for each matrix; numbered if not given.
    """
    if np.iscomplexobj(matrices):
        raise ValueError("matrices are complex; transformations have real weights")
    T = np.asarray(matrices, dtype=np.float64)
    T = T[None] if T.ndim == 2 else T
    if T.ndim != 3 or 0 in T.shape:
        raise ValueError(f"matrices have shape {T.shape}; give (S, D2, D1) with at least one matrix")
    bad = ~np.isfinite(T).all((1, 2))
    if bad.any():
        raise ValueError(f"matrix {int(bad.argmax())} holds NaN or infinity; every weight must be finite")
    names = [f"matrix {s}" for s in range(len(T))] if labels is None else list(map(str, labels))
    if len(names) != len(T) or isinstance(labels, str):
        raise ValueError(f"{len(names)} labels for {len(T)} matrices; give a list with one label for each")
    to = _shape_of("window", window, T.shape[1])
    around = _shape_of("field", field, T.shape[2])
    return stack([scipy.sparse.csr_array(M) for M in T], around, to, names)


def from_function(
    f: Callable[[NDArray[np.float64]], ArrayLike],
    field: int | Sequence[int],
    window: int | Sequence[int],
    label: str | None = None,
) -> TransformSet:
    """A set of one from any linear function of an image, by asking it about every pixel.

    Parameters
    ----------
    f : callable
        Takes an array of the field's shape and returns one of the window's.
    field, window : int or sequence of int
        The two shapes.
    label : str, optional
        The function's name if not given.
    """
    around, to = as_shape("field", field, (1, 2)), as_shape("window", window, (1, 2))

    def ask(image: NDArray[np.float64]) -> NDArray[np.float64]:
        given = f(image)
        answer = np.array(given if np.isrealobj(given) else np.nan, dtype=np.float64)
        if answer.shape != to:
            raise ValueError(f"the function returned shape {answer.shape}; a window of {by(to)} needs {to}")
        return answer.ravel()

    columns = [ask(pixel.reshape(around)) for pixel in np.eye(prod(around))]
    T = np.stack(columns, axis=1)
    _check_linear(ask, T, around)
    return from_matrices(T, around, to, [label or str(getattr(f, "__name__", "function"))])


def _check_sets(*sets: TransformSet) -> None:
    for each in sets:
        if not isinstance(each, TransformSet):
            raise TypeError(f"{excerpt(each)} is a {type(each).__name__}; give sets made by orbitpool.transforms")
        if isinstance(each, LearnedSet):
            raise TypeError(
                f"{excerpt(each)} learns its poses; make one set of what they start from first, then `learned`"
            )


def _check_linear(
    ask: Callable[[NDArray[np.float64]], NDArray[np.float64]], T: NDArray[np.float64], field: Shape
) -> None:
    """Compare the function with its matrix where a non-linear one would give itself away."""
    rng = np.random.default_rng(0)
    probes = [np.zeros(prod(field)), *(scale * rng.normal(size=prod(field)) for scale in (0.1, 1, 10, 1e4))]
    for x in [*probes, rng.uniform(size=prod(field))]:
        error = np.abs(ask(x.reshape(field)) - T @ x).max()
        allowed = 1e-5 * (np.abs(T) @ np.abs(x)).max()
        if not error <= allowed:
            raise ValueError(
                f"the function is not linear: it is off by {error:.3g} from the sum of its answers to single pixels, "
                f"where {allowed:.3g} is allowed; leave out clipping, rounding, offsets and normalisation"
            )


def _key(matrix: Any) -> bytes:
    """The same for operators that are the same to six decimals."""
    rounded = matrix.copy()
    rounded.data = rounded.data.round(6)
    rounded.eliminate_zeros()
    rounded.sort_indices()
    return b"".join(part.tobytes() for part in (rounded.indptr, rounded.indices, rounded.data))


def _shape_of(name: str, shape: int | Sequence[int] | None, pixels: int) -> Shape:
    found = (pixels,) if shape is None else as_shape(name, shape, (1, 2))
    if prod(found) != pixels:
        raise ValueError(
            f"{name} {by(found)} has {prod(found)} pixels but the matrices have {pixels}; the two must agree"
        )
    return found
