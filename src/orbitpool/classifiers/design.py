"""Products with the inputs and a constant feature, shifted and scaled, without a second copy of them.

All of them are sums over rows: over pieces of rows that need not be in memory together, and over processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from orbitpool.together import Part

CHUNK = 2**22  # values that are squared or converted at a time
PIECE = 2**26  # values of a piece of X that are brought to the device at a time
RIDGE = 1e-3  # of the mean variance, added to that of each feature before it is divided by


@dataclass(frozen=True)
class Rows:
    """The rows of X that are this process's, in pieces, (n, D) each."""

    pieces: list[Tensor]
    device: torch.device
    dtype: torch.dtype
    part: Part

    @classmethod
    def of(
        cls,
        X: Tensor | Sequence[Tensor],
        device: torch.device,
        dtype: torch.dtype,
        part: Part,
        most: int = PIECE,
    ) -> Self:
        """A part of X: of a tensor on the device for good, of a sequence piece by piece whenever it is used."""
        if isinstance(X, Tensor):
            return cls([X[part.own].to(device, dtype)], device, dtype, part)
        pieces: list[Tensor] = []
        start = 0
        for x in X:
            own = x[max(part.own.start - start, 0) : max(part.own.stop - start, 0)]
            pieces += torch.split(own, max(1, most // x.shape[1])) if len(own) else ()
            start += len(x)
        return cls(pieces, device, dtype, part)

    def resident(self) -> Self:
        """The same with all pieces on the GPU that computes, if they take at most a quarter of what is free there."""
        size = self.dtype.itemsize * sum(x.numel() for x in self.pieces)
        if self.device.type != "cuda" or 4 * size > torch.cuda.mem_get_info(self.device)[0]:
            return self
        return replace(self, pieces=list(self))

    @property
    def width(self) -> int:
        """The number of features D."""
        return self.pieces[0].shape[1]

    def __iter__(self) -> Iterator[Tensor]:
        return (x.to(self.device, self.dtype) for x in self.pieces)

    def along(self, of_rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Pieces of X with those of (..., N) that belong to the same rows."""
        return zip(self, torch.split(of_rows, [len(x) for x in self.pieces], -1), strict=True)

    def total(self, of_rows: Tensor, dims: tuple[int, ...] = (-1,)) -> Tensor:
        """The sum over all rows, and other dimensions if so named, which are kept."""
        sums = of_rows.sum(dims, keepdim=True)
        self.part.sum_(sums)
        return sums


class Design:
    """Rows (x - shift) scale with a constant 1 behind them, for B problems over the same X.

    Parameters
    ----------
    X : Rows (N, D)
    shift, scale : Tensor (B, 1, D)
    moment : Tensor (B, 1, D + 1)
        Mean square of each shifted and scaled feature.
    """

    def __init__(self, X: Rows, shift: Tensor, scale: Tensor, moment: Tensor) -> None:
        self.X, self.shift, self.scale, self.moment = X, shift, scale, moment

    @classmethod
    def of(cls, X: Rows, weights: Tensor, standardize: bool) -> Self:
        """The design of X for each row of (B, N) weights: standardised by its weighted mean and variance, or as is."""
        mean, variance = (statistic[:, None] for statistic in moments(X, weights))
        if standardize:
            shift, scale = mean, (variance + RIDGE * variance.mean(-1, keepdim=True)).clamp_min(1e-12).rsqrt()
            squares = variance * scale.square()
        else:
            shift, scale = torch.zeros_like(mean), torch.ones_like(mean)
            squares = variance + mean.square()
        return cls(X, shift, scale, torch.cat([squares, torch.ones_like(squares[..., :1])], -1))

    def on(self, X: Tensor | Sequence[Tensor], part: Part) -> Design:
        """The same shift and scale for a part of other inputs."""
        rows = Rows.of(X, self.X.device, self.X.dtype, part)
        return Design(rows, self.shift, self.scale, self.moment)

    def respond(self, W: Tensor) -> Tensor:
        """The response of each row to each column of weights, (B, K, N) from (B, K, D + 1)."""
        coefficients, intercept = self.raw(W)
        responses = [coefficients.flatten(0, 1) @ x.T for x in self.X]
        return _joined(responses).view(*W.shape[:2], -1).add_(intercept)

    def collect(self, R: Tensor) -> Tensor:
        """The sum of the rows with weights R, (B, K, D + 1) from (B, K, N): the transpose of `respond`."""
        total = R.sum(-1, keepdim=True)
        sums = _added([r.flatten(0, 1) @ x for x, r in self.X.along(R)]).view(*R.shape[:2], -1)
        self.X.part.sum_(total, sums)
        return torch.cat([(sums - total * self.shift) * self.scale, total], -1)

    def gram(self, problem: int, weight: Tensor) -> Tensor:
        """The sum of weight x x' over the rows x of one of the B problems, (D + 1, D + 1).

        On a GPU, rows in float32 are rounded to bfloat16 and sums are not: enough for a preconditioner.
        """
        D = self.X.width
        total = weight.new_zeros(D + 1, D + 1)
        for piece, weights in self.X.along(weight):
            for rows in torch.split(weights.nonzero()[:, 0], max(chunk_rows(piece), D // 8)):
                x = piece[rows].sub_(self.shift[problem]).mul_(self.scale[problem])
                x = torch.cat([x, torch.ones_like(x[:, :1])], 1).mul_(weights[rows, None].sqrt())
                if x.is_cuda and x.dtype == torch.float32:
                    x = x.bfloat16()
                    total = torch.addmm(total, x.T, x, out_dtype=torch.float32)
                else:
                    total.addmm_(x.T, x)
        self.X.part.sum_(total)
        return total

    def raw(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """Coefficients (B, K, D) and intercepts (B, K, 1) that give the same responses on X as it is."""
        coefficients = W[..., :-1] * self.scale
        return coefficients, W[..., -1:] - (coefficients * self.shift).sum(-1, keepdim=True)


def moments(X: Rows, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the variance of each feature under (B, N) weights, (B, D) each."""
    share = weights / X.total(weights)
    mean = _added([s @ x for x, s in X.along(share)])
    X.part.sum_(mean)
    centre = mean.mean(0)  # near enough to each mean that squares about it lose no digits
    squares = torch.zeros_like(mean)
    for piece, shares in X.along(share):
        rows = chunk_rows(piece)
        for x, s in zip(torch.split(piece, rows), torch.split(shares, rows, 1), strict=True):
            squares.addmm_(s, (x - centre).square_())
    X.part.sum_(squares)
    return mean, (squares - (mean - centre).square()).clamp_min_(0)


def _joined(parts: list[Tensor]) -> Tensor:
    """What belongs to the rows of pieces as that of all, without a copy where there is one."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, -1)


def _added(parts: list[Tensor]) -> Tensor:
    for other in parts[1:]:
        parts[0] += other
    return parts[0]


def chunk_rows(X: Tensor) -> int:
    """How many rows of X to convert at a time."""
    return max(1, CHUNK // X.shape[1])
