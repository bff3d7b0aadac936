"""Sets in which each operator comes in four quarter turns, which need 3/8 of the multiplications.

If T_{s + S/4} = R T_s for the quarter turn R of a window, w' T_s v for four such s is a cyclic correlation over the
four pixels that R takes into each other. A Fourier transform of length four takes it apart: with sums and differences

    even = a + b + c + d,  odd = a - b + c - d,  x = a - c,  y = b - d

of the four pixels of a window and of a filter, the four products are even'even + odd'odd + 2 (x'x + y'y) over four, and
so on with signs that follow the turn. Pixels that R leaves where they are join the even part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbitpool.transforms.sparse import Sparse


@dataclass(frozen=True)
class Quarters:
    """What takes fields to the parts of their windows in the first S / 4 poses."""

    orbits: Tensor  # (4, Q) pixels of the window that quarter turns take into each other, in this order
    fixed: Tensor  # (F,) pixels that stay, at most one
    operators: Sparse  # to even parts (Q + F), odd ones (Q), and x and y as they are and after a quarter turn (2 Q)
    n_poses: int  # S / 4
    _pixels: dict[int, Tensor] = field(default_factory=dict)

    def pixels(self, channels: int) -> Tensor:
        """Numbers of a window with so many channels, part after part: four times Q C, then those that stay."""
        if channels not in self._pixels:
            pixels = torch.cat([self.orbits.flatten(), self.fixed])
            each = pixels[:, None] * channels + torch.arange(channels, device=pixels.device)
            self._pixels[channels] = each.flatten()
        return self._pixels[channels]

    @property
    def parts(self) -> list[tuple[slice, int]]:
        """Rows of the operators that give even parts, odd ones, and x and y, and in how many poses."""
        t, size = self.n_poses, self.orbits.shape[1]
        even, odd = (size + len(self.fixed)) * t, size * t
        ends = even, even + odd, even + odd + 4 * size * t
        return [(slice(0, ends[0]), t), (slice(ends[0], ends[1]), t), (slice(ends[1], ends[2]), 2 * t)]

    def apply(self, v: Tensor, channels: int) -> tuple[Tensor, Tensor, Tensor]:
        """Even parts ((Q + F) C, S / 4 N), odd ones (Q C, S / 4 N), x and y (2 Q C, S / 2 N) of fields (N, D1 C)."""
        n = len(v)
        x = self.operators @ v.T.reshape(self.operators.shape[1], channels * n)
        even, odd, rest = (
            x[rows].view(-1, poses, channels, n).transpose(1, 2).reshape(-1, poses * n) for rows, poses in self.parts
        )
        return even, odd, rest


def quarters(
    matrices: Sequence[Any], window: Sequence[int], device: torch.device, dtype: torch.dtype
) -> Quarters | None:
    """The quarter turns of a set of sparse (D2, D1) matrices, if it has them in this order."""
    if len(matrices) % 4 or len(window) != 2 or window[0] != window[1] or window[0] == 1 or dtype.itemsize < 4:
        return None
    some = len(matrices) // 4
    close = torch.finfo(dtype).eps ** 0.75  # as weights are that would be the same without rounding
    grid = np.arange(window[0] ** 2).reshape(window)
    for turn in (np.rot90(grid).ravel(), np.rot90(grid, -1).ravel()):
        if all(abs(T[turn] - later).max() < close for T, later in zip(matrices, matrices[some:], strict=False)):
            return _taken_apart(matrices[:some], turn, device, dtype)
    return None


def _taken_apart(first: Sequence[Any], turn: NDArray[Any], device: torch.device, dtype: torch.dtype) -> Quarters:
    pixels = np.stack([np.arange(len(turn)), turn, turn[turn], turn[turn[turn]]])
    stays = turn == pixels[0]
    orbits, fixed = pixels[:, (pixels[0] == pixels.min(0)) & ~stays], pixels[0, stays]
    even, odd, rest, later = [], [], [], []
    for T in first:
        a, b, c, d = (T[pixel] for pixel in orbits)
        even.append(scipy.sparse.vstack([(a + b + c + d) / 4, T[fixed]]))
        odd.append((a - b + c - d) / 4)
        rest.append(scipy.sparse.vstack([a - c, b - d]) / 2)
        later.append(scipy.sparse.vstack([b - d, c - a]) / 2)
    together = scipy.sparse.vstack([interleave(part) for part in (even, odd, rest + later)])
    pixel, still = (torch.from_numpy(np.ascontiguousarray(p)).to(device) for p in (orbits, fixed))
    return Quarters(pixel, still, Sparse.from_scipy(together, device, dtype), len(first))


def interleave(matrices: Sequence[Any]) -> Any:
    """The first rows of all matrices, then the second rows, and so on."""
    stacked = scipy.sparse.vstack(matrices, format="csr")
    return stacked[np.arange(stacked.shape[0]).reshape(len(matrices), -1).T.ravel()]
