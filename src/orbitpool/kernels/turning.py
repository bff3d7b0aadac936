"""Products with inputs in poses that come in four quarter turns each: `transforms.quarters` says why they are cheap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from orbitpool.kernels import native
from orbitpool.kernels.matrices import multiply
from orbitpool.transforms import TransformSet
from orbitpool.transforms.quarters import Quarters
from orbitpool.transforms.set import channels_of

Parts = tuple[Tensor, Tensor, Tensor]  # even, odd and the rest


@dataclass(frozen=True)
class Turned:
    """N inputs in every pose, taken apart."""

    parts: Parts
    pixels: Tensor  # of a filter, as `Quarters.pixels` has them
    shape: tuple[int, int]  # N and S

    def answers(self, W: Tensor | Parts) -> list[Tensor]:
        """`products.answers`."""
        filters = taken_apart(W, self.pixels, len(self.parts[1])) if isinstance(W, Tensor) else W
        return [multiply(w, u) for w, u in zip(filters, self.parts, strict=True)]


@dataclass(frozen=True)
class Beside:
    """Hidden units of n inputs beside those of others, as one product with all of them wants them: whole, or apart.

    Parts are (K, S M) for all M inputs, or even (K, S / 4 M), odd (K, S / 4 M) and the rest (K, S / 2 M), as
    `row_of` in `native.c` says.
    """

    parts: Sequence[Tensor]
    first: int  # inputs before these
    room: int  # M
    shape: tuple[int, int, int]  # n, K and S

    def after(self, n: int) -> Beside:
        """Those of n more inputs, after these."""
        return Beside(self.parts, self.first + self.shape[0], self.room, (n, *self.shape[1:]))

    def complete(self, hidden: Sequence[Hidden]) -> bool:
        """Whether these are all that lie there, in this order."""
        here = [h for h in hidden if isinstance(h, Beside) and h.parts is self.parts]
        ends = [h.first + h.shape[0] for h in here]
        return len(here) == len(hidden) and [0, *ends] == [*(h.first for h in here), self.room]

    def whole(self) -> Tensor:
        """All of them, (N, K, S), in float32."""
        n, K, S = self.shape
        units = [lengthened(part) for part in self._own()]
        if len(units) > 1:
            units = [merged([units[0] / 4, units[1] / 4, units[2] / 2])]
        return units[0].reshape(K, S, n).permute(2, 0, 1)

    def _own(self) -> Iterator[Tensor]:
        for part in self.parts:
            poses = part.shape[1] // self.room
            yield part[:, poses * self.first : poses * (self.first + self.shape[0])]


Hidden = Tensor | Beside  # (N, K, S), or what stands for it


def whole(h: Hidden) -> Tensor:
    """Hidden units as (N, K, S)."""
    return h.whole() if isinstance(h, Beside) else h


def correlate_turned(hidden: Sequence[Hidden], inputs: Sequence[Turned]) -> Tensor:
    """`products.correlate`: of hidden units, which may be overwritten, and their inputs each."""
    first, right = inputs[0], zip(*(u.parts for u in inputs), strict=True)
    left = beside(hidden, first.parts[0].dtype, quarters=True)
    even, odd, rest = (multiply(h, torch.cat(us, 1).T) for h, us in zip(left, right, strict=True))
    if native.ready(odd, kinds=native.BRIEF):
        return native.unite((even, odd, rest), first.pixels)
    turned = torch.cat([merged([even[:, : odd.shape[1]], odd, rest]), even[:, odd.shape[1] :]], 1)
    return _columns(turned, first.pixels.argsort())


def beside(hidden: Sequence[Hidden], dtype: torch.dtype, quarters: bool = False) -> Sequence[Tensor]:
    """Hidden units of several sides beside each other, (K, S M), whole or taken apart; they may be overwritten."""
    first = hidden[0]
    if isinstance(first, Beside) and first.complete(hidden):
        return first.parts
    units = [flat_hidden(whole(h)) for h in hidden]
    sides = [_split(h.view(len(h), 4, -1)) if quarters else (h,) for h in units]
    return [joined(parts, dtype) for parts in zip(*sides, strict=True)]


def flat_hidden(h: Tensor) -> Tensor:
    """(N, K, S) as it lies in memory, (K, S N)."""
    return h.permute(1, 2, 0).reshape(h.shape[1], -1)


def joined(parts: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    """Matrices beside each other, which lie in memory as the first one does, rounded on the way."""
    if parts[0].stride(1) != 1:
        return torch.cat([part.T.to(dtype) for part in parts]).T
    whole = parts[0].new_empty(len(parts[0]), sum(part.shape[1] for part in parts), dtype=dtype)
    for part, place in zip(parts, torch.split(whole, [part.shape[1] for part in parts], 1), strict=True):
        place.copy_(part)
    return whole


def _columns(x: Tensor, which: Tensor) -> Tensor:
    """`x[:, which]`, but faster."""
    return lengthened(x).gather(1, which.expand(len(x), -1))


def apart(v: Tensor, transforms: TransformSet) -> Quarters | None:
    """What takes such inputs or filters apart, if poses come in quarter turns and that is faster: on a CPU."""
    return None if v.is_cuda else transforms.to(v.device, _longer(v.dtype)).quarters


def turned(v: Tensor, transforms: TransformSet, dtype: torch.dtype) -> Tensor | Turned:
    """Inputs (N, D1 C) in every pose, (N, S, D2 C), in some float type, taken apart if they can be."""
    quarters, channels, S = apart(v, transforms), channels_of(v, transforms.field_shape, "field"), len(transforms)
    compiled = native.ready(v) and dtype in native.BRIEF
    if quarters is None and not compiled:
        return transforms.apply(v).to(dtype)
    if quarters is None:
        operators = transforms.to(v.device, v.dtype)._operators
        (u,) = native.move(v, operators, [(slice(0, operators.shape[0]), S)], channels, dtype)
        return u.view(-1, S, len(v)).permute(2, 1, 0)
    if compiled:
        even, odd, rest = native.move(v, quarters.operators, quarters.parts, channels, dtype)
    else:
        even, odd, rest = (part.to(dtype) for part in quarters.apply(lengthened(v), channels))
    return Turned((even, odd, rest), quarters.pixels(channels), (len(v), S))


def taken_apart(W: Tensor, pixels: Tensor, size: int) -> Parts:
    """Even, odd and the other parts of filters, each of so many pixels, and those that stay among the even ones."""
    if native.ready(W, kinds=native.BRIEF):
        even, odd, rest = native.apart(W, pixels, size)
        return even, odd, rest
    w = _columns(W, pixels)
    even, odd, rest = _split(w[:, : 4 * size].view(len(W), 4, size))
    even = torch.cat([even, w[:, 4 * size :]], 1) if w.shape[1] > 4 * size else even
    return even.to(W.dtype), odd.to(W.dtype), rest.to(W.dtype)


def lengthened(x: Tensor) -> Tensor:
    """Sums of products that were rounded, to go on with."""
    return x.to(_longer(x.dtype))


def _longer(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _split(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Even and odd part, (K, m), and the rest, (K, 2 m), of (K, 4, m) quarter turns, in their place."""
    _cross(x[:, :2], x[:, 2:])
    _cross(x[:, 0], x[:, 1])
    return x[:, 0], x[:, 1], x[:, 2:].view(len(x), -1)


def merged(parts: Sequence[Tensor]) -> Tensor:
    """What `_split` takes apart, but for factors of two and four, (K, 4 m), with more digits than short numbers.

    One part is returned as it is.
    """
    if len(parts) == 1:
        return parts[0]
    even, odd, rest = parts
    K, m = odd.shape
    x = odd.new_empty(K, 4, m, dtype=_longer(odd.dtype))
    for part, place in zip((even, odd, rest.view(K, 2, m)), (x[:, 0], x[:, 1], x[:, 2:]), strict=True):
        place.copy_(part)
    _cross(x[:, 0], x[:, 1])
    _cross(x[:, :2], x[:, 2:])
    return x.view(K, -1)


def _cross(a: Tensor, b: Tensor) -> None:
    """The sum of a and b in place of a, and the difference in place of b."""
    a += b
    torch.sub(a, b, alpha=2, out=b)
