"""OrbitModule: what a learner has learned, as a layer that goes on learning in a network."""

from __future__ import annotations

from torch import Tensor, nn

from orbitpool import orbit
from orbitpool.encoders import Encoder, squash, unit_gain
from orbitpool.kernels import pool_templates


class OrbitModule(nn.Module):
    """A learner's features of inputs (N, D1 C) or images (N, H, W[, C]): (N, K), or (N, 2 K) with those of -v last.

    The poses of a filter are computed from it every time, so that they stay tied while it is trained. Inputs must be
    of the parameters' float type and on their device.

    Attributes
    ----------
    weight : Parameter (K, D2 C)
        The filters, over sigma where inputs have one.
    bias : Parameter (K, S) or None
    """

    fixed: Tensor | None

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        if not isinstance(encoder, Encoder):
            raise TypeError(
                f"encoder is a {type(encoder).__name__}; give learner.encoder(), or call learner.to_module()"
            )
        self.weight = nn.Parameter(encoder.W.clone())
        self.bias = None if encoder.bias is None else nn.Parameter(encoder.bias.clone())
        self.register_buffer("fixed", None)
        self.transforms, self.how, self.alpha = encoder.transforms, encoder.how, encoder.alpha
        self.two_sided, self.unit_norm = encoder.two_sided, encoder.scale is not None

    def forward(self, v: Tensor) -> Tensor:
        """Features, (N, K) or (N, 2 K)."""
        v, templates = v.flatten(1), self.templates()
        if v.shape[1] != templates.shape[2]:
            raise ValueError(f"inputs have {v.shape[1]} numbers each; the filters take {templates.shape[2]}")
        return squash(pool_templates(v, templates, self.bias, self.how, self.two_sided), self.how, self.alpha)

    def templates(self) -> Tensor:
        """What inputs are multiplied with: every filter in every pose, (K, S, D1 C)."""
        if self.fixed is not None:
            return self.fixed
        posed = orbit.templates(self.weight, self.transforms)
        return posed * unit_gain(posed)[..., None] if self.unit_norm else posed

    def fix(self) -> None:
        """Keep the poses as they are now, as constants; the filters are not used any more."""
        self.fixed = self.templates().detach().contiguous()

    def extra_repr(self) -> str:
        """What `print` says of the layer."""
        K, sides = len(self.weight), "two-sided" if self.two_sided else "one-sided"
        return f"{K} filters, {self.transforms!r}, {self.how}, {sides}"
