"""Transformation-invariant orthogonal matching pursuit: eqs 14 and 15 of the paper."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from orbitpool import encoders, together
from orbitpool.kernels import move, reduce_orbit, shortened
from orbitpool.kernels.products import fused
from orbitpool.learners import checks
from orbitpool.learners.base import Learner, Parameters
from orbitpool.learners.training import State
from orbitpool.transforms import TransformSet

MEMORY = 50  # inputs to a filter that `partial_fit` remembers


class TIOMP(Learner):
    """Sparse coding with filters in poses: each input is a sum of at most `gamma` filters, each in at most one pose.

    Codes are found by orthogonal matching pursuit, filters by descent on the squared error with |w_j| <= 1: once an
    epoch, from sums over all of its batches. Filters that an epoch did not use start anew from inputs of its first
    batch. `partial_fit` takes smaller steps, because it sees a part of the data.
    Without transformations it is OMP-gamma dictionary learning; with `gamma=1`, spherical k-means.
    A GPU adds up sums over inputs in no fixed order, so filters come out the same there but for the last digits.

    Parameters
    ----------
    n_components : int
        Number of filters K.
    transforms : TransformSet, "auto" or None
        The poses; found in the inputs, 500 images or more, or None for one pose that covers the whole input.
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
    precision : {"auto", "full", "bfloat16"}
        Of the products that choose filters and poses in learning; coefficients and filters keep the precision of the
        inputs. Otherwise as in `TIRBM`. Codes, too, are always computed in full.
    batch_size, early_stopping, validation_fraction, n_iter_no_change, checkpoint, checkpoint_every, verbose, device, \
