"""Features that stay the same when the input is moved, turned or scaled a little."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orbitpool import datasets, discovery, images, kernels, modules, orbit, speech, transforms
    from orbitpool.classifiers import LinearSVM, SoftmaxRegression
    from orbitpool.discovery import discover, learn_transforms
    from orbitpool.images import ConvFeatures, Stack
    from orbitpool.learners import TIOMP, TIRBM, Diverged, Shards, TIAutoencoder
    from orbitpool.modelfile import ModelFileError
    from orbitpool.models import load
    from orbitpool.speech import SpeechFeatures
    from orbitpool.transforms import TransformSet

__all__ = [
    "TIOMP",
    "TIRBM",
    "ConvFeatures",
    "Diverged",
    "LinearSVM",
    "ModelFileError",
    "Shards",
    "SoftmaxRegression",
    "SpeechFeatures",
    "Stack",
    "TIAutoencoder",
    "TransformSet",
    "datasets",
    "discover",
    "discovery",
    "images",
    "kernels",
    "learn_transforms",
    "load",
    "modules",
    "orbit",
    "speech",
    "transforms",
]
__version__ = "0.1.0"

# Names are fetched when they are first used, so that `orbitpool --help` need not wait for torch.
_HOMES = {
    "ConvFeatures": "images",
    "Diverged": "learners",
    "LinearSVM": "classifiers",
    "ModelFileError": "modelfile",
    "Shards": "learners",
    "SoftmaxRegression": "classifiers",
    "SpeechFeatures": "speech",
    "Stack": "images",
    "TIAutoencoder": "learners",
    "TIOMP": "learners",
    "TIRBM": "learners",
    "TransformSet": "transforms",
    "discover": "discovery",
    "learn_transforms": "discovery",
    "load": "models",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'orbitpool' has no attribute {name!r}")
    home = import_module(f"orbitpool.{_HOMES.get(name, name)}")
    return getattr(home, name) if name in _HOMES else home


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
