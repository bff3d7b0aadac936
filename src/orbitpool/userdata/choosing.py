"""Settings chosen from a user's images: whole or by patches, grey or colour, binary or Gaussian, and which poses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt, pi, prod
from pathlib import Path
from typing import Any

import numpy as np

from orbitpool import transforms as T
from orbitpool.discovery.auto import FEWEST
from orbitpool.discovery.ranges import BUDGET
from orbitpool.experiments.recipes import GAUSSIAN
from orbitpool.images import ConvFeatures
from orbitpool.images.conv import PATCH
from orbitpool.learners import TIRBM, Learner
from orbitpool.progress import say
from orbitpool.transforms.set import by
from orbitpool.userdata.reading import Bytes, load_array

WHOLE = 40  # pixels a side up to which images can be learned whole
PATCHES = 40_000
PLACES = 1000  # patches of an image on average, beyond which not every one is encoded
ALIKE = 4  # of 255, by which the colours of a grey picture may differ, as after compression
POSES_AT_ONCE = 2**25  # numbers, 128 MB


@dataclass(frozen=True)
class Look:
    """What images are like."""

    sizes: Sequence[tuple[int, int]]
    coloured: int
    black_and_white: bool

    @classmethod
    def at(cls, images: Sequence[Bytes]) -> Look:
        """A look at images, (H, W, 3) each."""
        greys = [bool((abs(image[..., :2].astype(np.int16) - image[..., 1:]) <= ALIKE).all()) for image in images]
        return cls([(image.shape[0], image.shape[1]) for image in images], greys.count(False), _is_drawn(images))

    @property
    def whole(self) -> bool:
        """Whether to learn images whole, with binary units: small ones of one size, in black and white."""
        return len(set(self.sizes)) == 1 and max(self.sizes[0]) <= WHOLE and not self.coloured and self.black_and_white

    def in_words(self) -> str:
        """What was seen."""
        small, large = min(self.sizes, key=prod), max(self.sizes, key=prod)
        size = by(small) if small == large else f"{by(small)} to {by(large)}"
        colour = f"{self.coloured:,} of them in colour" if self.coloured else "all grey"
        return f"{len(self.sizes):,} images of {size} pixels, {colour}"


def _is_drawn(images: Sequence[Bytes]) -> bool:
    """Whether pixels are mostly near black or white, as written digits are and photographs are not."""
    levels = np.bincount(np.concatenate([image[..., 0].ravel() for image in images[:1000]]), minlength=256)
    v = np.arange(256) / 255
    return bool((levels * 4 * v * (1 - v)).sum() < 0.5 * levels.sum())


def make_model(look: Look, transforms: str, settings: Mapping[str, Any], seed: int, device: str) -> tuple[Any, str]:
    """A model for such images, not fitted yet, and what was chosen in words."""
    field = look.sizes[0] if look.whole else (PATCH, PATCH)
    poses: Any = "auto" if transforms == "auto" else choose_poses(transforms, field, look.whole)
    number, window = (BUDGET, field) if poses == "auto" else (len(poses), poses.window_shape)
    channels = 3 if look.coloured else 1
    fits = POSES_AT_ONCE // (number * (settings["n_components"] + channels * prod(window)))
    batch = max(1, min(200, fits))
    if look.whole:
        batch = min(batch, 100, max(10, len(look.sizes) // 100))  # a thousand images need many small steps
        learner = TIRBM(transforms=poses, batch_size=batch, device=device, random_state=seed, **settings)
        return learner, f"learning them whole, with binary units; {_trained(learner)}"
    learner = TIRBM(transforms=poses, batch_size=batch, **{**GAUSSIAN, **settings})
    places = float(np.mean([(h - PATCH) * (w - PATCH) for h, w in look.sizes]))
    stride = min(3, max(1, round((places / PLACES) ** 0.5)))
    features = ConvFeatures(learner, n_patches=PATCHES, stride=stride, device=device, random_state=seed)
    return features, (
        f"learning {PATCHES:,} patches of {by(field)} pixels in {'colour' if channels == 3 else 'grey'}, "
        f"with Gaussian units; encoding them {stride} apart, averaged over quadrants; {_trained(learner)}"
    )


def _trained(learner: Learner) -> str:
    poses = "poses to be found" if learner.transforms == "auto" else f"{len(learner.transforms or (None,))} poses"
    return f"{learner.n_components} filters in {poses}, {learner.n_iter} epochs in batches of {learner.batch_size}"


def usual_name(images: int) -> str:
    """The transformations for so many images if nobody names any: found in them if they are enough for that."""
    if images >= FEWEST:
        return "auto"
    say(f"{images} images are too few to find their transformations, {FEWEST} would do: taking combined ones")
    return "combined"


def check_name(name: str) -> None:
    """Raise ValueError for what is neither a name of transformations nor a .npy file."""
    if name not in (*SETS, "auto") and not (name.endswith(".npy") and Path(name).is_file()):
        names = ", ".join(map(repr, ("auto", *SETS)))
        raise ValueError(f"transforms is {name!r}; choose one of {names}, or give a .npy file of matrices (S, D2, D1)")


def choose_poses(name: str, field: tuple[int, int], whole: bool) -> T.TransformSet:
    """The transformations of a name, or those in a .npy file of matrices (S, D2, D1), for a field."""
    check_name(name)
    if name in SETS:
        margin = 4 if min(field) >= 16 else 2
        return SETS[name](field, (field[0] - margin, field[1] - margin), whole)
    matrices, _ = load_array(Path(name))
    window = isqrt(matrices.shape[-2]) if matrices.ndim > 1 else 0
    if matrices.ndim not in (2, 3) or matrices.shape[-1] != prod(field) or window**2 != matrices.shape[-2]:
        raise ValueError(
            f"{name} has shape {matrices.shape}; give (S, D2, D1), where D1 is {by(field)} = {prod(field)} and D2 a "
            "square number"
        )
    try:
        return T.from_matrices(matrices, field, window)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} does not hold transformations: {error}") from error


Pixels = tuple[int, int]
SETS: dict[str, Callable[[Pixels, Pixels, bool], T.TransformSet]] = {
    "combined": lambda field, window, _: T.union(
        T.translations(field, window, stride=2),
        T.scalings(field, window, step=2),
        T.rotations(window, count=5, step=pi / 12, field=field),
    ),
    "rotation": lambda field, window, whole: (
        T.rotations(field, count=16, step=pi / 8) if whole else T.rotations(window, count=5, step=pi / 12, field=field)
    ),
    "translation": lambda field, window, _: T.translations(field, window, stride=2),
    "scaling": lambda field, window, _: T.scalings(field, window, step=2),
    "none": lambda field, *_: T.identity(field),
}
