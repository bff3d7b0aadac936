"""A learner as a file: for keeping, and for going on after a stop."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from orbitpool import modelfile
from orbitpool.kernels import choose_device
from orbitpool.learners.training import State

if TYPE_CHECKING:
    from orbitpool.learners.base import Learner
    from orbitpool.learners.sources import Source

# What may differ between a run and its continuation without changing a bit of it.
FREE = {"n_iter", "verbose", "checkpoint", "checkpoint_every", "device"}


def write(learner: Learner, path: str | os.PathLike[str], state: State, data: str | None = None) -> None:
    """Write a learner in a state; `data` is the fingerprint of what it learns from."""
    counters, tensors = state.pack()
    shapes, operators = modelfile.pack_transforms(learner._operators)
    content = {
        "class": type(learner).__name__,
        "parameters": _plain_parameters(learner),
        "transforms": None if learner.transforms is None else shapes,
        "n_features_in": learner.n_features_in_,
        "feature_names_in": list(getattr(learner, "feature_names_in_", [])),
        "counters": counters,
        "data": data,
    }
    kept = {} if learner.transforms is None else operators
    modelfile.write(path, content, {**kept, **{f"state.{name}": t for name, t in tensors.items()}})


def read(path: str | os.PathLike[str], classes: dict[str, type[Learner]]) -> Learner:
    """The learner that a file holds."""
    content, tensors = modelfile.read(path)
    try:
        known = classes[content["class"]]
        shapes = content["transforms"]
        transforms = None if shapes is None else modelfile.unpack_transforms(shapes, tensors)
        learner = known(transforms=transforms, **content["parameters"])
        learner._check()
        learner._check_width(content["n_features_in"], reset=True)
        if content["feature_names_in"]:
            learner.feature_names_in_ = np.array(content["feature_names_in"], dtype=object)
        state = _state(content, tensors, choose_device(learner.device, None))
        learner._adopt(state)
    except modelfile.ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise modelfile.ModelFileError(f"{path} is not a model that this version understands: {error!r}") from error
    expected = (learner.n_components, learner._filter_size)
    if learner.components_.shape != expected:
        raise modelfile.ModelFileError(
            f"{path} holds filters of shape {learner.components_.shape} where {expected} belong"
        )
    return learner


def restore(learner: Learner, source: Source) -> State | None:
    """The state in the learner's checkpoint, or None if there is none; refuses one of another run."""
    path = Path(learner.checkpoint)
    if not path.exists():
        return None
    content, tensors = modelfile.read(path)
    theirs, ours = content["parameters"], _plain_parameters(learner)
    differing = [name for name in ours if name not in FREE and theirs.get(name) != ours[name]]
    same_operators = (
        content["transforms"] is None
        if learner.transforms is None
        else (
            content["transforms"] is not None
            and modelfile.unpack_transforms(content["transforms"], tensors) == learner.transforms
        )
    )
    found = {
        "class": (content["class"], type(learner).__name__),
        **{name: (theirs.get(name), ours[name]) for name in differing},
        "transforms": ("another set", learner.transforms) if not same_operators else (0, 0),
        "data": (content["data"], source.fingerprint()),
    }
    for name, (there, here) in found.items():
        if there != here:
            raise ValueError(
                f"checkpoint {path} is of another run: its {name} is {there!r}, here it is {here!r}; "
                "delete the file or give another path"
            )
    return _state(content, tensors, source.device)


def saver(learner: Learner, source: Source) -> Callable[[State], None]:
    """What writes a state to the learner's checkpoint."""
    data = source.fingerprint()
    return lambda state: write(learner, learner.checkpoint, state, data)


def _state(content: dict[str, Any], tensors: dict[str, torch.Tensor], device: torch.device) -> State:
    own = {name.removeprefix("state."): t for name, t in tensors.items() if name.startswith("state.")}
    return State.unpack(content["counters"], own, device)


def _plain_parameters(learner: Learner) -> dict[str, Any]:
    """The parameters as JSON has them."""
    parameters = learner.get_params(deep=False)
    del parameters["transforms"]
    return {name: _plain(value) for name, value in parameters.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if isinstance(value, (str, int, float, bool, type(None))) else None  # a RandomState does not travel
