"""Dense encoding of images, against patches that are encoded by a plain torch version."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from benchmarks.timing import PRECISIONS, Row, seconds
from orbitpool import TIOMP, TIRBM, ConvFeatures
from orbitpool import transforms as T
from orbitpool.encoders import Encoder, squash
from orbitpool.images import dense_patches


def run() -> Iterator[Row]:
    """Ratios to a plain version."""
    images = torch.randint(256, (32, 32, 32, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    shifts = T.translations(8, 6, 2)
    for learner in (TIRBM(1600, shifts, visible="gaussian", two_sided=True, n_iter=1), TIOMP(1600, shifts, n_iter=1)):
        features = ConvFeatures(learner, n_patches=2000, random_state=0).fit(images)
        encoder = features.learner_.encoder()
        P, mean = (torch.from_numpy(a) for a in (features.whitening_, features.mean_))
        plain = partial(_plain, features, encoder, P, mean, images)
        for precision in PRECISIONS:
            features.set_params(precision=precision)
            ours, theirs = seconds(partial(features.transform, images), plain, repeats=11)
            short = precision == "bfloat16"
            name = f"{type(learner).__name__}, K=1600 S=4 two-sided{', bfloat16 products' if short else ''}"
            yield Row(f"dense encoding by {name}: over the plain version", ours / theirs, 0.25 if short else 0.6)


def _plain(features: ConvFeatures, encoder: Encoder, P: Tensor, mean: Tensor, images: Tensor) -> Tensor:
    """Whiten every patch, multiply by every template, reduce, squash, pool; one image at a time."""
    posed = encoder.transforms.orbit(encoder.W)
    templates = (posed if encoder.scale is None else posed * encoder.scale[..., None]).flatten(0, 1)
    bias = torch.zeros(1600, 4) if encoder.bias is None else encoder.bias
    rows = []
    for image in images.float() / 255:
        normal = features._normalize(dense_patches(image[None], (8, 8)).reshape(625, -1))
        x = ((normal - mean) @ P @ templates.T).view(625, 1600, 4)
        signed = [sign * x + bias for sign in (1, -1)]
        reduced = [a.amax(-1) if encoder.how == "max" else torch.logsumexp(a, -1) for a in signed]
        z = squash(torch.cat(reduced, 1), encoder.how, encoder.alpha).view(25, 25, -1)
        rows.append(torch.cat([c.mean((0, 1)) for b in z.tensor_split(2) for c in b.tensor_split(2, 1)]))
    return torch.stack(rows)