random_state
        As in `TIRBM`.

    Attributes
    ----------
    components_ : array (K, D2 C)
    history_ : dict of lists
        One value an epoch: reconstruction_error, sparsity (share of filters used), validation_error, seconds.
    n_iter_ : int
    transforms_, discovery_
        As in `TIRBM`.
    """

    PARAMETERS: ClassVar = {"W": "components_"}
    REPLAYS: ClassVar = True

    def __init__(
        self,
        n_components: int = 256,
        transforms: TransformSet | Literal["auto"] | None = None,
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
        precision: Literal["auto", "full", "bfloat16"] = "auto",
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
        self.precision = precision
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
        checks.one_of("precision", self.precision, ("auto", "full", "bfloat16"))

    def _begin(self, look: Tensor, generator: torch.Generator) -> Parameters:
        W = _unit(self._windows(look, generator))
        return {
            "W": W,
            "spare": W.clone(),
            "gain": self._gain(W),
            "pull": torch.zeros_like(W),  # sum_n h_nj T_s r_n, minus the gradient of the squared error
            "weight": W.new_zeros(len(W), len(self._operators)),  # sum_n h_njs^2, what the gradient changes with
            "used": W.new_zeros(()),  # share of the filters that the last epoch used
        }

    def _windows(self, v: Tensor, generator: torch.Generator) -> Tensor:
        """Random inputs seen through random poses, (K, D2): what filters start from, and unused ones become."""
        K, place = self.n_components, generator.device
        rows = torch.cat([torch.randperm(len(v), generator=generator, device=place) for _ in range(-(-K // len(v)))])[
            :K
        ]
        poses = torch.randint(len(self._operators), (K,), generator=generator, device=place)
        return _chosen(self._operators.apply(v[rows.to(v.device)]), poses.to(v.device)[:, None])[:, 0]

    @property
    def _few_rows(self) -> int:
        """Rows whose every pose, template and residual fits into 128 MB."""
        field, poses = self.n_features_in_, len(self._operators)
        return max(1, 2**25 // (poses * (int(self.n_components) + self._filter_size + field) + 2 * self.gamma * field))

    def _gain(self, W: Tensor) -> Tensor:
        """What makes each transformed filter of unit norm, if that is wanted, (K, S)."""
        if not self.unit_norm:
            return W.new_ones(len(W), len(self._operators))
        return encoders.unit_gain(self._operators.orbit(W))

    def _begin_epoch(self, state: State, v: Tensor) -> None:
        t = state.tensors
        t["spare"].copy_(_unit(self._windows(v, state.generator)))
        t["gain"].copy_(self._gain(t["W"]))
        t["pull"].zero_()
        if not self._session.partial:
            t["weight"].zero_()

    @torch.no_grad()
    def _update(self, state: State, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        t, part = state.tensors, together.part(len(v))
        v = v[part.own]
        j, s, h, residual = self._pursue(v, t["W"], t["gain"], self.precision)
        windows = _chosen(self._operators.apply(residual), s)  # T_s r
        coefficient = h * t["gain"][j, s]
        pull, weight = (t[name] if part.whole else torch.zeros_like(t[name]) for name in ("pull", "weight"))
        pull.index_add_(0, j.flatten(), (coefficient[..., None] * windows).flatten(0, 1))
        each = (j * len(self._operators) + s).flatten()
        weight.view(-1).index_add_(0, each, coefficient.square().flatten())
        error, energy = residual.square().mean(), v.square().mean()
        if not part.whole:
            figures = part.weigh(torch.stack([error, energy]))
            part.sum_(pull, weight, figures)
            t["pull"] += pull
            t["weight"] += weight
            error, energy = figures
        return error, t["used"], energy

    def _end_epoch(self, state: State) -> None:
        """Move every filter to the minimum of a bound on the squared error, into the unit ball; restart unused ones.

        When only a part of the data is here, the weight of what was seen before stays and fades, and steps are small.
        """
        t, used = state.tensors, state.tensors["weight"].sum(1) > 0
        curvature = self.gamma * t["weight"] @ self._curvature(t["W"])
        W = t["W"] + t["pull"] / curvature.clamp_min(torch.finfo(curvature.dtype).tiny)
        W /= W.norm(dim=1, keepdim=True).clamp_min(1)
        t["W"].copy_(torch.where(used[:, None], W, t["spare"]))
        t["used"].copy_(used.to(W.dtype).mean())
        if self._session.partial:
            t["weight"] *= max(0.0, 1 - state.at.rows / (MEMORY * self.n_components))

    def _measure(self, state: State) -> dict[str, float]:
        return {"sparsity": float(state.tensors["used"]), **super()._measure(state)}

    def _curvature(self, W: Tensor) -> Tensor:
        """A diagonal bound on each T_s T_s', (S, D2)."""
        rows = [abs(T) @ (abs(T).T @ np.ones(T.shape[0])) for T in self._operators.matrices()]
        bound = torch.as_tensor(np.stack(rows)).to(W.device, W.dtype)
        return bound.repeat_interleave(W.shape[1] // bound.shape[1], dim=1)

    def _pursue(
        self, v: Tensor, W: Tensor, gain: Tensor, precision: str = "full"
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Filters j, poses s and coefficients h of each input, (N, gamma) each, and what they leave over, (N, D1).

        Filters in poses are made orthogonal one after the other, as in a QR decomposition. Only the choice of filters
        and poses depends on the precision.
        """
        templates = (self._operators.orbit(W) * gain[..., None]).contiguous()  # (K, S, D1)
        searched, residual, Q = shortened(W, precision), v, v.new_empty(len(v), 0, v.shape[1])
        js, ss = (torch.empty(len(v), 0, dtype=torch.int64, device=v.device) for _ in range(2))
        R = []
        for _ in range(self.gamma):
            j, s = self._best(residual, searched, gain, templates, js)
            q, r = _orthogonal(templates[j, s], Q)
            residual = residual - (q * residual).sum(1, keepdim=True) * q
            js, ss, Q = (torch.cat([old, new[:, None]], 1) for old, new in ((js, j), (ss, s), (Q, q)))
            R.append(r)
        return js, ss, _back_substitution(R, (Q @ v[..., None]).squeeze(-1)), residual

    def _best(self, v: Tensor, W: Tensor, gain: Tensor, templates: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
        """Filter j and pose s with the largest |w_j' T_s v| gain_js, the first ones of equals, (N,) each.

        A filter is used in one pose at most: those in `used`, (N, i), are left out.
        """
        if fused(W) and W.dtype == torch.bfloat16:
            from orbitpool.kernels import best as kernel

            if kernel.room(W):
                u: Any = move(v, self._operators, W)
                j, s = kernel.best(u, W, gain, pad(used, (0, 0, 0, len(u) - len(v))))
                return j[: len(v)], s[: len(v)]
        score = reduce_orbit(v, W[:, : self._filter_size], self._operators, how=_largest, scale=gain)
        j = score.scatter_(1, used, -1.0).argmax(1)
        return j, (templates[j] @ v[..., None]).squeeze(-1).abs().argmax(1)

    def _encoder(self, t: Parameters) -> encoders.Encoder:
        gain = self._gain(t["W"]) if self.unit_norm else None
        return encoders.soft_threshold(t["W"], self._operators, self.alpha, self.two_sided, gain)

    def _decoder(self, t: Parameters) -> Callable[[Tensor], Tensor]:
        gain = self._gain(t["W"])
        return lambda v: v - self._pursue(v, t["W"], gain)[3]

    def _advice(self, epoch: int) -> str:
        return "scale the inputs to unit variance"

    def code(self, X: Any) -> Any:
        """The coefficient of each filter, (N, K), zero for all but `gamma` of them. H of eq. 14, summed over poses."""

        def coefficients(t: Parameters) -> Callable[[Tensor], Tensor]:
            gain = self._gain(t["W"])

            def code(v: Tensor) -> Tensor:
                j, _, h, _ = self._pursue(v, t["W"], gain)
                return v.new_zeros(len(v), len(t["W"])).scatter_(1, j, h)

            return code

        return self._map(coefficients, X, few=True)

    def pose(self, X: Any) -> Any:
        """Index of the pose in which each filter is used, (N, K), -1 where it is not."""

        def poses(t: Parameters) -> Callable[[Tensor], Tensor]:
            gain = self._gain(t["W"])

            def pose(v: Tensor) -> Tensor:
                j, s, _, _ = self._pursue(v, t["W"], gain)
                return torch.full((len(v), len(t["W"])), -1, device=v.device).scatter_(1, j, s)

            return pose

        return self._map(poses, X, few=True)


def _largest(a: Tensor) -> Tensor:
    """max_s |a_s|, (n, k)."""
    poses_first = a.permute(2, 1, 0)
    return torch.maximum(poses_first.amax(0), -poses_first.amin(0)).T


def _chosen(u: Tensor, s: Tensor) -> Tensor:
    """Of inputs in every pose, (N, S, D2), those in the poses s, (N, i), of each input, (N, i, D2)."""
    return u.gather(1, s[..., None].expand(-1, -1, u.shape[2]))


def _orthogonal(atom: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
    """What of each atom is orthogonal to Q, (N, i, D1), at unit length, and the atom's coefficients, (N, i + 1)."""
    q, r = atom, atom.new_zeros(Q.shape[:2])
    for _ in range(2 if Q.shape[1] else 0):  # the second time takes away what rounding has left
        along = Q @ q[..., None]
        q, r = q - (Q.mT @ along).squeeze(-1), r + along.squeeze(-1)
    ridge = 10 * torch.finfo(q.dtype).eps * atom.square().sum(1, keepdim=True) + 1e-20  # for atoms that are alike
    length = (q.square().sum(1, keepdim=True) + ridge).sqrt()
    return q / length, torch.cat([r, length], 1)


def _back_substitution(R: list[Tensor], x: Tensor) -> Tensor:
    """H with R h = x, (N, i), in place of x; R has the columns (N, 1), (N, 2), …, without the zeros below.

    A library's solver may make a GPU wait.
    """
    for i in reversed(range(len(R))):
        x[:, i] /= R[i][:, i]
        x[:, :i] -= R[i][:, :i] * x[:, i : i + 1]
    return x


def _unit(W: Tensor) -> Tensor:
    return W.div(W.norm(dim=1, keepdim=True).clamp_min(1e-8))
