"""What features around a learner share: they are one model in one file, the learner inside."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from orbitpool import modelfile
from orbitpool.learners import files
from orbitpool.learners.base import Learner


class AroundLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer with a parameter `learner` and, once fitted, `learner_` and the arrays named in FITTED."""

    FITTED: ClassVar[tuple[str, ...]]
    learner: Learner | None
    learner_: Learner | None
    n_features_in_: int

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model with its learner; see `orbitpool.load`."""
        check_is_fitted(self)
        modelfile.write(path, *self.pack())

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The model with its learner as JSON and tensors."""
        if not isinstance(self.learner_, (Learner, type(None))):
            name = type(self.learner_).__name__
            raise ValueError(f"a {name} cannot be written to a file; only a TIRBM, TIAutoencoder or TIOMP can")
        self._check()
        self._check_fitted()
        inner, tensors = (None, {}) if self.learner_ is None else files.pack(self.learner_, self.learner_._state)
        content = {
            "class": type(self).__name__,
            "parameters": files.plain_parameters(self, without="learner"),
            "n_features_in": self.n_features_in_,
            "learner": inner,
        }
        fitted = {name: torch.as_tensor(getattr(self, name)) for name in self.FITTED}
        return content, tensors | fitted

    @classmethod
    def unpack(
        cls, content: dict[str, Any], tensors: dict[str, Tensor], classes: dict[str, type[Learner]], device: str
    ) -> Self:
        """The model that `save` wrote, to work on a device."""
        inner = None if content["learner"] is None else files.unpack(content["learner"], tensors, classes, device)
        parameters = {**files.revived_parameters(content), "device": device}
        model = cls(learner=None if inner is None else clone(inner), **parameters)
        model._check()
        model.learner_, model.n_features_in_ = inner, content["n_features_in"]
        for name in cls.FITTED:
            if not modelfile.sane(tensors[name]):
                raise ValueError(f"its {name} is not finite")
            setattr(model, name, tensors[name].numpy())
        model._check_fitted()
        return model

    def _check(self) -> None:
        """Raise ValueError for parameters that make no sense."""
        raise AssertionError("a subclass checks its own parameters")

    def _check_fitted(self) -> None:
        """Raise ValueError if fitted attributes contradict each other."""
        raise AssertionError("a subclass checks what it has learned")


def to_the_end(learn: Callable[[], Any]) -> Any:
    """The model that is learned; a user who interrupts that does not want to go on with half of one."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "training was interrupted")
        model = learn()
    if _interrupted(model):
        raise KeyboardInterrupt
    return model


def _interrupted(model: Any) -> bool:
    """Whether a user ended the learning of a fitted learner, or of one inside features, before its last epoch."""
    layers = [getattr(model, name) for name in ("first_", "second_") if hasattr(model, name)]
    if layers:
        return any(map(_interrupted, layers))
    learner = getattr(model, "learner_", model)
    if not isinstance(learner, Learner) or learner.early_stopping:
        return False
    return bool(learner.n_iter_ < learner.n_iter)
