"""A learner as a file: for keeping, and for going on after a stop."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from orbitpool import modelfile
from orbitpool.discovery import Discovery
from orbitpool.kernels import choose_device
from orbitpool.learners.checks import at_least, whole
from orbitpool.learners.training import Counters, State
from orbitpool.transforms import LearnedSet, TransformSet
from orbitpool.wholefile import alone

if TYPE_CHECKING:
    from orbitpool.learners.base import Learner

# What may differ between a run and its continuation without changing a bit of it.
FREE = {"n_iter", "verbose", "checkpoint", "checkpoint_every", "device"}


def write(learner: Learner, path: str | os.PathLike[str], state: State, data: str | None = None) -> None:
    """Write a learner in a state; `data` is the fingerprint of what it learns from."""
    modelfile.write(path, *pack(learner, state, data))


def pack(learner: Learner, state: State, data: str | None = None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A learner in a state as JSON and tensors."""
    learner._check()
    counters, tensors = state.pack()
    first = learner.transforms if isinstance(learner.transforms, LearnedSet) else learner._operators
    shapes, operators = modelfile.pack_transforms(first)
    content = {
        "class": type(learner).__name__,
        "parameters": plain_parameters(learner, without="transforms"),
        "transforms": None if learner.transforms is None else shapes,
        "discovery": learner._found and learner._found.to_json(),
        "n_features_in": learner.n_features_in_,
        "feature_names_in": list(getattr(learner, "feature_names_in_", [])),
        "counters": counters,
        "data": data,
    }
    kept = {} if learner.transforms is None else operators
    return content, {**kept, **{f"state.{name}": t for name, t in tensors.items()}}


def unpack(
    content: dict[str, Any], tensors: dict[str, Tensor], classes: dict[str, type[Learner]], device: str
) -> Learner:
    """The learner that `pack` took apart, to work on a device; whatever is wrong with it raises some exception."""
    transforms, found = _poses(content, tensors)
    parameters = revived_parameters(content)
    given = "auto" if found else transforms
    learner = classes[content["class"]](transforms=given, **{**parameters, "device": device})
    learner._check()
    if transforms is None and content["n_features_in"] not in tensors["state.W"].shape:
        raise ValueError(f"n_features_in is {content['n_features_in']}, which its filters are not made for")
    learner._check_width(content["n_features_in"], reset=True, named=False)
    if found:
        learner._use(found)
    if content["feature_names_in"]:
        learner.feature_names_in_ = np.array(content["feature_names_in"], dtype=object)
    state = _state(content, tensors, choose_device(device, None), exact=False)
    _check_tensors(learner, state.tensors)
    learner._adopt(state)
    return learner


def restore(learner: Learner, data: str, device: torch.device) -> State | None:
    """The state in the learner's checkpoint, or None if there is none; refuses one of another run."""
    path = Path(learner.checkpoint)
    if not path.exists():
        return None
    content, tensors = modelfile.read(path)
    with modelfile.understood(path):
        theirs, ours = content["parameters"], plain_parameters(learner, without="transforms")
        kept, found = _poses(content, tensors)
        compared = {
            "class": (content["class"], type(learner).__name__),
            **{name: (theirs.get(name), ours[name]) for name in ours if name not in FREE},
            "transforms": ("auto" if found else kept, learner.transforms),
            "data (shape, type, some rows)": (content["data"], data),
        }
    for name, (there, here) in compared.items():
        if there != here:
            raise ValueError(
                f"checkpoint {path} is of another run: its {name} is {there!r}, here it is {here!r}; "
                "delete the file or give another path"
            )
    with modelfile.understood(path):
        if found:
            learner._use(found)
        _check_tensors(learner, _state(content, tensors, device, exact=False).tensors)
    return _state(content, tensors, device, exact=True)


def _poses(content: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[TransformSet | None, Discovery | None]:
    """The transformations in a file, and how they were found, if they were."""
    kept = None if content["transforms"] is None else modelfile.unpack_transforms(content["transforms"], tensors)
    how = content.get("discovery")
    return kept, Discovery.from_json(how, kept) if kept is not None and how else None


def check_checkpoint(checkpoint: str | os.PathLike[str] | None) -> None:
    """Raise ValueError if a checkpoint cannot be written for want of a folder."""
    folder = None if checkpoint is None else Path(checkpoint).absolute().parent
    if folder is not None and not folder.is_dir():
        raise ValueError(f"checkpoint is {str(checkpoint)!r}, but there is no folder {folder}; create it first")


@contextmanager
def held(checkpoint: str | os.PathLike[str] | None) -> Iterator[None]:
    """Nobody else goes on from a checkpoint, or writes it, at the same time."""
    with nullcontext() if checkpoint is None else alone(checkpoint):
        yield


def _state(content: dict[str, Any], tensors: dict[str, Tensor], device: torch.device, exact: bool) -> State:
    _check_counters(Counters(**content["counters"]))
    own = {name.removeprefix("state."): t for name, t in tensors.items() if name.startswith("state.")}
    return State.unpack(content["counters"], own, device, exact)


def _check_counters(at: Counters) -> None:
    """Raise ValueError for what no run has counted."""
    for name in ("seed", "epoch", "batch", "update", "rows"):
        whole(name, getattr(at, name), least=0)
    for name in ("seconds", "energy"):
        at_least(name, getattr(at, name), 0)
    columns = at.history.values() if isinstance(at.history, dict) else [None]
    if not all(isinstance(c, list) and len(c) == at.epoch and all(isinstance(x, float) for x in c) for c in columns):
        raise ValueError(f"its history is not columns of {at.epoch} numbers")


def _check_tensors(learner: Learner, tensors: dict[str, Tensor]) -> None:
    """Compare a state from a file with one that the learner would start."""
    if learner.n_components not in tensors["W"].shape:
        raise ValueError(f"n_components is {learner.n_components}, but its filters are {tuple(tensors['W'].shape)}")
    start = learner._begin(torch.zeros(2, learner.n_features_in_), torch.Generator().manual_seed(0))
    expected = {name: tuple(t.shape) for name, t in start.items()} | {"sums": (2,)}
    found = {name: tuple(t.shape) for name, t in tensors.items()}
    if found != expected:
        raise ValueError(f"its tensors are {found} where {expected} belong")
    dtype = tensors["sums"].dtype
    double = {name: t.dtype for name, t in start.items() if t.dtype == torch.float64}  # whatever the inputs are
    right = all(t.dtype == double.get(name, dtype) and modelfile.sane(t) for name, t in tensors.items())
    if not right or not dtype.is_floating_point:
        raise ValueError("its tensors are not all finite and of one float type")


def plain_parameters(estimator: Any, without: str) -> dict[str, Any]:
    """The parameters but one as JSON has them."""
    parameters = estimator.get_params(deep=False)
    del parameters[without]
    return {name: _plain(value) for name, value in parameters.items()}


def revived_parameters(content: dict[str, Any]) -> dict[str, Any]:
    """What `plain_parameters` was given, out of a file's content."""
    return {name: _revive(value) for name, value in content["parameters"].items()}


def _plain(value: Any) -> Any:
    if isinstance(value, (os.PathLike, torch.device)):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else None  # a RandomState does not travel


def _revive(value: Any) -> Any:
    """A schedule's epochs are numbers again, and sizes tuples."""
    if isinstance(value, list):
        return tuple(value)
    return {int(key): item for key, item in value.items()} if isinstance(value, dict) else value
