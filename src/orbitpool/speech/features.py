"""SpeechFeatures: a learner on patches of frames, averaged over the parts of a segment (section 5.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from orbitpool.excerpt import excerpt
from orbitpool.learners import Learner
from orbitpool.learners.around import AroundLearner
from orbitpool.learners.checks import one_of, whole
from orbitpool.learners.training import seed_of
from orbitpool.progress import counted
from orbitpool.speech.mfcc import SIZE, Frames
from orbitpool.speech.parts import n_pooled, pool
from orbitpool.speech.recordings import Recording, Segment, segment

FLAT = 1e-3  # standard deviations below this count as this


class SpeechFeatures(AroundLearner):
    """Features of segments of sound from a learner of patches of frames.

    `fit` takes all recordings that the segments belong to, standardises their 39 cepstral coefficients, and fits a
    clone of the learner to patches of contiguous frames. `transform` encodes the patch around every frame (the first
    and last frame repeated at the ends) and averages over five parts of each segment; see `orbitpool.speech.parts`.

    Parameters
    ----------
    learner : Learner or None
        A TIRBM, TIAutoencoder or TIOMP, with `transforms.time_shifts` or without; None gives the cepstra alone.
    frames : int
        Length of a patch.
    n_patches : int
        Random patches to learn from at most.
    normalize : {"global", "speaker"}
        Frames less their mean, over their standard deviation: those of all that was given to `fit`, or the speaker's
        own, from the recordings at hand, also in `transform`.
    with_mfcc : bool
        Whether the averaged cepstra stand beside the learner's features.
    device : str
        "auto" takes a GPU if there is one.
    random_state : int, RandomState or None
        For the choice of patches, and for the learner if it has none of its own.

    Attributes
    ----------
    learner_ : Learner or None
        The fitted clone.
    mean_, scale_ : array (39,)
        What frames are standardised by.
    """

    FITTED: ClassVar = ("mean_", "scale_")

    def __init__(
        self,
        learner: Learner | None = None,
        *,
        frames: int = 11,
        n_patches: int = 400_000,
        normalize: Literal["global", "speaker"] = "global",
        with_mfcc: bool = False,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.frames = frames
        self.n_patches = n_patches
        self.normalize = normalize
        self.with_mfcc = with_mfcc
        self.device = device
        self.random_state = random_state

    def fit(self, X: Sequence[Segment], y: Any = None) -> Self:
        """Learn filters from the recordings that hold the segments.

        Parameters
        ----------
        X : N segments
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        recordings = list(_by_recording(X))
        self.mean_, self.scale_ = _moments(recordings)
        self.n_features_in_ = len(self.mean_)
        self.learner_ = None if self.learner is None else self._learned(recordings)
        return self

    def _learned(self, recordings: list[Recording]) -> Learner:
        """A clone of the learner, fitted to random patches."""
        seed = seed_of(self.random_state)
        normal = self._normalized(recordings).values()
        starts = np.cumsum([0, *map(len, normal)])
        order = torch.randperm(int(starts[-1]), generator=torch.Generator().manual_seed(seed)).numpy()
        chosen = np.sort(order[: self.n_patches])
        rows = np.split(chosen, chosen.searchsorted(starts[1:-1]))
        patches = [
            patches_of(frames, self.frames, part - start)
            for frames, part, start in zip(normal, rows, starts[:-1], strict=True)
            if len(part)
        ]
        learner: Learner = clone(self.learner)
        if learner.random_state is None:
            learner.set_params(random_state=seed)
        learner.set_params(device=self.device)
        return learner.fit(np.concatenate(patches))

    def transform(self, X: Sequence[Segment]) -> NDArray[np.float32]:
        """Features of N segments, (N, 5 F + 1): F of the learner, then 39 cepstra if asked for, for each part."""
        check_is_fitted(self)
        self._check()
        groups = _by_recording(X)
        normal = self._normalized(list(groups))
        result = np.empty((len(X), self._n_features_out), np.float32)
        for recording, found in counted(groups.items(), "encode", "recordings"):
            result[list(found)] = pool(self._encoded(normal[recording]), list(found.values()))
        return result

    def _encoded(self, frames: Frames) -> NDArray[Any]:
        """Features of every frame, (T, F)."""
        if self.learner_ is None:
            return frames
        encoded = self.learner_.transform(patches_of(frames, self.frames))
        return np.concatenate([encoded, frames], axis=1) if self.with_mfcc else encoded

    def _normalized(self, recordings: list[Recording]) -> dict[Recording, Frames]:
        """Standardised frames (T, 39) of each recording; one without a speaker is a speaker of its own."""
        if self.normalize == "global":
            return {r: (r.frames - self.mean_) / self.scale_ for r in recordings}
        spoken: dict[str, list[Recording]] = {}
        for r in recordings:
            spoken.setdefault(r.speaker or r.name, []).append(r)
        return {r: (r.frames - mean) / scale for own in spoken.values() for mean, scale in [_moments(own)] for r in own}

    def _check(self) -> None:
        if not isinstance(self.learner, (Learner, type(None))):
            raise ValueError(f"learner is {self.learner!r}; give a TIRBM, TIAutoencoder or TIOMP, or None for cepstra")
        for name in ("frames", "n_patches"):
            whole(name, getattr(self, name))
        one_of("normalize", self.normalize, ("global", "speaker"))
        one_of("with_mfcc", self.with_mfcc, (False, True))
        transforms = None if self.learner is None else self.learner.transforms
        if transforms is not None and getattr(transforms, "field_shape", None) != (self.frames,):
            raise ValueError(
                f"frames is {self.frames}, but {transforms!r} acts on others; "
                f"give transforms.time_shifts({self.frames}, …)"
            )

    def _check_fitted(self) -> None:
        inner = None if self.learner_ is None else self.learner_.n_features_in_
        found = self.n_features_in_, self.mean_.shape, self.scale_.shape, inner
        if found != (SIZE, (SIZE,), (SIZE,), None if inner is None else self.frames * SIZE):
            raise ValueError(f"its sizes are {found} for patches of {self.frames} frames of {SIZE} numbers")
        if self.scale_.min() < FLAT / 2 or max(self.scale_.max(), abs(self.mean_).max()) > 1e6:
            raise ValueError("its mean and scale are not those of cepstra")

    @property
    def _n_features_out(self) -> int:
        cepstra = self.n_features_in_ if self.learner_ is None or self.with_mfcc else 0
        return n_pooled(cepstra + (0 if self.learner_ is None else int(self.learner_._n_features_out)))


