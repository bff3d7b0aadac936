"""Approximate inverses of the second derivative, which spare conjugate gradients most of their steps."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

import torch
from torch import Tensor

from orbitpool.classifiers.design import Design
from orbitpool.together import Part

Inverse = Callable[[Tensor], Tensor]  # applied to (B, K, D + 1)
DRIFT = 2.0  # factor by which the mass of the curvature may change before the shared matrix is factored anew
EXPECTED = 50  # steps that a task takes at least, if its features are worth a matrix
FEW = 40  # a product of X with fewer columns takes as long as with so many
LEAST = 200  # a matrix of fewer features takes as long as one of so many
ROUNDED = 8  # times that products in bfloat16 are faster, on a GPU
SMALL = 2**26  # values that matrices may have in all, even if X has fewer


class Kind(Enum):
    """What conjugate gradients are preconditioned by, from cheap to dear; each leaves fewer steps than the one before.

    The diagonal of each problem's second derivative; one matrix for all problems; or the second derivative of each
    problem, where classes are coupled its block of each class.
    """

    DIAGONAL = auto()
    SHARED = auto()
    OWN = auto()


class Preconditioner:
    """Approximate inverses of the second derivatives of all problems over the same rows, at any value of C.

    The shared matrix is penalty + mass G, with G the mean of x x' over all rows, made once, and mass the mean over the
    problems of their curvature's sum. It is taken when the steps without it come to cost more than it does; matrices of
    their own, which each Newton step makes anew, when the last Newton step without them cost more than they do.
    Either kind has no more values than X, or than 2**26, in all.

    Parameters
    ----------
    design : Design
        Of all rows, as one problem.
    weight : Tensor (N,)
        Of each row in G.
    """

    def __init__(self, design: Design, weight: Tensor) -> None:
        self.design, self.weight = design, weight / design.X.total(weight)
        self.gram: Tensor | None = None
        self.mass = 0.0
        self.shared: Inverse | None = None
        self.kind = Kind.DIAGONAL
        self.plain, self.last = EXPECTED, 0  # steps without any matrix, and in the last Newton step without own ones

    def at(self, design: Design, penalty: Tensor, diagonal: Tensor, active: Tensor) -> Inverse:
        """The inverse for problems of a design, at the diagonal (B, K, N) of the second derivative of their loss.

        `penalty` is (1, 1, D + 1); problems that are not `active`, (B, K or 1, 1), need no inverse.
        """
        mass, inverse = design.X.total(diagonal), None
        own, n = diagonal * active, design.X.part.n
        counting = design.X.total(own.count_nonzero()[None])
        if self._pays(own, own[..., 0].numel(), int(counting), self.last):
            self.kind, inverse = Kind.OWN, _inverse(_grams(design, own), penalty, design.X.part)
        if inverse is None and self._pays(own, 1, n, self.plain):
            self.kind, inverse = Kind.SHARED, self._shared(penalty, float(mass.mean()))
        if inverse is None:
            squares = (penalty + mass * design.moment).clamp_min_(torch.finfo(mass.dtype).tiny)
            self.kind, inverse = Kind.DIAGONAL, squares.reciprocal_().mul
        return inverse

    def count(self, steps: int) -> None:
        """Note the steps that conjugate gradients took with the inverse that `at` gave last."""
        if self.kind is Kind.DIAGONAL:
            self.plain += steps
        if self.kind is not Kind.OWN:
            self.last = steps

    def _pays(self, like: Tensor, matrices: int, rows: int, steps: int) -> bool:
        """Whether matrices, from so many rows in all, cost less than steps on problems (B, K, N), and are not large."""
        (B, K, _), N, D = like.shape, self.design.X.part.n, self.design.X.width
        products = 2 * rows * D**2 / (ROUNDED if like.is_cuda else 1)
        step = 4 * N * D * max(B * K, FEW)
        return products + matrices * max(D, LEAST) ** 3 < steps * step and matrices * D**2 <= max(N * D, SMALL)

    def _shared(self, penalty: Tensor, mass: float) -> Inverse | None:
        if self.gram is None:
            self.gram = self.design.gram(0, self.weight)
        part = self.design.X.part
        if part.same_(torch.tensor(not self.mass / DRIFT <= mass <= self.mass * DRIFT)):
            self.mass, self.shared = mass, _inverse(mass * self.gram[None], penalty, part)
        return self.shared


def _grams(design: Design, weight: Tensor) -> Tensor:
    """The sum of weight x x' of each problem and column, (B K, D + 1, D + 1) from weights (B, K, N)."""
    return torch.stack([design.gram(b, row) for b, rows in enumerate(weight) for row in rows])


def _inverse(M: Tensor, penalty: Tensor, part: Part) -> Inverse | None:
    """The inverse of M + penalty, one M for all or one for each of B K; None if it has no root. M is overwritten."""
    explicit, n = M.is_cuda, M.shape[-1]  # on a GPU triangular systems are slow
    diagonal = M.diagonal(dim1=-2, dim2=-1)
    diagonal += penalty[0]
    scale = diagonal.where(diagonal > 0, 1).rsqrt()[:, None]
    M.mul_(scale).mul_(scale.mT)
    diagonal += 4 * n**0.5 * torch.finfo(M.dtype).eps  # what rounding may take from it
    root, failed = torch.linalg.cholesky_ex(M)
    failures = failed.count_nonzero()[None]
    part.sum_(failures)  # on any process
    if bool(failures):
        return None
    if explicit:
        M.zero_()
        diagonal += 1
        root = torch.linalg.solve_triangular(root, M, upper=False)

    def apply(r: Tensor) -> Tensor:
        x = r.reshape(len(scale), -1, n) * scale
        x = x @ root.mT @ root if explicit else torch.cholesky_solve(x.mT, root).mT
        return (x * scale).view_as(r)

    return apply
