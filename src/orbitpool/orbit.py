"""The mathematics of the paper's eqs 5-10 and 12-13, as pure torch functions.

Letters: N inputs v of D1 numbers, K filters W of D2 numbers, S transformations T_s, hidden biases b (K, S), visible
biases c (D1,). Hidden unit (j, s) says that filter j is present in pose s; at most one s is on for each j (eq. 6).

Shapes are stated as mathematics has them, (N, K, S). The fast paths keep the batch last in memory, so a tensor of
that shape is often a permuted view; what reduces over poses here puts the batch last again and streams through memory.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import softplus

from orbitpool.transforms import TransformSet

OFF = -1  # the pose of a filter that is not there
SAFE = 80.0  # the exponentials of thousands of logits below it can be added up in float32

__all__ = [
    "Binary",
    "Gaussian",
    "Visible",
    "decode",
    "energy",
    "free_energy",
    "hidden",
    "infer_",
    "logits",
    "pooled",
    "posterior",
    "sample",
    "templates",
    "total",
]


def templates(W: Tensor, transforms: TransformSet) -> Tensor:
    """Every filter in every pose, T_s' w_j, (K, S, D1)."""
    return transforms.orbit(W)


def logits(v: Tensor, templates: Tensor, bias: Tensor) -> Tensor:
    """How well filter j in pose s explains v: w_j' T_s v + b_js, (N, K, S). The exponent of eq. 7."""
    if v.shape[-1] != templates.shape[-1]:
        raise ValueError(
            f"inputs have {v.shape[-1]} numbers but templates have {templates.shape[-1]}; "
            "both are pixels x channels of the receptive field"
        )
    if bias.shape != templates.shape[:2]:
        raise ValueError(
            f"bias has shape {tuple(bias.shape)}; templates of {tuple(templates.shape[:2])} poses need one each"
        )
    return (templates.permute(1, 0, 2) @ v.T).permute(2, 1, 0) + bias


def posterior(logits: Tensor, overwrite: bool = False) -> Tensor:
    """Probability of each pose of each filter, (N, K, S); the off state takes the rest. Eqs 7 and 12.

    With `overwrite`, which allows no gradients, the result takes the place of the logits.
    """
    if overwrite:
        return infer_(logits)[0]
    if logits.shape[-1] == 1:
        return logits.sigmoid()
    a = logits.permute(2, 1, 0)
    peak = a.detach().amax(0).clamp_min_(0)
    weights = (a - peak).exp()
    return (weights / (weights.sum(0) + peak.neg_().exp_())).permute(2, 1, 0)


