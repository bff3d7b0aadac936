"""Products with inputs in poses that come in four quarter turns each: `transforms.quarters` says why they are cheap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from orbitpool.transforms import TransformSet
from orbitpool.transforms.quarters import Quarters
from orbitpool.transforms.set import channels_of


@dataclass(frozen=True)
class Turned:
    """N inputs in every pose, taken apart."""

    even: Tensor
    odd: Tensor
    rest: Tensor
    pixels: Tensor  # of a filter, in the order of the parts: four times Q, then those that stay
    shape: tuple[int, int]  # N and S

    def respond(self, W: Tensor, bias: Tensor | None) -> Tensor:
        """`products.respond`."""
        (n, S), size = self.shape, len(self.odd)
        w = W.index_select(1, self.pixels)
        even, odd, rest = _split(w[:, : 4 * size].view(len(W), 4, size))
        even = torch.cat([even, w[:, 4 * size :]], 1) if w.shape[1] > 4 * size else even
        a = _merge(even @ self.even, odd @ self.odd, rest.flatten(1) @ self.rest).view(len(W), S, n)
        if bias is not None:
            a += bias[:, :, None]
        return a.permute(2, 0, 1)

    def correlate(self, h: Tensor) -> Tensor:
        """`products.correlate` of hidden units (K, S N), without a factor."""
        even, odd, rest = _split(h.view(len(h), 4, -1))
        size, sums = len(self.odd), even @ self.even.T
        turned = _merge(sums[:, :size], odd @ self.odd.T, rest.flatten(1) @ self.rest.T)
        return torch.cat([turned.flatten(1), sums[:, size:]], 1).index_select(1, self._places)

    @cached_property
    def _places(self) -> Tensor:
        return self.pixels.argsort()


def apart(v: Tensor, transforms: TransformSet) -> Quarters | None:
    """What takes such inputs apart, if poses come in quarter turns and that is faster: on a CPU."""
    return None if v.is_cuda else transforms.to(v.device, v.dtype).quarters


def turned(v: Tensor, transforms: TransformSet) -> Tensor | Turned:
    """Inputs (N, D1 C) in every pose, (N, S, D2 C), taken apart if they can be."""
    quarters = apart(v, transforms)
    if quarters is None:
        return transforms.apply(v)
    channels = channels_of(v, transforms.field_shape, "field")
    pixels = torch.cat([quarters.orbits.flatten(), quarters.fixed])
    pixels = (pixels[:, None] * channels + torch.arange(channels, device=v.device)).flatten()
    return Turned(*quarters.apply(v, channels), pixels, (len(v), len(transforms)))


def _split(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Even and odd part, (K, m), and the rest, (K, 2, m), of (K, 4, m) quarter turns."""
    both = x[:, :2] + x[:, 2:]
    return both[:, 0] + both[:, 1], both[:, 0] - both[:, 1], x[:, :2] - x[:, 2:]


def _merge(even: Tensor, odd: Tensor, rest: Tensor) -> Tensor:
    """What `_split` takes apart, but for factors of two and four, (K, 4, m); the rest may be (K, 2 m)."""
    out = even.new_empty(len(even), 4, even.shape[1])
    there, back = out[:, :2], out[:, 2:]
    torch.add(even, odd, out=there[:, 0])
    torch.sub(even, odd, out=there[:, 1])
    torch.sub(there, rest.view_as(there), out=back)
    there += rest.view_as(there)
    return out
