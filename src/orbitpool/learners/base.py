"""What all learners share: the edge where data comes in, training, and the scikit-learn conventions."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from orbitpool import transforms as T
from orbitpool.kernels import choose_device
from orbitpool.learners import files
from orbitpool.learners.checks import whole, within
from orbitpool.learners.progress import Progress
from orbitpool.learners.sources import Batches, Rows, Source, is_stream, working_dtype
from orbitpool.learners.training import Counters, Diverged, State, train

LOOK = 10_000  # rows that a model may see before it starts
WATCHED = 256  # rows on which the history measures what it does not get from the updates
CHUNK = 8192  # rows that are converted and encoded at a time


class Learner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Filters in every pose of a transformation set, learned from minibatches.

    A subclass starts a state, updates it by a batch, encodes and reconstructs; parameters have the paper's letters
    inside, in a dictionary `t`, and scikit-learn's names outside.
    """

    PARAMETERS: ClassVar[dict[str, str]]  # letter: fitted attribute
    n_features_in_: int

    def _begin(self, look: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        """The tensors of a fresh state, from some rows of the data."""
        raise AssertionError("a subclass starts its own state")

    def _update(self, state: State, v: Tensor) -> Tensor:
        """Improve the state by one batch; its squared error a pixel and the activity of its hidden units, (2,)."""
        raise AssertionError("a subclass has its own update")

    def _encode(self, v: Tensor, t: dict[str, Tensor]) -> Tensor:
        """Features, (N, n_features_out)."""
        raise AssertionError("a subclass has its own features")

    def _reconstruct(self, v: Tensor, t: dict[str, Tensor]) -> Tensor:
        """Inputs as the model sees them, (N, D1)."""
        raise AssertionError("a subclass has its own decoder")

    def _advice(self, epoch: int) -> str:
        """What to change when training diverges."""
        raise AssertionError("a subclass knows what makes it diverge")

    def _end_epoch(self, state: State) -> None:
        """Whatever is done once an epoch."""

    def _measure(self, state: State) -> dict[str, float]:
        """More columns of the history: the error on held-out rows, if there are any."""
        if self._held_out is None:
            return {}
        errors = [self._errors(v, state.tensors) for v in torch.split(self._held_out, self._few_rows)]
        return {"validation_error": float(torch.cat(errors).mean())}

    def _check(self) -> None:
        """Raise ValueError for parameters that make no sense."""
        for name in ("n_components", "n_iter", "batch_size", "checkpoint_every", "n_iter_no_change"):
            whole(name, getattr(self, name))
        within("validation_fraction", self.validation_fraction, 0, 1)
        if not isinstance(self.transforms, (T.TransformSet, type(None))):
            raise ValueError(f"transforms is {self.transforms!r}; give a set made by orbitpool.transforms, or None")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn filters.

        Parameters
        ----------
        X : array (N, D1), images (N, H, W) or (N, H, W, C), tensor, memory-mapped array, or iterable of such batches
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        source = self._source(X, reset=True)
        restored = files.restore(self, source) if self.checkpoint else None
        state = restored or self._start(source)
        watched, held_out = source.look(WATCHED, state.at.seed), None
        if self.early_stopping:
            if not isinstance(source, Rows):
                raise ValueError(
                    "early_stopping=True holds rows out of an array; X is an iterable of batches: set it to False"
                )
            source, held_out = source.split(self.validation_fraction, state.at.seed)
        save = files.saver(self, source) if self.checkpoint else None
        self._train(
            state,
            source,
            watched,
            held_out,
            n_iter=self.n_iter,
            patience=self.n_iter_no_change if self.early_stopping else None,
            save=save,
            save_every=self.checkpoint_every,
        )
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go through X once, in its own order, and learn from it; starts a model if there is none yet.

        Parameters
        ----------
        X : as in `fit`
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        before: State | None = getattr(self, "_state", None)
        source = self._source(X, reset=before is None, like=before.tensors["sums"] if before else None)
        state = before or self._start(source)
        self._train(state, source, source.look(WATCHED, state.at.seed), None, n_iter=state.at.epoch + 1, shuffle=False)
        return self

    def _train(self, state: State, source: Source, watched: Tensor, held_out: Tensor | None, **options: Any) -> None:
        self._watched, self._held_out = watched, held_out
        save = options.get("save")
        try:
            with Progress(
                type(self).__name__, options["n_iter"], source.n_batches(self.batch_size), self.verbose
            ) as progress:
                state = train(self, state, source, batch_size=self.batch_size, progress=progress, **options)
        except Diverged as error:
            state = error.state
            if save:
                save(state)
            raise
        finally:
            self._adopt(state)
            del self._watched, self._held_out

    def _start(self, source: Source) -> State:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        generator = torch.Generator(source.device).manual_seed(seed)
        tensors = self._begin(source.look(LOOK, seed), generator)
        tensors["sums"] = torch.zeros(2, dtype=source.dtype, device=source.device)
        return State(tensors, generator, Counters(seed))

    def _adopt(self, state: State) -> None:
        """Make a state the fitted model."""
        self._state = state
        for letter, attribute in self.PARAMETERS.items():
            setattr(self, attribute, state.tensors[letter].detach().cpu().numpy().copy())
        self.history_, self.n_iter_ = state.at.history, state.at.epoch

    def _source(self, X: Any, reset: bool, like: Tensor | None = None) -> Source:
        """Where batches come from, in the float type and on the device of `like`, or else of X."""
        dtype, device = (None, None) if like is None else (like.dtype, like.device)
        if is_stream(X):
            stream = Batches(X, dtype, device or choose_device(self.device, None))
            self._check_width(stream.n_features, reset)
            return stream
        X = self._array(X, reset)
        return Rows(X, dtype or working_dtype(X), device or choose_device(self.device, X))

    def _array(self, X: Any, reset: bool) -> Any:
        """X as (N, D1), a NumPy array or a tensor, checked but not converted."""
        if getattr(X, "ndim", 2) in (3, 4):
            X = X.reshape(len(X), -1)
        if isinstance(X, Tensor):
            if X.ndim != 2 or 0 in X.shape:
                raise ValueError(
                    f"X has shape {tuple(X.shape)}; give (N, features) or images (N, H, W[, C]), none of them 0"
                )
        else:
            mapped = isinstance(X, np.memmap)  # its values are checked batch by batch
            X = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=not mapped)
        self._check_width(X.shape[1], reset)
        return X

    def _check_width(self, n_features: int, reset: bool) -> None:
        if not reset:
            if n_features != self.n_features_in_:
                raise ValueError(
                    f"X has {n_features} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
            return
        self._operators = T.identity((n_features,)) if self.transforms is None else self.transforms
        pixels = prod(self._operators.field_shape)
        if n_features % pixels:
            raise ValueError(
                f"X has {n_features} features a row, but the transformations act on fields of {pixels} pixels, "
                f"{self._operators!r}; give {pixels} times the number of channels"
            )
        self.n_features_in_ = n_features
        self._filter_size = n_features // pixels * prod(self._operators.window_shape)

    @torch.no_grad()
    def _map(self, f: Callable[[Tensor, dict[str, Tensor]], Tensor], X: Any, rows: int = CHUNK) -> Any:
        """F of the parameters and every chunk of rows, as an array of the kind of X."""
        check_is_fitted(self)
        X = self._array(X, reset=False)
        source = Rows(X, working_dtype(X), choose_device(self.device, X))
        t = {
            letter: torch.as_tensor(getattr(self, attribute)).to(source.device, source.dtype)
            for letter, attribute in self.PARAMETERS.items()
        }
        result = torch.cat([f(v, t) for v in source.batches(rows, None, 0)])
        return result.to(X.device) if isinstance(X, Tensor) else result.cpu().numpy()

    @property
    def _few_rows(self) -> int:
        """Rows whose every pose fits into 128 MB."""
        return max(1, 2**25 // (len(self._operators) * (int(self.n_components) + self._filter_size)))

    def transform(self, X: Any) -> Any:
        """Features of X, (N, n_features_out)."""
        return self._map(self._encode, X)

    def reconstruct(self, X: Any) -> Any:
        """X as the model sees it, (N, D1)."""
        return self._map(self._reconstruct, X, self._few_rows)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared error of the reconstruction: higher is better."""
        return -float(self._map(self._errors, X, self._few_rows).mean())

    def _errors(self, v: Tensor, t: dict[str, Tensor]) -> Tensor:
        return (v - self._reconstruct(v, t)).square().mean(1)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model with its transformations and all that `partial_fit` needs to go on; see `orbitpool.load`."""
        check_is_fitted(self)
        files.write(self, path, self._state)
