"""Products with the inputs and a constant feature, shifted and scaled, without a second copy of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import torch
from torch import Tensor

CHUNK = 2**22  # values that are squared or converted at a time
RIDGE = 1e-3  # of the mean variance, added to that of each feature before it is divided by


class Design:
    """Rows (x - shift) scale with a constant 1 behind them, for B problems over the same X.

    Parameters
    ----------
    X : Tensor (N, D)
    shift, scale : Tensor (B, 1, D)
    moment : Tensor (B, 1, D + 1)
        Mean square of each shifted and scaled feature.
    """

    def __init__(self, X: Tensor, shift: Tensor, scale: Tensor, moment: Tensor) -> None:
        self.X, self.shift, self.scale, self.moment = X, shift, scale, moment

    @classmethod
    def of(cls, X: Tensor, weights: Tensor, standardize: bool) -> Self:
        """The design of X for each row of (B, N) weights: standardised by its weighted mean and variance, or as is."""
        mean, variance = (statistic[:, None] for statistic in moments(X, weights))
        if standardize:
            shift, scale = mean, (variance + RIDGE * variance.mean(-1, keepdim=True)).clamp_min(1e-12).rsqrt()
            squares = variance * scale.square()
        else:
            shift, scale = torch.zeros_like(mean), torch.ones_like(mean)
            squares = variance + mean.square()
        return cls(X, shift, scale, torch.cat([squares, torch.ones_like(squares[..., :1])], -1))

    def on(self, X: Tensor) -> Design:
        """The same shift and scale for other inputs."""
        return Design(X, self.shift, self.scale, self.moment)

    def respond(self, W: Tensor) -> Tensor:
        """The response of each row to each column of weights, (B, K, N) from (B, K, D + 1)."""
        coefficients, intercept = self.raw(W)
        return (coefficients.flatten(0, 1) @ self.X.T).view(*W.shape[:2], -1).add_(intercept)

    def collect(self, R: Tensor) -> Tensor:
        """The sum of the rows with weights R, (B, K, D + 1) from (B, K, N): the transpose of `respond`."""
        total = R.sum(-1, keepdim=True)
        sums = (R.flatten(0, 1) @ self.X).view(*R.shape[:2], -1)
        return torch.cat([(sums - total * self.shift) * self.scale, total], -1)

    def gram(self, problem: int, weight: Tensor) -> Tensor:
        """The sum of weight x x' over the rows x of one of the B problems, (D + 1, D + 1).

        On a GPU, rows in float32 are rounded to bfloat16 and sums are not: enough for a preconditioner.
        """
        D = self.X.shape[1]
        total = self.X.new_zeros(D + 1, D + 1)
        for rows in torch.split(weight.nonzero()[:, 0], max(chunk_rows(self.X), D // 8)):
            x = self.X[rows].sub_(self.shift[problem]).mul_(self.scale[problem])
            x = torch.cat([x, torch.ones_like(x[:, :1])], 1).mul_(weight[rows, None].sqrt())
            if x.is_cuda and x.dtype == torch.float32:
                x = x.bfloat16()
                total = torch.addmm(total, x.T, x, out_dtype=torch.float32)
            else:
                total.addmm_(x.T, x)
        return total

    def raw(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """Coefficients (B, K, D) and intercepts (B, K, 1) that give the same responses on X as it is."""
        coefficients = W[..., :-1] * self.scale
        return coefficients, W[..., -1:] - (coefficients * self.shift).sum(-1, keepdim=True)


def moments(X: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the variance of each feature under (B, N) weights, (B, D) each."""
    share = weights / weights.sum(1, keepdim=True)
    mean = share @ X
    centre = mean.mean(0)  # near enough to each mean that squares about it lose no digits
    squares = torch.zeros_like(mean)
    rows = chunk_rows(X)
    for x, s in zip(torch.split(X, rows), torch.split(share, rows, 1), strict=True):
        squares.addmm_(s, (x - centre).square_())
    return mean, (squares - (mean - centre).square()).clamp_min_(0)


def chunk_rows(X: Tensor) -> int:
    """How many rows of X to convert at a time."""
    return max(1, CHUNK // X.shape[1])


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Products of float32 matrices in float32: no TF32, no bfloat16, no autocast; afterwards all is as it was."""
    before = torch.get_float32_matmul_precision()
    backends = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)  # type: ignore[attr-defined]
    finer = [backend.fp32_precision for backend in backends]
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
        for backend, precision in zip(backends, finer, strict=True):
            backend.fp32_precision = precision
