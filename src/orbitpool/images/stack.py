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
from orbitpool.excerpt import excerpt
from orbitpool.images.conv import ConvFeatures
from orbitpool.images.patches import as_images, check_mirror, check_some
from orbitpool.kernels import choose_device
from orbitpool.learners import Learner, finding
from orbitpool.learners.checks import one_of, whole
from orbitpool.learners.training import seed_of

OWN = {"both": False, "n_images": None, "mirror": False}  # parameters that a file keeps, or what holds without
MAPS = 2**27  # numbers in maps at a time


class Stack(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features of the maps that features of images make: the second layer learns from what the first one gives.

    Each layer learns by itself, from the bottom up, and without labels. The transformations of the second act on maps
    of the first: `transforms.translations(3, 2)`, say, on places of a map, or `transforms.turned_maps`, which turns
    poses with places, if the first layer keeps its poses. A stack with `output="map"` above can be the first layer of
    another one. There is no `to_module` and no `export_onnx` of a stack; its layers with `poses="pool"` and
    `output="flat"` have them.

    Parameters
    ----------
    first : ConvFeatures or Stack
        With `output="map"`.
    second : ConvFeatures
        Takes maps (N, grid, grid, features of a patch).
    both : bool
        Whether features of the first layer, averaged over the second one's grid, stand before those of the second: of
        the same pose in a map that keeps poses.
    n_images : int or None
        Images, chosen at random, from whose maps the second layer learns; None for all, whose maps must fit into
        memory together.
    mirror : bool
        Average the features of an image with those of its mirror image, so that both have the same.
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
        mirror: bool = False,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.first = first
        self.second = second
        self.both = both
        self.n_images = n_images
        self.mirror = mirror
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
        """What the first layer makes of images, where the second one works."""
        return torch.cat([self._map(part) for part in self._parts(X)])

    def _map(self, X: Any) -> Tensor:
        return torch.as_tensor(self.first_.transform(X)).to(choose_device(self.device, X))

    def transform(self, X: Any) -> Any:
        """Features of the second layer, or of both, (N, n_features_out), or maps of them."""
        check_is_fitted(self)
        self._check()
        home = X.device if isinstance(X, Tensor) else torch.device("cpu")
        features = torch.cat([self._seen(part).to(home) for part in self._parts(X)])
        return features if isinstance(X, Tensor) else features.numpy()

    def _seen(self, X: Any) -> Tensor:
        """Features of images, or their means with those of the mirror images."""
        return (self._features(X) + self._features(_mirrored(X))) / 2 if self.mirror else self._features(X)

    def _features(self, X: Any) -> Tensor:
        maps = self._map(X)
        features: Tensor = self.second_.transform(maps)
        if not self.both:
            return features
        below = _averaged(maps, self.second.grid)
        if self.output == "flat":
            return torch.cat([below.flatten(1), features], 1)
        each = [part.reshape(*part.shape[:-1], _poses(self.second), -1) for part in (below, features)]
        return torch.cat(each, -1).flatten(-2)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write both layers to one file; see `orbitpool.load`."""
        check_is_fitted(self)
        modelfile.write(path, *self.pack())

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The model as JSON and tensors, those of a layer under its name."""
        self._check()
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
        parameters: dict[str, Any] = {name: content.get(name, default) for name, default in OWN.items()}
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
                f"layers are {excerpt(self.first)} and {excerpt(self.second)}; give ConvFeatures, or a Stack first"
            )
        self.first._check()
        self.second._check()
        if self.first.output != "map":
            raise ValueError(f"the first layer's output is {self.first.output!r}; the second one takes output='map'")
        for name in ("both", "mirror"):
            one_of(name, getattr(self, name), (False, True))
        check_mirror(self.mirror, self.second.poses)
        self._check_poses()
        if self.n_images is not None:
            whole("n_images", self.n_images)

    def _check_poses(self) -> None:
        below, above = _poses(self.first), _poses(self.second)
        field: tuple[int, ...] = getattr(self.second.learner.transforms, "field_shape", ())
        if len(field) == 3 and below != field[2]:
            raise ValueError(
                f"the second layer moves maps of {field[2]} poses, but those of the first one have "
                f"{below or 'as many as it finds'}; give the first one poses='keep' and {field[2]} transformations"
            )
        if self.both and self.output == "map" and above != 1 and not 0 < below == above:
            raise ValueError(
                f"both is True and output 'map', but the layers have {below} and {above} poses (0: to be found); "
                "keep as many in both, or use both=False"
            )

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

    def _parts(self, X: Any) -> Iterator[Any]:
        """Images, some at a time: tensors where they are worked on, or lists of images of any sizes."""
        device, images = choose_device(self.device, X), X if isinstance(X, (list, tuple)) else as_images(X)
        check_some(images)
        for start in range(0, len(images), self._few):
            part = images[start : start + self._few]
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


def _poses(layer: ConvFeatures | Stack) -> int:
    """Poses that a place of a layer's map has, filters last: 1 if they are pooled, 0 if they are to be found."""
    top = layer.second if isinstance(layer, Stack) else layer
    transforms = top.learner.transforms
    if top.poses == "pool" or transforms is None:
        return 1
    return 0 if finding.is_auto(transforms) else len(transforms)


def _mirrored(X: Any) -> Any:
    """Mirror images of a tensor (N, H, W, C) or of a list of images (H, W[, C])."""
    return X.flip(2) if isinstance(X, Tensor) else [np.flip(np.asarray(x), 1) for x in X]


def _averaged(maps: Tensor, grid: int) -> Tensor:
    """Means of maps (N, rows, columns, F) over the cells of a grid, (N, grid, grid, F)."""
    bands = [band.mean(1) for band in maps.tensor_split(grid, 1)]
    return torch.stack([torch.stack([c.mean(1) for c in b.tensor_split(grid, 1)], 1) for b in bands], 1)
