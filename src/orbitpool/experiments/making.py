"""Estimators as recipes name them, and estimators in words that a file can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orbitpool import transforms
from orbitpool.experiments.baselines import BASELINES
from orbitpool.experiments.recipe import Recipe, Spec
from orbitpool.learners import TIOMP, TIRBM, Learner
from orbitpool.learners.around import to_the_end
from orbitpool.progress import is_shown
from orbitpool.transforms import TransformSet

LEARNERS = {"TIRBM": TIRBM, "TIOMP": TIOMP, **BASELINES}
CHECKPOINT_EVERY = 5000  # updates
IRRELEVANT = {"device", "random_state", "verbose", "checkpoint", "checkpoint_every"}  # to what a result is
LATER = {
    "poses": "pool",
    "output": "flat",
    "mirror": False,
}  # parameters that results from before do without, which had these values


def build_transforms(spec: Spec) -> Any:
    """The transformation set that a recipe names, or "auto"."""
    name, arguments = spec
    if name == "learned":
        return transforms.learned(build_transforms(arguments["start"]), **arguments["how"])
    if name == "auto":
        return name
    if name in ("union", "compose"):
        return getattr(transforms, name)(*(build_transforms(each) for each in arguments["sets"]))
    made: TransformSet = getattr(transforms, name)(**arguments)
    return made


def make_learner(recipe: Recipe, seed: int, device: str, checkpoint: Path | None = None) -> Any:
    """The learner of a row, or None if it has none."""
    if recipe.learner is None:
        return None
    poses = {} if recipe.transforms is None else {"transforms": build_transforms(recipe.transforms)}
    learner = LEARNERS[recipe.learner](random_state=seed, device=device, **poses, **recipe.parameters)
    if isinstance(learner, Learner):
        learner.set_params(checkpoint=checkpoint, checkpoint_every=CHECKPOINT_EVERY, verbose=is_shown())
    return learner


def fit(features: Any, X: Any) -> Any:
    """Learn to the end."""
    return to_the_end(lambda: features.fit(X))


def in_words(value: Any) -> Any:
    """An estimator as its class and parameters; transformations as they describe themselves."""
    if hasattr(value, "get_params"):
        parameters = {name: in_words(v) for name, v in value.get_params(deep=False).items() if name not in IRRELEVANT}
        return {"class": type(value).__name__, **{n: v for n, v in parameters.items() if (n, v) not in LATER.items()}}
    return [repr(value), *value.labels] if isinstance(value, TransformSet) else value
