"""Transformation-invariant orthogonal matching pursuit: eqs 14 and 15 of the paper."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from orbitpool import encoders
from orbitpool.kernels import reduce_orbit
from orbitpool.learners import checks
from orbitpool.learners.base import Learner
from orbitpool.learners.training import State
from orbitpool.transforms import TransformSet


class TIOMP(Learner):
    """Sparse coding with filters in poses: each input is a sum of at most `gamma` filters, each in at most one pose.

    Codes are found by orthogonal matching pursuit, filters by descent on the squared error with |w_j| <= 1: once an
    epoch, from sums over all of its batches, so that the result does not depend on the size or order of batches.
    Without transformations it is OMP-gamma dictionary learning; with `gamma=1`, spherical k-means.

    Parameters
    ----------
    n_components : int
        Number of filters K.
    transforms : TransformSet or None
        The poses; None for one pose that covers the whole input.
    gamma : int
        Filters to an input.
    unit_norm : bool
        Rescale transformed filters to unit norm: interpolation makes them smaller, and an untransformed pose would win
        too often.
    alpha : float
        Threshold of the encoding max(response - alpha, 0).
    two_sided : bool
        Also give features of -v, 2 K in all.
    n_iter : int
        Epochs, each one alternation between codes and filters.
    batch_size, early_stopping, validation_fraction, n_iter_no_change, checkpoint, checkpoint_every, verbose, device, \