def patches_of(frames: Frames, length: int, rows: Any = slice(None)) -> Frames:
    """The patch around each frame (or those in `rows`), (N, length F), from (T, F); the end frames are repeated."""
    before = (length - 1) // 2
    padded = np.pad(frames, ((before, length - 1 - before), (0, 0)), mode="edge")
    windows: Frames = np.lib.stride_tricks.sliding_window_view(padded, length, axis=0)[rows]
    return windows.swapaxes(1, 2).reshape(len(windows), -1)


def _by_recording(X: Sequence[Segment]) -> dict[Recording, dict[int, Segment]]:
    """The segments of each recording by their places in X; raises ValueError for what is no segment."""
    if not isinstance(X, Sequence) or isinstance(X, str):
        raise ValueError(f"X is a {type(X).__name__}; give a list of speech.Segment(recording, start, end)")
    groups: dict[Recording, dict[int, Segment]] = {}
    for place, each in enumerate(X):
        if not isinstance(each, Segment) or not isinstance(each.recording, Recording):
            kind = excerpt(each)
            raise ValueError(f"X[{place}] is {kind}; give speech.Segment(recording, start, end) of a speech.Recording")
        groups.setdefault(each.recording, {})[place] = segment(*each, where=f"X[{place}]")
    if not groups:
        raise ValueError("X holds 0 segments; give at least one")
    return groups


def _moments(recordings: list[Recording]) -> tuple[Frames, Frames]:
    """Mean and standard deviation of each coefficient, (39,) each."""
    frames = np.concatenate([r.frames for r in recordings])
    mean, deviation = frames.mean(0, dtype=np.float64), frames.std(0, dtype=np.float64)
    return mean.astype(np.float32), np.maximum(deviation, FLAT).astype(np.float32)
