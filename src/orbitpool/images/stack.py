"""Stack: features of features, learned layer by layer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from orbitpool import modelfile
from orbitpool.images.conv import ConvFeatures
from orbitpool.images.patches import as_images
from orbitpool.kernels import choose_device
from orbitpool.learners import Learner
from orbitpool.learners.checks import one_of, whole
from orbitpool.learners.training import seed_of

OWN = ("both", "n_images")  # parameters that a file keeps
MAPS = 2**27  # numbers in maps at a time


class Stack(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features of the maps that features of images make: the second layer learns from what the first one gives.

    Each layer learns by itself, from the bottom up, and without labels. The transformations of the second act on maps
    of the first: `transforms.translations(3, 2)`, say, on places of a map, or `transforms.turned_maps`, which turns
    poses with places, if the first layer keeps its poses. A stack with `output="map"` above can be the first layer of
    another one.

    Parameters
    ----------
    first : ConvFeatures or Stack
        With `output="map"`.
    second : ConvFeatures
        Takes maps (N, grid, grid, features of a patch).
    both : bool
        Whether features of the first layer, averaged over the second one's grid, stand before those of the second.
    n_images : int or None
        Images, chosen at random, from whose maps the second layer learns; None for all, whose maps must fit into
        memory together.
    device : str
        Of both layers: "auto" takes a tensor's own device, else a GPU if there is one.
    random_state : int, RandomState or None
        For the choice of images, and for layers that have none of their own.

    Attributes
    ----------
    first_, second_ : ConvFeatures or Stack
        The fitted clones.
    """

    first_: ConvFeatures | Stack
    second_: ConvFeatures

    def __init__(
        self,
        first: ConvFeatures | Stack,
        second: ConvFeatures,
        *,
        both: bool = False,
        n_images: int | None = None,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.first = first
        self.second = second
        self.both = both
        self.n_images = n_images
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the first layer from images, and the second one from their maps.

        Parameters
        ----------
        X : as in `ConvFeatures`
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        seed = seed_of(self.random_state)
        first, second = (self._layer(layer, seed) for layer in (self.first, self.second))
        self.first_ = first.fit(X)
        self.n_features_in_ = first.n_features_in_
        self.second_ = second.fit(self._maps(self._some(X, seed)))
        return self

    def _maps(self, X: Any) -> Tensor:
        """What the first layer makes of images, where it is worked on."""
        return torch.cat([torch.as_tensor(self.first_.transform(part)) for part in self._parts(X, self._few)])

    def transform(self, X: Any) -> Any:
        """Features of the second layer, or of both, (N, n_features_out), or maps of them."""
        check_is_fitted(self)
        home = X.device if isinstance(X, Tensor) else torch.device("cpu")
        features = torch.cat([self._features(part).to(home) for part in self._parts(X, self._few)])
        return features if isinstance(X, Tensor) else features.numpy()

    def _features(self, X: Any) -> Tensor:
        maps = torch.as_tensor(self.first_.transform(X))
        features = torch.as_tensor(self.second_.transform(maps))
        if not self.both:
            return features
        below = _averaged(maps, self.second.grid)
        return torch.cat([below if self.output == "map" else below.flatten(1), features], -1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write both layers to one file; see `orbitpool.load`."""
        check_is_fitted(self)
        modelfile.write(path, *self.pack())

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The model as JSON and tensors, those of a layer under its name."""
        layers = {"first": self.first_.pack(), "second": self.second_.pack()}
        own = {name: getattr(self, name) for name in OWN}
        content = {"class": "Stack", **own, "layers": {name: content for name, (content, _) in layers.items()}}
        return content, {f"{name}.{key}": t for name, (_, tensors) in layers.items() for key, t in tensors.items()}

    @classmethod
    def unpack(
        cls, content: dict[str, Any], tensors: dict[str, Tensor], classes: dict[str, type[Learner]], device: str
    ) -> Self:
        """The model that `save` wrote, to work on a device."""
        kinds: dict[str, Any] = {"Stack": cls, "ConvFeatures": ConvFeatures}
        layers: dict[str, Any] = {}
        for name in ("first", "second"):
            own = {key.removeprefix(f"{name}."): t for key, t in tensors.items() if key.startswith(f"{name}.")}
            inner = content["layers"][name]
            layers[name] = kinds[inner["class"]].unpack(inner, own, classes, device)
        parameters: dict[str, Any] = {name: content[name] for name in OWN}
        model = cls(**{name: clone(layer) for name, layer in layers.items()}, **parameters)
        model.set_params(device=device)._check()
        model.first_, model.second_ = layers["first"], layers["second"]
        model.n_features_in_ = model.first_.n_features_in_
        return model

    def layers(self) -> list[ConvFeatures]:
        """The fitted layers, from the images up."""
        check_is_fitted(self)
        below = self.first_.layers() if isinstance(self.first_, Stack) else [self.first_]
        return [*below, self.second_]

    @property
    def output(self) -> str:
        """Whether there are rows of features or maps: what the second layer gives."""
        return str(self.second.output)

    def _check(self) -> None:
        if not isinstance(self.first, (ConvFeatures, Stack)) or not isinstance(self.second, ConvFeatures):
            raise ValueError(
                f"layers are {self.first!r:.60} and {self.second!r:.60}; give ConvFeatures, or a Stack first"
            )
        if self.first.output != "map":
            raise ValueError(f"the first layer's output is {self.first.output!r}; the second one takes output='map'")
        one_of("both", self.both, (False, True))
        if self.n_images is not None:
            whole("n_images", self.n_images)

    def _layer(self, layer: Any, seed: int) -> Any:
        """A clone to be fitted, on the device of the stack."""
        mine: dict[str, Any] = {"device": self.device}
        return clone(layer).set_params(**mine | ({"random_state": seed} if layer.random_state is None else {}))

    def _some(self, X: Any, seed: int) -> Any:
        """As many of the images as the second layer learns from."""
        if self.n_images is None or self.n_images >= len(X):
            return X
        chosen = np.sort(np.random.default_rng(seed).permutation(len(X))[: self.n_images])
        return [X[i] for i in chosen] if isinstance(X, (list, tuple)) else X[chosen]

    def _parts(self, X: Any, size: int) -> Iterator[Any]:
        """Images, so many at a time: tensors where they are worked on, or lists of images of any sizes."""
        device, images = choose_device(self.device, X), X if isinstance(X, (list, tuple)) else as_images(X)
        for start in range(0, len(images), size):
            part = images[start : start + size]
            yield part if isinstance(part, (list, tuple)) else part.to(device)

    @property
    def _few(self) -> int:
        """Images whose maps are held at a time."""
        return max(1, MAPS // int(self.first_._n_features_out))

    @property
    def _n_features_out(self) -> int:
        first = self.first_._width * self.second.grid**2 if self.both else 0
        return self.second_._n_features_out + first

    @property
    def _width(self) -> int:
        """Features of a place of the map."""
        return self.second_._width + (self.first_._width if self.both else 0)


def _averaged(maps: Tensor, grid: int) -> Tensor:
    """Means of maps (N, rows, columns, F) over the cells of a grid, (N, grid, grid, F)."""
    bands = [band.mean(1) for band in maps.tensor_split(grid, 1)]
    return torch.stack([torch.stack([c.mean(1) for c in b.tensor_split(grid, 1)], 1) for b in bands], 1)
