"""Products with inputs in poses that come in four quarter turns each: `transforms.quarters` says why they are cheap."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from orbitpool.kernels.matrices import multiply
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
        (n, S), q = self.shape, len(self.odd)
        w = _columns(W, self.pixels)
        even, odd, rest = _split(w[:, : 4 * q].view(len(W), 4, q))
        even = torch.cat([even, w[:, 4 * q :]], 1) if w.shape[1] > 4 * q else even
        pairs = zip((even, odd, rest), self.parts, strict=True)
        a = _merge(*(lengthened(multiply(part.to(W.dtype), turned)) for part, turned in pairs)).view(len(W), S, n)
        if bias is not None:
            a += bias[:, :, None]
        return a.permute(2, 0, 1)

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Even, odd and the rest."""
        return self.even, self.odd, self.rest


def correlate_turned(hidden: list[tuple[Tensor, float]], inputs: list[Turned]) -> Tensor:
    """`products.correlate`: of hidden units (K, S N), which are overwritten, with a factor, and their inputs each."""
    first, K = inputs[0], len(hidden[0][0])
    split = [[part.mul_(alpha) if alpha != 1.0 else part for part in _split(h.view(K, 4, -1))] for h, alpha in hidden]
    sums = []
    for left, right in zip(zip(*split, strict=True), zip(*(each.parts for each in inputs), strict=True), strict=True):
        h = torch.cat([part.to(first.odd.dtype) for part in left], 1)
        sums.append(lengthened(multiply(h, torch.cat(right, 1).T)))
    even, odd, rest = sums
    turned = torch.cat([_merge(even[:, : odd.shape[1]], odd, rest).flatten(1), even[:, odd.shape[1] :]], 1)
    return _columns(turned, first.pixels.argsort())


def _columns(x: Tensor, which: Tensor) -> Tensor:
    """`x[:, which]`, but faster."""
    return lengthened(x).gather(1, which.expand(len(x), -1))


def apart(v: Tensor, transforms: TransformSet) -> Quarters | None:
    """What takes such inputs apart, if poses come in quarter turns and that is faster: on a CPU."""
    return None if v.is_cuda else transforms.to(v.device, v.dtype).quarters


def turned(v: Tensor, transforms: TransformSet, dtype: torch.dtype) -> Tensor | Turned:
    """Inputs (N, D1 C) in every pose, (N, S, D2 C), in some float type, taken apart if they can be."""
    quarters = apart(v, transforms)
    if quarters is None:
        return transforms.apply(v).to(dtype)
    channels = channels_of(v, transforms.field_shape, "field")
    pixels = torch.cat([quarters.orbits.flatten(), quarters.fixed])
    pixels = (pixels[:, None] * channels + torch.arange(channels, device=v.device)).flatten()
    even, odd, rest = (part.to(dtype) for part in quarters.apply(v, channels))
    return Turned(even, odd, rest, pixels, (len(v), len(transforms)))


def lengthened(x: Tensor) -> Tensor:
    """Sums of products that were rounded, to go on with."""
    return x.float() if x.itemsize < 4 else x


def _split(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Even and odd part, (K, m), and the rest, (K, 2 m), of (K, 4, m) quarter turns, in their place."""
    _cross(x[:, :2], x[:, 2:])
    _cross(x[:, 0], x[:, 1])
    return x[:, 0], x[:, 1], x[:, 2:].view(len(x), -1)


def _merge(even: Tensor, odd: Tensor, rest: Tensor) -> Tensor:
    """What `_split` takes apart, but for factors of two and four, (K, 4, m); even and odd part are overwritten."""
    _cross(even, odd)
    x = odd.new_empty(len(odd), 4, odd.shape[1])
    for i, (part, half) in enumerate(zip((even, odd), rest.chunk(2, 1), strict=True)):
        torch.add(part, half, out=x[:, i])
        torch.sub(part, half, out=x[:, i + 2])
    return x


def _cross(a: Tensor, b: Tensor) -> None:
    """The sum of a and b in place of a, and the difference in place of b."""
    a += b
    torch.sub(a, b, alpha=2, out=b)
