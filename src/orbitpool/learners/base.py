"""What all learners share: the edge where data comes in, training, and the scikit-learn conventions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Self

import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from orbitpool import together
from orbitpool import transforms as T
from orbitpool.discovery import Discovery
from orbitpool.encoders import Encoder
from orbitpool.kernels import undisturbed
from orbitpool.learners import files, finding
from orbitpool.learners.checks import whole, within
from orbitpool.learners.inputs import Inputs
from orbitpool.learners.progress import Progress
from orbitpool.learners.sources import Rows, Source
from orbitpool.learners.training import Counters, Diverged, State, seed_of, train
from orbitpool.modules import OrbitModule, export_onnx

LOOK = 10_000  # rows that a model may see before it starts
WATCHED = 256  # rows on which the history measures what it does not get from the updates
CHUNK = 8192  # rows that are converted and encoded at a time

SEEN = "keep it in a folder that every machine has, under the same path"
Parameters = dict[str, Tensor]  # by the letters of the paper


@dataclass
class Session:
    """What a model may know of the data while it trains."""

    watched: Tensor
    held_out: Rows | None = None
    many: Tensor | None = None  # rows that poses are learned from
    partial: bool = False  # whether only a part of the data is here


class Learner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Inputs):  # type: ignore[misc]
    """Filters in every pose of a transformation set, learned from minibatches.

    A subclass starts a state, updates it by a batch, encodes and reconstructs; parameters have the paper's letters
    inside, in a dictionary `t`, and scikit-learn's names outside. The fitted attributes are for reading: `partial_fit`
    and `save` go on from the state that training left.
    """

    PARAMETERS: ClassVar[dict[str, str]]  # letter: fitted attribute
    STRUCTURE: ClassVar[tuple[str, ...]] = ("n_components", "transforms")  # cannot change once a model is started
    LEARNS_POSES: ClassVar[bool] = False
    REPLAYS: ClassVar[bool] = False  # whether an update is the same operations every time, on the same tensors
    transforms_: T.TransformSet | None  # the poses: those given, what they became, or those found
    discovery_: Discovery | None  # how they were found

    def _begin(self, look: Tensor, generator: torch.Generator) -> Parameters:
        """The tensors of a fresh state, from some rows of the data; the generator is the CPU's on every device."""
        raise AssertionError("a subclass starts its own state")

    def _update(self, state: State, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Improve the state by one batch; its squared error a pixel, activity of hidden units, and mean square."""
        raise AssertionError("a subclass has its own update")

    def _pace(self, epoch: int) -> tuple[float, ...]:
        """The numbers of an update that change with the epoch."""
        return ()

    def _encoder(self, t: Parameters) -> Encoder:
        """How inputs become features."""
        raise AssertionError("a subclass has its own features")

    def _decoder(self, t: Parameters) -> Callable[[Tensor], Tensor]:
        """What turns inputs into the model's view of them, (N, D1) to (N, D1)."""
        raise AssertionError("a subclass has its own decoder")

    def _advice(self, epoch: int) -> str:
        """What to change when training diverges."""
        raise AssertionError("a subclass knows what makes it diverge")

    def _weight_limit(self) -> float:
        """The size of weights beyond which a model is not learning any more."""
        return inf

    def _begin_epoch(self, state: State, v: Tensor) -> None:
        """Whatever is done before an epoch's first batch."""

    def _beside(self, state: State, v: Tensor) -> None:
        """Whatever is done with a batch beside the update."""

    def _place(self, state: State) -> None:
        """Make the poses those of a state, where they are learned."""

    def _end_epoch(self, state: State) -> None:
        """Whatever is done after an epoch's last batch."""

    def _measure(self, state: State) -> dict[str, float]:
        """More columns of the history: the error on held-out rows, if there are any."""
        if self._session.held_out is None:
            return {}
        errors = _each(self._errors(state.tensors), self._session.held_out, self._few_rows)
        return {"validation_error": float(errors.mean())}

    def _check(self) -> None:
        """Raise ValueError for parameters that make no sense."""
        for name in ("n_components", "n_iter", "batch_size", "checkpoint_every", "n_iter_no_change"):
            whole(name, getattr(self, name))
        within("validation_fraction", self.validation_fraction, 0, 1)
        finding.check(self.transforms)
        if isinstance(self.transforms, T.LearnedSet) and not self.LEARNS_POSES:
            raise ValueError(f"{type(self).__name__} learns no poses; give the set that they start from, or use TIRBM")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn filters.

        Parameters
        ----------
        X : array (N, D1), images (N, H, W) or (N, H, W, C), tensor, memory-mapped array, Shards, or iterable of batches
            A list is taken as an array; batches come from a generator (for one epoch), a DataLoader, or the like.
        y : ignored

        Returns
        -------
        self
        """
        return self._fit_found(X, None)

    @undisturbed()
    def _fit_found(self, X: Any, find: Callable[[], Discovery] | None) -> Self:
        """Learn filters; poses that are to be found come from `find`, or if there is none from X."""
        self._check()
        files.check_checkpoint(self.checkpoint)
        with files.held(self.checkpoint):
            self._fit(X, find)
        return self

    def _fit(self, X: Any, find: Callable[[], Discovery] | None) -> None:
        with _kept_whole(self):
            source = self._source(X, reset=True)
            data = source.fingerprint() if self.checkpoint else None
            restored = files.restore(self, data, source.device) if data else None
            together.check_same("the checkpoint", {"there": restored is not None}, way=SEEN)
            seed = restored.at.seed if restored else seed_of(self.random_state)
            held_out = None
            if self.early_stopping:
                if not isinstance(source, Rows):
                    raise ValueError(
                        "early_stopping=True holds rows out of an array; X is an iterable: set it to False"
                    )
                source, held_out = source.split(self.validation_fraction, seed)
            if finding.is_auto(self.transforms) and restored is None:
                self._use(find() if find else finding.find(X, source, seed, self.verbose))
            elif self._found is not None and find is None:
                self._show(lambda: finding.images(X, source, seed))
            state = restored or self._start(source, seed)
        self._train(
            state,
            source,
            Session(source.look(WATCHED, seed), held_out),
            n_iter=self.n_iter,
            patience=self.n_iter_no_change if self.early_stopping else None,
            save=(lambda state: files.write(self, self.checkpoint, state, data)) if data else None,
            save_every=self.checkpoint_every,
        )

    @undisturbed()
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go through X once, in its own order, and learn from it; starts a model if there is none yet.

        Checkpoints and early stopping are for `fit`; here `save` keeps what was learned.

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
        if before is None:
            seed = seed_of(self.random_state)
            if finding.is_auto(self.transforms):
                self._use(finding.find(X, source, seed, self.verbose))
            state = self._start(source, seed)
        else:
            self._check_structure()
            state = before
            state.at.restart_epoch()
            state.tensors["sums"].zero_()
        session = Session(source.look(WATCHED, state.at.seed), partial=True)
        self._train(state, source, session, n_iter=state.at.epoch + 1, shuffle=False)
        return self

    def _use(self, found: Discovery) -> None:
        """Take the poses that were found."""
        self._found = found
        self._fit_poses(found.transforms, self.n_features_in_)

    def _show(self, images: Callable[[], Tensor]) -> None:
        """Give what was found some images (n, C, H, W) for its picture, if it has none: it is out of a file then."""
        if self._found is not None and self._found.examples is None:
            self._found = self.discovery_ = finding.shown(self._found, images())

    def _train(self, state: State, source: Source, session: Session, **options: Any) -> None:
        self._session, save = session, options.get("save")
        self._place(state)
        now = state.at
        together.check_rows("X, or the checkpoint,", session.watched, seed=now.seed, epoch=now.epoch, batch=now.batch)
        together.same_(*(state.tensors[name] for name in sorted(state.tensors)))  # a file has them in any order
        batches = source.n_batches(self.batch_size)
        try:
            with Progress(type(self).__name__, options["n_iter"], batches, self.verbose, state.at) as progress:
                state = train(self, state, source, batch_size=self.batch_size, progress=progress, **options)
        except Diverged as error:
            state = error.state
            if save:
                save(state)
            raise
        finally:
            self._adopt(state)
            del self._session

    def _start(self, source: Source, seed: int) -> State:
        tensors = self._begin(source.look(LOOK, seed), torch.Generator().manual_seed(seed))
        tensors["sums"] = torch.zeros(2, dtype=source.dtype, device=source.device)
        return State(tensors, torch.Generator(source.device).manual_seed(seed), Counters(seed))

    def _adopt(self, state: State) -> None:
        """Make a state the fitted model."""
        self._state = state
        self._place(state)
        self._started_with = {name: getattr(self, name) for name in self.STRUCTURE}
        for letter, attribute in self.PARAMETERS.items():
            setattr(self, attribute, state.tensors[letter].detach().cpu().numpy().copy())
        self.history_, self.n_iter_ = state.at.history, state.at.epoch
        self.transforms_ = None if self.transforms is None else self._operators
        self.discovery_ = self._found

    def _check_structure(self) -> None:
        for name, value in self._started_with.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name} is {getattr(self, name)!r} now, but the model was started with {value!r}; "
                    "set it back, or call fit to start anew"
                )

    @undisturbed()
    @torch.no_grad()
    def _map(
        self,
        make: Callable[[Parameters], Callable[[Tensor], Tensor]],
        X: Any,
        few: bool = False,
        shared: bool = True,
    ) -> Any:
        """What `make` makes of the parameters, applied to some rows at a time, as an array of the kind of X.

        They are `few` where every pose of them is held. Processes that work together share the rows, unless what is
        made depends on the rows before, too.
        """
        check_is_fitted(self)
        self._check()
        source = self._rows(X, reset=False)
        if shared:
            together.check_rows("X", source.X)
        rows = self._few_rows if few else CHUNK
        f = make(self._parameters(source.device, source.dtype))
        result = _each(f, source, rows) if shared else _each_alone(f, source, rows)
        return result.to(source.X.device) if isinstance(source.X, Tensor) else result.cpu().numpy()

    def _parameters(self, device: torch.device, dtype: torch.dtype) -> Parameters:
        return {
            letter: torch.as_tensor(getattr(self, name)).to(device, dtype) for letter, name in self.PARAMETERS.items()
        }

    @property
    def _few_rows(self) -> int:
        """Rows whose every pose fits into 128 MB."""
        return max(1, 2**25 // (len(self._operators) * (int(self.n_components) + self._filter_size)))

    def transform(self, X: Any) -> Any:
        """Features of X, (N, n_features_out)."""
        return self._map(lambda t: self._encoder(t).encode, X)

    def reconstruct(self, X: Any) -> Any:
        """X as the model sees it, (N, D1)."""
        return self._map(self._decoder, X, few=True)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared error of the reconstruction: higher is better."""
        return -float(self._map(self._errors, X, few=True).mean())

    def _errors(self, t: Parameters) -> Callable[[Tensor], Tensor]:
        decode = self._decoder(t)
        return lambda v: (v - decode(v)).square().mean(1)

    def encoder(self, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32) -> Encoder:
        """How the fitted model turns inputs into features, for those who fold it into something larger."""
        check_is_fitted(self)
        self._check()
        return self._encoder(self._parameters(torch.device(device), dtype))

    @undisturbed()
    def to_module(self) -> OrbitModule:
        """`transform` as a float32 layer of a network, (N, D1) to (N, n_features_out), which can be trained there."""
        return OrbitModule(self.encoder())

    def export_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write `transform` as an ONNX file, `input` (N, D1) to `output` (N, n_features_out), both float32."""
        export_onnx(self.to_module(), torch.zeros(1, self.n_features_in_, dtype=torch.float32), path)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_) * (2 if self.two_sided else 1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model with its transformations and all that `partial_fit` needs to go on; see `orbitpool.load`."""
        check_is_fitted(self)
        self._check_structure()
        files.write(self, path, self._state)


@contextmanager
def _kept_whole(model: Learner) -> Iterator[None]:
    """A model that was fitted before stays what it was if something fails."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise


def _each(f: Callable[[Tensor], Tensor], source: Rows, rows: int) -> Tensor:
    """`f` of every row, some rows at a time; processes that work together share them."""
    part = together.part(len(source))
    return part.gather(_each_alone(f, source.part(part.own), rows))


def _each_alone(f: Callable[[Tensor], Tensor], source: Rows, rows: int) -> Tensor:
    return torch.cat([f(v) for v in source.batches(rows, None, 0)])