random_state
        As in `TIRBM`.

    Attributes
    ----------
    components_ : array (K, D2 C)
    history_ : dict of lists
        One value an epoch: reconstruction_error, sparsity (share of filters used), validation_error, seconds.
    n_iter_ : int
    """

    PARAMETERS: ClassVar = {"W": "components_"}

    def __init__(
        self,
        n_components: int = 256,
        transforms: TransformSet | None = None,
        *,
        gamma: int = 1,
        unit_norm: bool = True,
        alpha: float = 0.25,
        two_sided: bool = True,
        n_iter: int = 10,
        batch_size: int = 1000,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1000,
        verbose: bool = False,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.transforms = transforms
        self.gamma = gamma
        self.unit_norm = unit_norm
        self.alpha = alpha
        self.two_sided = two_sided
        self.n_iter = n_iter
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.verbose = verbose
        self.device = device
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        checks.whole("gamma", self.gamma)
        if self.gamma > self.n_components:
            raise ValueError(f"gamma is {self.gamma} but there are {self.n_components} filters; gamma <= n_components")
        checks.at_least("alpha", self.alpha, 0)

    def _begin(self, look: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        spare = self._windows(look, generator)
        return self._fresh_sums({"W": _unit(spare), "spare": spare})

    def _fresh_sums(self, t: dict[str, Tensor]) -> dict[str, Tensor]:
        """The state at the start of an epoch."""
        pose_sums = t["W"].new_zeros(len(t["W"]), len(self._operators))
        return t | {"gain": self._gain(t["W"]), "pull": torch.zeros_like(t["W"]), "weight": pose_sums}

    def _windows(self, v: Tensor, generator: torch.Generator) -> Tensor:
        """Random inputs seen through random poses, (K, D2): what unused filters become."""
        rows = torch.randint(len(v), (self.n_components,), generator=generator, device=v.device)
        poses = torch.randint(len(self._operators), (self.n_components,), generator=generator, device=v.device)
        seen = v.new_empty(self.n_components, self._filter_size)
        for s, operator in enumerate(self._operators):
            seen[poses == s] = operator.apply(v[rows[poses == s]])[:, 0]
        return seen

    def _gain(self, W: Tensor) -> Tensor:
        """What makes each transformed filter of unit norm, if that is wanted, (K, S)."""
        if not self.unit_norm:
            return W.new_ones(len(W), len(self._operators))
        lengths: Tensor = torch.linalg.vector_norm(self._operators.orbit(W), dim=-1)
        return lengths.clamp_min(1e-8).reciprocal()

    @torch.no_grad()
    def _update(self, state: State, v: Tensor) -> Tensor:
        t = state.tensors
        if state.at.batch == 0:
            t["spare"] = self._windows(v, state.generator)
        j, s, h, residual = self._pursue(v, t["W"], t["gain"])
        windows = self._operators.apply(residual)  # T_s r
        n = torch.arange(len(v), device=v.device)
        for j_i, s_i, h_i in zip(j.T, s.T, h.T, strict=True):
            coefficient = h_i * t["gain"][j_i, s_i]
            t["pull"].index_add_(0, j_i, coefficient[:, None] * windows[n, s_i])
            t["weight"].index_put_((j_i, s_i), coefficient.square(), accumulate=True)
        return torch.stack([residual.square().mean(), residual.new_tensor(len(torch.unique(j)) / self.n_components)])

    def _end_epoch(self, state: State) -> None:
        """Move every filter to the minimum of a bound on the squared error, into the unit ball; restart unused ones."""
        t, used = state.tensors, state.tensors["weight"].sum(1) > 0
        curvature = self.gamma * t["weight"] @ self._curvature(t["W"])
        W = t["W"] + t["pull"] / curvature.clamp_min(torch.finfo(curvature.dtype).tiny)
        W /= W.norm(dim=1, keepdim=True).clamp_min(1)
        t["W"] = torch.where(used[:, None], W, _unit(t["spare"]))
        state.tensors = self._fresh_sums(t)

    def _curvature(self, W: Tensor) -> Tensor:
        """A diagonal bound on each T_s T_s', (S, D2)."""
        rows = [abs(T) @ (abs(T).T @ np.ones(T.shape[0])) for T in self._operators.matrices()]
        bound = torch.as_tensor(np.stack(rows)).to(W.device, W.dtype)
        return bound.repeat_interleave(W.shape[1] // bound.shape[1], dim=1)

    def _pursue(self, v: Tensor, W: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Filters j, poses s and coefficients h of each input, (N, gamma) each, and what they leave over, (N, D1)."""
        residual, atoms = v, v.new_empty(len(v), 0, v.shape[1])
        js, ss = (torch.empty(len(v), 0, dtype=torch.int64, device=v.device) for _ in range(2))
        for _ in range(self.gamma):
            score = reduce_orbit(residual, W, self._operators, how=_largest, scale=gain)
            j = score.scatter_(1, js, -1.0).argmax(1)  # a filter is used in one pose at most
            s = (torch.einsum("nsd,nd->ns", self._operators.apply(residual), W[j]) * gain[j]).abs().argmax(1)
            js, ss = torch.cat([js, j[:, None]], 1), torch.cat([ss, s[:, None]], 1)
            atoms = torch.cat([atoms, self._atoms(j, s, W, gain)[:, None]], 1)
            h = _least_squares(atoms, v)
            residual = v - torch.einsum("ni,nid->nd", h, atoms)
        return js, ss, h, residual

    def _atoms(self, j: Tensor, s: Tensor, W: Tensor, gain: Tensor) -> Tensor:
        """Filter j_n in pose s_n for every input, (N, D1)."""
        windows = W.new_zeros(len(j), len(self._operators), W.shape[1])
        windows[torch.arange(len(j), device=W.device), s] = W[j] * gain[j, s][:, None]
        return self._operators.adjoint(windows)

    def _encode(self, v: Tensor, t: dict[str, Tensor]) -> Tensor:
        W = t["W"]
        return encoders.soft_threshold(v, W, self._operators, self.alpha, self.two_sided, self._gain(W))

    def _reconstruct(self, v: Tensor, t: dict[str, Tensor]) -> Tensor:
        return v - self._pursue(v, t["W"], self._gain(t["W"]))[3]

    def _advice(self, epoch: int) -> str:
        return "scale the inputs to unit variance"

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components) * (2 if self.two_sided else 1)

    def code(self, X: Any) -> Any:
        """The coefficient of each filter, (N, K), zero for all but `gamma` of them. H of eq. 14, summed over poses."""

        def coefficients(v: Tensor, t: dict[str, Tensor]) -> Tensor:
            j, _, h, _ = self._pursue(v, t["W"], self._gain(t["W"]))
            return v.new_zeros(len(v), self.n_components).scatter_(1, j, h)

        return self._map(coefficients, X, self._few_rows)

    def pose(self, X: Any) -> Any:
        """Index of the pose in which each filter is used, (N, K), -1 where it is not."""

        def poses(v: Tensor, t: dict[str, Tensor]) -> Tensor:
            j, s, _, _ = self._pursue(v, t["W"], self._gain(t["W"]))
            return torch.full((len(v), self.n_components), -1, device=v.device).scatter_(1, j, s)

        return self._map(poses, X, self._few_rows)


def _largest(a: Tensor) -> Tensor:
    """max_s |a_s|, (n, k)."""
    poses_first = a.permute(2, 1, 0)
    return torch.maximum(poses_first.amax(0), -poses_first.amin(0)).T


def _least_squares(atoms: Tensor, v: Tensor) -> Tensor:
    """Coefficients that bring the sum of (N, i, D1) atoms closest to v, (N, i)."""
    gram = atoms @ atoms.mT
    ridge = torch.finfo(v.dtype).eps * gram.diagonal(dim1=1, dim2=2).mean(1).clamp_min(1e-30)
    gram.diagonal(dim1=1, dim2=2).add_(ridge[:, None])
    solution: Tensor = torch.linalg.solve(gram, atoms @ v[..., None])
    return solution.squeeze(-1)


def _unit(W: Tensor) -> Tensor:
    return W.div(W.norm(dim=1, keepdim=True).clamp_min(1e-8))
