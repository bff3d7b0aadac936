"""Linear maps between images whose pixels take from few pixels near one place: a regression for each pixel.

Where each pixel takes from is a smooth flow. It is read off correlations first, or off a regression on all pixels,
whichever leads further, and off the local regression's own weights then. A pixel's weights are drawn towards those of
interpolation at the flow, the more the less its data says; a pixel that never varies has them alone, and nothing where
the flow leaves the field.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from orbitpool.transforms.motions import affine, centres, grid
from orbitpool.transforms.set import Shape

RADII = (4, 3, 2)  # pixels around the flow that a pixel may take from, in each pass
SPREAD = 0.1  # by how much weights are expected to differ from those of interpolation
NOISE = 1e-3  # of the mean square of a pixel: the least that is taken for noise
SMOOTH = 2.0  # pixels over which the flow is averaged where it is no affine map
STIFF = 5.0  # pixels' worth of trust with which it keeps to the affine map
THIN = 0.3  # the least sum of weights with which a pixel says where it takes from
FAINT = 0.03  # weights below this part of a pixel's largest are nothing


@dataclass
class Moments:
    """Sums over pairs: x x' (D1, D1), x y' (D1, D2), y^2 (D2,), and how many rows were added up."""

    xx: Tensor
    xy: Tensor
    yy: Tensor
    n: int


def moments(X: Tensor, Y: Tensor) -> Moments:
    """Of inputs (n, D1) and their partners (n, D2)."""
    return Moments(X.T @ X, X.T @ Y, Y.square().sum(0), len(X))


def local_map(m: Moments, field: Shape, window: Shape, like: Tensor | None = None) -> Tensor:
    """The map (D2, D1) from fields to windows that explains the moments best and keeps to a smooth flow.

    With a map that it is `like`, the flow begins with that one's.
    """
    start, trust = grid(field), (m.yy / m.yy.mean().clamp_min(1e-12)).clamp(max=1)
    if like is None:
        begun = [start[peaks.argmax(0)] for peaks in (_alike(m), _weights(m))]
        tried = [_followed(m, points, trust, field, window, RADII) for points in begun]
        T, _ = min(tried, key=lambda each: float((each[1] * m.yy).sum()))
    else:
        points, mass = centres(like, start)
        T, _ = _followed(m, points, trust * (mass > THIN), field, window, RADII[-1:])
    return T * (T.abs() >= FAINT * T.abs().amax(1, keepdim=True))


def _followed(
    m: Moments, points: Tensor, trust: Tensor, field: Shape, window: Shape, radii: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """The map (D2, D1) whose flow begins at some points, and the part of each pixel's squares unexplained."""
    goal = grid(window)
    for radius in (*radii, radii[-1]):
        T, error = _regress(m, smooth(goal, points, trust), field, radius)
        points, mass = centres(T, grid(field))
        trust = (1 - error) * trust * (mass > THIN)
    return T, error


def smooth(places: Tensor, points: Tensor, trust: Tensor) -> Tensor:
    """Points (D2, axes), one for each place, made smooth: an affine map, and averages of how far points are off it."""
    line = affine(places, points, trust)
    ideal = _at(line, places)
    off = points - ideal
    sure = trust / (1 + off.square().sum(1))
    near = torch.exp(-torch.cdist(places, places).square() / (2 * SMOOTH**2)) * sure
    return ideal + near @ off / (near.sum(1, keepdim=True) + STIFF)


def _at(line: Tensor, places: Tensor) -> Tensor:
    return places @ line[:-1] + line[-1]


def _alike(m: Moments) -> Tensor:
    """The cosine between every input pixel and every pixel of partners, (D1, D2), less for pixels that seldom vary."""
    xx = m.xx.diagonal()
    few = 0.05 * xx.mean()
    return m.xy / (xx + few).sqrt()[:, None] / (m.yy + few).sqrt()


def _weights(m: Moments) -> Tensor:
    """The weights of a ridge regression of every pixel on all, (D1, D2): sharper, where there is little noise."""
    few = 0.01 * m.xx.diagonal().mean() * torch.eye(len(m.xx), dtype=m.xx.dtype)
    solved: Tensor = torch.linalg.solve(m.xx + few, m.xy)
    return solved


def _regress(m: Moments, flow: Tensor, field: Shape, radius: int) -> tuple[Tensor, Tensor]:
    """Every pixel's regression on those near its flow: weights (D2, D1), and the part of its squares unexplained."""
    steps = grid((2 * radius + 1,) * len(field)) - radius
    near = (flow.round()[:, None] + steps).long()  # (D2, taps, axes)
    limits = torch.tensor(field)
    inside = ((near >= 0) & (near < limits)).all(2)
    strides = torch.tensor([prod(field[axis + 1 :]) for axis in range(len(field))])
    index = (near.clamp_min(0).minimum(limits - 1) * strides).sum(2)
    prior = (1 - (near - flow[:, None]).abs()).clamp_min(0).prod(2) * inside
    gram = m.xx[index[:, :, None], index[:, None, :]] * (inside[:, :, None] & inside[:, None, :])
    both = m.xy.T.gather(1, index) * inside
    floor = NOISE * (m.yy / m.n).clamp_min(1e-3 * m.yy.mean() / m.n)
    noise, eye = floor, torch.eye(index.shape[1], dtype=gram.dtype)
    for _ in range(2):  # the noise is not known before the first regression
        pull = noise[:, None, None] / SPREAD**2 * eye
        off = (both - (gram @ prior[..., None])[..., 0])[..., None]
        weights = (prior + torch.linalg.solve(gram + pull, off)[..., 0]) * inside
        left = m.yy - 2 * (weights * both).sum(1) + torch.einsum("dt,dtu,du->d", weights, gram, weights)
        noise = (left / m.n).maximum(floor)
    T = torch.zeros(len(flow), prod(field), dtype=gram.dtype).scatter_add_(1, index, weights)
    return T, (left / m.yy.clamp_min(1e-12)).clamp(0, 1)
