"""Which of a few unknown linear maps takes each input to its partner: a mixture of linear regressions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

HOT, COOLING = 20.0, 0.9  # the first temperature, and what it is multiplied by in each step down to 1
STEPS = 80  # at most, of which the first 30 are hot
WARM = 5.0  # the temperature from which a mended mixture cools again
RIDGE = 1e-3  # of the mean square of the inputs
RARE = 1e-4  # what is left to a map that explains nothing
RAREST = 0.1  # of the mean share of pairs: maps with less are none
CHANCE = 0.02  # of a pair that no map explains
SAME = 0.03  # of the variance of partners: maps whose images differ by less are one map
SETTLED = 1e-4  # what memberships change by in a step at the end, on average
TRIES = 6  # starts, unless the best one is found twice


@dataclass
class Mixture:
    """Maps (S, D1, D2), how likely each pair belongs to each of them (N, S), and the mean of minus log-likelihoods."""

    maps: Tensor
    belongs: Tensor
    cost: float
    variance: float

    def __len__(self) -> int:
        return len(self.maps)


def find(x: Tensor, y: Tensor, count: int, generator: torch.Generator) -> Mixture:
    """The best of some mixtures of `count` maps from x (N, C, D1) to y (N, C, D2), each from a random start.

    Every start is annealed: memberships are soft at first and harden as the temperature falls. What is left doubled
    where another map has to serve two is mended by splits and merges.
    """
    best: Mixture | None = None
    close = 0.01 * y.shape[1] * y.shape[2]
    for _ in range(TRIES if count > 1 else 1):
        belongs = torch.rand(len(x), count, generator=generator, dtype=x.dtype)
        found = settle(x, y, belongs / belongs.sum(1, keepdim=True), HOT)
        found = _merged(x, y, _mended(x, y, found, generator))
        before, best = best, found if best is None or found.cost < best.cost else best
        if before is not None and abs(found.cost - before.cost) < close:
            break  # the best so far was found twice
    assert best is not None
    return best


def settle(x: Tensor, y: Tensor, belongs: Tensor, heat: float = 1.0, doubt: bool = False) -> Mixture:
    """Expectation and maximisation in turn until memberships do not change, from some memberships (N, S).

    With `doubt`, a pair may belong to no map: then its partner is any, and its memberships add up to less than one.
    """
    numbers = y.shape[1] * y.shape[2]
    loose = y.square().mean().clamp_min(1e-12)
    for _ in range(STEPS):
        maps = regress(x, y, belongs)
        errors = _errors(x, y, maps)
        trusted = belongs.sum().clamp_min(1e-12)
        variance = ((belongs * errors).sum() / trusted / numbers).clamp_min(1e-6 * loose)
        logs = -errors / (2 * variance) + belongs.mean(0).clamp_min(RARE).log()
        if doubt:
            none = -y.square().sum((1, 2), keepdim=True)[:, :, 0] / (2 * loose) + numbers / 2 * (variance / loose).log()
            logs = torch.cat([logs, none + torch.tensor(CHANCE).log()], 1)
        now = torch.softmax(logs / heat, 1)[:, : len(maps)]
        change, belongs = float((now - belongs).abs().mean()), now
        if heat == 1 and change < SETTLED:
            break
        heat = max(1.0, heat * COOLING)
    cost = -(logs.logsumexp(1) - numbers / 2 * variance.log()).mean()
    return Mixture(maps, belongs, float(cost), float(variance))


def regress(x: Tensor, y: Tensor, belongs: Tensor) -> Tensor:
    """The ridge regression of y on x for each column of memberships, (S, D1, D2)."""
    few = RIDGE * x.square().mean() * torch.eye(x.shape[2], dtype=x.dtype)
    maps = []
    for weight in belongs.T:
        weighted = (x * weight[:, None, None]).flatten(0, 1)
        gram = weighted.T @ x.flatten(0, 1) + few * weight.sum().clamp_min(1.0)
        maps.append(torch.linalg.solve(gram, weighted.T @ y.flatten(0, 1)))
    return torch.stack(maps)


def _merged(x: Tensor, y: Tensor, mixture: Mixture) -> Mixture:
    """The mixture without maps that are doubled or explain next to nothing, and where pairs may belong to none."""
    variance = y.flatten(0, 1).var(0).mean()
    mixture = settle(x, y, mixture.belongs, doubt=True)
    while len(mixture) > 1:
        share, gaps, belongs = mixture.belongs.mean(0), _gaps(x, mixture.maps), mixture.belongs.clone()
        i, gone = divmod(int(gaps.argmin()), len(mixture))
        if share.min() < RAREST * share.mean():
            gone = int(share.argmin())
        elif gaps[i, gone] < SAME * variance:
            belongs[:, i] += belongs[:, gone]
        else:
            break
        kept = [s for s in range(len(mixture)) if s != gone]
        mixture = settle(x, y, belongs[:, kept], doubt=True)
    return mixture


def _mended(x: Tensor, y: Tensor, mixture: Mixture, generator: torch.Generator) -> Mixture:
    """The mixture, better by as many as possible of these: two like maps become one, the worst one becomes two."""
    for _ in range(len(mixture) if len(mixture) > 1 else 0):
        share = mixture.belongs.sum(0)
        errors = _errors(x, y, mixture.maps)
        worst = int(((mixture.belongs * errors).sum(0) / share.clamp_min(1)).argmax())
        gaps = _gaps(x, mixture.maps)
        gaps[worst], gaps[:, worst] = torch.inf, torch.inf
        i, j = divmod(int(gaps.argmin()), len(mixture)) if len(mixture) > 2 else (1 - worst, 1 - worst)
        belongs = mixture.belongs.clone()
        if i != j:
            belongs[:, i] += belongs[:, j]
        half = torch.rand(len(x), generator=generator, dtype=x.dtype)
        belongs[:, j] = half * belongs[:, worst]
        belongs[:, worst] *= 1 - half
        tried = settle(x, y, belongs, WARM)
        if not tried.cost < mixture.cost - 0.01:
            break
        mixture = tried
    return mixture


def _errors(x: Tensor, y: Tensor, maps: Tensor) -> Tensor:
    """The squared distance between each partner and what each map makes of the input, (N, S)."""
    return torch.stack([(y - x @ A).square().sum((1, 2)) for A in maps], 1)


def _gaps(x: Tensor, maps: Tensor) -> Tensor:
    """The variance of the difference between what every two maps make of inputs, (S, S), infinite on the diagonal."""
    gram = torch.cov(x.flatten(0, 1).T).view(x.shape[2], x.shape[2])
    off = maps[:, None] - maps[None]
    gaps = torch.einsum("stde,df,stfe->st", off, gram, off) / maps.shape[2]
    return gaps.fill_diagonal_(torch.inf)