def infer_(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Probability of each pose, (N, K, S), in place of the logits, and of any pose, (N, K); without gradients."""
    if logits.shape[-1] == 1:
        p = logits.sigmoid_()
        return p, p[..., 0]
    a = logits.permute(2, 1, 0)
    off: Tensor | float = 1.0
    if not _safe(a):
        peak = a.amax(0).clamp_min_(0)
        a -= peak
        off = peak.neg_().exp_()
    on = a.exp_().sum(0)
    total = on + off
    return a.div_(total).permute(2, 1, 0), on.div_(total).T


def total(logits: Tensor, overwrite: bool = False) -> Tensor:
    """Evidence for each filter in any pose, log sum_s exp a_s, (N, K)."""
    a = logits.permute(2, 1, 0)
    peak = a.detach().amax(0)
    return ((a.sub_(peak) if overwrite else a - peak).exp_().sum(0).log() + peak).T


def pooled(logits: Tensor, overwrite: bool = False) -> Tensor:
    """Probability that each filter is on in any pose, (N, K). Eq. 10."""
    if logits.shape[-1] == 1:
        return (logits.sigmoid_() if overwrite else logits.sigmoid())[..., 0]
    if overwrite and _safe(logits):
        on = logits.permute(2, 1, 0).exp_().sum(0)
        return (on / (1 + on)).T
    return total(logits, overwrite).sigmoid()


def sample(posterior: Tensor, generator: torch.Generator) -> Tensor:
    """Draw the pose of each filter, (N, K) integers, -1 where the filter is off."""
    _check_generator(generator, posterior)
    p = posterior.permute(2, 1, 0)
    dtype = torch.promote_types(p.dtype, torch.float32)  # half precision has too few numbers near zero to draw from
    u = torch.empty_like(p[0], dtype=dtype).uniform_(generator=generator)
    pose = torch.zeros_like(u, dtype=torch.uint8 if len(p) < 256 else torch.int16)
    for p_s in p:  # walk down the cumulative distribution: u falls below zero in the pose that is drawn
        u -= p_s
        pose += (u >= 0).view(torch.uint8)
    return torch.where(pose == len(p), OFF, pose.long()).T


def hidden(pose: Tensor, n_poses: int, dtype: torch.dtype | None = None) -> Tensor:
    """The hidden units H that a pose index stands for, (N, K, S) of zeros and ones. Eq. 6."""
    each = torch.arange(n_poses, device=pose.device)[:, None]
    return (pose.T[:, None] == each).to(dtype or torch.get_default_dtype()).permute(2, 0, 1)


class Visible(Protocol):
    """What the model assumes of its inputs: the one place where binary and real-valued inputs differ."""

    def scaled(self, v: Tensor) -> Tensor:
        """Inputs as the filters see them, (N, D1)."""

    def mean(self, x: Tensor, c: Tensor) -> Tensor:
        """E[v | h] from the filters' sum x, (N, D1)."""

    def bias(self, v: Tensor) -> Tensor:
        """Visible biases that alone give the mean of some inputs, (D1,)."""

    def draw(self, mean: Tensor, generator: torch.Generator) -> Tensor:
        """Sample v from its conditional mean, (N, D1)."""

    def energy(self, v: Tensor, c: Tensor) -> Tensor:
        """The part of the energy that the hidden units have no share in, (N,)."""


class Binary:
    """Inputs in [0, 1], each the probability of a bit."""

    def scaled(self, v: Tensor) -> Tensor:
        """Inputs as the filters see them, (N, D1)."""
        return v

    def mean(self, x: Tensor, c: Tensor) -> Tensor:
        """sigmoid(x + c), (N, D1). Eqs 4, 8 and 13."""
        return torch.sigmoid(x + c)

    def bias(self, v: Tensor) -> Tensor:
        """Logit of the mean, away from 0 and 1, (D1,)."""
        return torch.logit(v.mean(0).clamp(0.01, 0.99))

    def draw(self, mean: Tensor, generator: torch.Generator) -> Tensor:
        """Bits with the given means, (N, D1)."""
        _check_generator(generator, mean)
        return torch.bernoulli(mean, generator=generator)

    def energy(self, v: Tensor, c: Tensor) -> Tensor:
        """-c'v, (N,)."""
        return -(v @ c)


class Gaussian:
    """Real-valued inputs with noise of standard deviation sigma."""

    def __init__(self, sigma: float | Tensor = 1.0) -> None:
        if not isinstance(sigma, Tensor) and not sigma > 0:  # a tensor's value would have to be waited for
            raise ValueError(f"sigma is {sigma}; a standard deviation must be greater than 0")
        self.sigma = sigma

    def scaled(self, v: Tensor) -> Tensor:
        """V / sigma, (N, D1)."""
        return v / self.sigma

    def mean(self, x: Tensor, c: Tensor) -> Tensor:
        """Sigma x + c, (N, D1)."""
        return torch.addcmul(c, self.sigma, x) if isinstance(self.sigma, Tensor) else self.sigma * x + c

    def bias(self, v: Tensor) -> Tensor:
        """The mean, (D1,)."""
        return v.mean(0)

    def draw(self, mean: Tensor, generator: torch.Generator) -> Tensor:
        """Mean plus noise, (N, D1)."""
        _check_generator(generator, mean)
        noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
        return mean + self.sigma * noise

    def energy(self, v: Tensor, c: Tensor) -> Tensor:
        """|v - c|^2 / (2 sigma^2), (N,)."""
        return ((v - c) / self.sigma).square().sum(-1) / 2


def decode(h: Tensor, templates: Tensor, c: Tensor, visible: Visible) -> Tensor:
    """E[v | h], (N, D1). Eq. 8; with the posterior in place of h, eq. 13."""
    return visible.mean(torch.einsum("nks,ksd->nd", h, templates), c)


def energy(v: Tensor, h: Tensor, templates: Tensor, bias: Tensor, c: Tensor, visible: Visible) -> Tensor:
    """E(v, H), (N,). Eq. 5."""
    return visible.energy(v, c) - (h * logits(visible.scaled(v), templates, bias)).sum((1, 2))


def free_energy(v: Tensor, total: Tensor, c: Tensor, visible: Visible) -> Tensor:
    """-log sum_H exp(-E(v, H)), (N,), from the `total` of the scaled inputs' logits."""
    return visible.energy(v, c) - softplus(total, threshold=40).sum(-1)


def _safe(logits: Tensor) -> bool:
    """Whether exponentials can be added up as they are, if that is quickly said: a GPU would have to be waited for."""
    roomy = logits.device.type == "cpu" and logits.numel() > 0 and torch.finfo(logits.dtype).max > 1e38
    return roomy and bool(logits.amax() < SAFE)


def _check_generator(generator: torch.Generator, x: Tensor) -> None:
    here, there = x.device, generator.device
    if here.type != there.type or (here.index or 0) != (there.index or 0):
        raise ValueError(
            f"generator is on {there} but the numbers are on {here}; make it with torch.Generator({str(here)!r})"
        )
