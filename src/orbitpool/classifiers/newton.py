"""Newton's method with truncated conjugate gradients, for many linear models over the same rows at once.

Processes that share the rows have the same weights but for rounding, and do what the first one decides by its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from orbitpool.classifiers.design import Design
from orbitpool.classifiers.losses import Loss
from orbitpool.classifiers.preconditioner import Preconditioner

FORCING = 0.1  # conjugate gradients end at this share of the residual, and at less near the solution
CG_STEPS = 1000  # conjugate gradients to a Newton step, at most
SEARCH_STEPS = 12
FLAT = 0.01  # a line search ends where the slope is this share of its first


@dataclass
class Solution:
    """Weights (B, K, D + 1), responses (B, K, N), and how they were come by."""

    W: Tensor
    F: Tensor
    n_iter: int
    n_products: int
    """Products with X and its transpose, in pairs."""
    remaining: float
    """The largest norm of a gradient, as a share of that at zero."""
    converged: bool


def minimise(
    design: Design, loss: Loss, preconditioner: Preconditioner, W: Tensor, tol: float, max_iter: int
) -> Solution:
    """The minimum of 0.5 |W|^2 + loss for each independent problem, from a start W (B, K, D + 1).

    A problem is solved when its gradient is below `tol` times that at zero and a full last step was to gain less
    than `tol` of its objective, or when its steps gain nothing that the float type can hold.
    """
    problem = _Problem(design, loss, preconditioner, W)
    F = design.respond(W)
    start = problem.norm(problem.gradient(torch.zeros_like(W), torch.zeros_like(F)))
    gain = torch.full_like(start, torch.inf)
    done = torch.zeros_like(start, dtype=torch.bool)
    n_iter, eps = 0, torch.finfo(W.dtype).eps
    while True:
        g = problem.gradient(W, F)
        share = problem.norm(g) / start.clamp_min(torch.finfo(W.dtype).tiny)
        value = problem.value(W, F)
        problem.agree(done.logical_or_(((share <= tol) & (gain <= tol * value)) | (gain <= eps * value)))
        if n_iter == max_iter or bool(done.all()):
            break
        d, U = problem.direction(g, F, share.pow(0.25).clamp_max(FORCING), ~done)
        t = torch.where(done, 0, problem.search(W, F, d, U))
        W, F = torch.addcmul(W, t, d), torch.addcmul(F, t, U)
        gain = torch.where(done, 0, -0.5 * problem.dot(g, d))
        n_iter += 1
    return Solution(W, F, n_iter, problem.n_products, float(share.max()), bool(done.all()))


class _Problem:
    """The objective and its derivatives; sums over `loss.dims` belong to one independent problem."""

    def __init__(self, design: Design, loss: Loss, preconditioner: Preconditioner, W: Tensor) -> None:
        self.design, self.loss, self.preconditioner, self.n_products = design, loss, preconditioner, 0
        self.penalty = torch.ones_like(W[:1, :1])
        self.penalty[..., -1] = loss.bias_penalty
        self.tiny, self.eps = torch.finfo(W.dtype).tiny, torch.finfo(W.dtype).eps
        self.agree = design.X.part.same_

    def dot(self, a: Tensor, b: Tensor) -> Tensor:
        """The inner product of each independent problem, (B, K or 1, 1)."""
        return (a * b).sum(self.loss.dims, keepdim=True)

    def dot_rows(self, a: Tensor, b: Tensor) -> Tensor:
        """The inner product of what belongs to rows, (B, K or 1, 1)."""
        return self.design.X.total(a * b, self.loss.dims)

    def norm(self, a: Tensor) -> Tensor:
        """The length of each independent problem's part, (B, K or 1, 1)."""
        length: Tensor = torch.linalg.vector_norm(a, dim=self.loss.dims, keepdim=True)
        return length

    def value(self, W: Tensor, F: Tensor) -> Tensor:
        """The objective, (B, K or 1, 1)."""
        loss = self.loss.value(F)
        self.design.X.part.sum_(loss)
        return 0.5 * self.dot(self.penalty * W, W) + loss

    def gradient(self, W: Tensor, F: Tensor) -> Tensor:
        """The gradient of the objective by W, (B, K, D + 1)."""
        return self.design.collect(self.loss.slope(F)).addcmul_(self.penalty, W)

    def direction(self, g: Tensor, F: Tensor, forcing: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """The Newton direction by preconditioned conjugate gradients, and its responses: (B, K, D + 1), (B, K, N)."""
        curvature = self.loss.curvature(F)
        inverse = self.preconditioner.at(self.design, self.penalty, self.loss.diagonal(curvature), active)
        d, U, r = torch.zeros_like(g), torch.zeros_like(F), -g
        p = self.level(inverse(r))
        size = rz = self.dot(r, p)
        target = forcing.square() * rz
        so_far = self.n_products
        for _ in range(CG_STEPS):
            q = self.design.respond(p)
            Hp = self.design.collect(self.loss.bend(curvature, q)).addcmul_(self.penalty, p)
            self.n_products += 1
            bent = self.dot(p, Hp)
            active = self.agree(active & (bent > self.eps * size))  # else what is left of p is rounding
            alpha = torch.where(active, rz / bent, 0)
            d.addcmul_(alpha, p)
            U.addcmul_(alpha, q)
            r.addcmul_(alpha, Hp, value=-1)
            z = self.level(inverse(r))
            before, rz = rz, self.dot(r, z)
            active = self.agree(active & (rz > target))
            if not bool(active.any()):
                break
            beta = torch.where(active, rz / before, 0)
            p = torch.addcmul(z, beta, p)
            size = rz + beta.square() * size
        self.preconditioner.count(self.n_products - so_far)
        return d, U

    def level(self, p: Tensor) -> Tensor:
        """P without what adds the same to the responses of all classes, which a softmax cannot tell, (B, K, D + 1)."""
        if -2 in self.loss.dims and p.shape[-2] > 1:
            p[..., -1] -= p[..., -1].mean(-1, keepdim=True)
        return p

    def search(self, W: Tensor, F: Tensor, d: Tensor, U: Tensor) -> Tensor:
        """Where the objective is least along d, by Newton's method within a bracket, (B, K or 1, 1)."""
        pull, stiffness = self.dot(self.penalty * W, d), self.dot(self.penalty * d, d)
        first = pull + self.dot_rows(self.loss.slope(F), U)
        low, high, t = torch.zeros_like(first), torch.full_like(first, torch.inf), torch.ones_like(first)
        for _ in range(SEARCH_STEPS):
            at = torch.addcmul(F, t, U)
            slope = pull + t * stiffness + self.dot_rows(self.loss.slope(at), U)
            if bool(self.agree((slope.abs() <= FLAT * first.abs()).all())):
                break
            low, high = torch.where(slope < 0, t, low), torch.where(slope < 0, high, t)
            bend = stiffness + self.dot_rows(self.loss.bend(self.loss.curvature(at), U), U)
            step = torch.minimum(t - slope / bend.clamp_min(self.tiny), 4 * t)
            middle = torch.where(high.isinf(), 2 * low, (low + high) / 2)
            t = self.agree(torch.where((step > low) & (step < high), step, middle))
        return t
