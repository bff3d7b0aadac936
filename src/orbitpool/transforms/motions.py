"""Motions of images by numbers: how far they turn, grow, lean and shift, as operators with their slopes, and back.

A motion is six numbers: turn (radians anticlockwise), scale (the logarithm of how many times larger), stretch (the
logarithm of how many times taller, and narrower), shear (columns by which a row leans to the right for each row above
the centre), down and right (pixels of the field). All are about the centres of field and window.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import ceil, degrees, exp, pi, prod

import torch
from torch import Tensor

from orbitpool.transforms.set import Shape

FAMILIES = {"turn": (0,), "scale": (1,), "stretch": (2,), "shear": (3,), "shift": (4, 5)}
STEP = 1e-4  # pixels to both sides over which slopes are taken
ROBUST = 10  # rounds in which points that are off are trusted less
NEWTON = 8  # steps towards the motion of an operator


def matrices(motions: Tensor, mirrored: Tensor, field: Shape, window: Shape, clamp: bool = True) -> Tensor:
    """The operators (S, D2, D1) of motions, as `weigh` has them."""
    pixels, weights, _ = weigh(motions, mirrored, field, window, clamp)
    return weights.new_zeros(*weights.shape[:2], prod(field)).scatter_add_(2, pixels, weights)


def weigh(
    motions: Tensor,
    mirrored: Tensor,
    field: Shape,
    window: Shape,
    clamp: bool = True,
    free: Sequence[int] = (),
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The operators of motions, bilinear and antialiased as `rotations` and `scalings` are, and how they change.

    A pixel of the window is made of a few pixels of the field: which ones, (S, D2, n), their weights, and the slopes of
    these by each number of the motions that is `free`. At a pixel, where interpolation has a corner, the slope is the
    mean of both sides'.

    Parameters
    ----------
    motions : tensor (S, 6)
    mirrored : tensor (S,) of bool
        Which operators flip images left to right first.
    field, window : (int, int)
    clamp : bool
        Whether the outermost pixels are repeated outside the field, or nothing is there.
    free : sequence of int
        Columns of the motions.
    """
    aimed, widths = _aim(motions, mirrored, field, window)
    points = aimed.round(decimals=9)  # quarter turns become exact permutations, as in `rotations`
    rows, columns = (_around(points[..., axis], widths[:, axis], field[axis], clamp) for axis in (0, 1))

    def weights(points: Tensor, widths: Tensor) -> Tensor:
        down, right = (
            _triangles(near, points[..., axis], widths[:, axis], field[axis], clamp)
            for axis, near in enumerate((rows, columns))
        )
        return (down[..., :, None] * right[..., None, :]).flatten(2)

    def moved(column: int, by: float) -> Tensor:
        step = torch.zeros_like(motions)
        step[:, column] = by
        there, widths = _aim(motions + step, mirrored, field, window)
        return weights(points + (there - aimed), widths)

    units = [STEP / float(reach(window)[column]) for column in free]
    slopes = [(moved(c, by) - moved(c, -by)) / (2 * by) for c, by in zip(free, units, strict=True)]
    inside = rows.clamp(0, field[0] - 1)[..., :, None] * field[1] + columns.clamp(0, field[1] - 1)[..., None, :]
    return inside.flatten(2), weights(points, widths), slopes


def _aim(motions: Tensor, mirrored: Tensor, field: Shape, window: Shape) -> tuple[Tensor, Tensor]:
    """The places in the field of the window's pixels, (S, D2, 2), and how far apart neighbours lie there, (S, 2)."""
    A = linear_parts(motions, mirrored)
    places = grid(window).to(motions)
    centred = places - (places.new_tensor(window) - 1) / 2
    points = centred @ A.mT - motions[:, None, 4:] + (places.new_tensor(field) - 1) / 2
    return points, A.square().sum(2).sqrt().clamp_min(1)


def _around(x: Tensor, width: Tensor, size: int, clamp: bool) -> Tensor:
    """The pixels of a row of `size` that triangles of half-widths (S,) or a little more reach, (S, D2, n).

    They lie around points (S, D2), also outside of the row, but not further than any of its pixels can be.
    """
    most = min(ceil(float(width.max()) - 0.5 + 4 * STEP), size)
    x = x.clamp(0, size - 1) if clamp else x.clamp(-size, 2 * size)
    return x.round().long()[..., None] + torch.arange(-most, most + 1, device=x.device)


def _triangles(near: Tensor, x: Tensor, width: Tensor, size: int, clamp: bool) -> Tensor:
    """Weights of pixels (S, D2, n) of a row of `size` for points (S, D2), triangles of half-widths (S,)."""
    x = x.clamp(0, size - 1) if clamp else x
    weights = (1 - (near - x[..., None]).abs() / width[:, None, None]).clamp_min(0)
    inside = weights * ((near >= 0) & (near < size))
    whole = (inside if clamp else weights).sum(2, keepdim=True).clamp_min(1e-9)
    return torch.where((width > 1 + 1e-9)[:, None, None], inside / whole, inside)


def linear_parts(motions: Tensor, mirrored: Tensor) -> Tensor:
    """Where a step in the window leads in the field, (S, 2, 2), rows before columns."""
    turn, scale, stretch, shear = motions.T[:4]
    zero, cos, sin = torch.zeros_like(turn), turn.cos(), turn.sin()
    turned = torch.stack([cos, sin, -sin, cos], 1).view(-1, 2, 2)
    grown = torch.stack([(-stretch).exp(), zero, shear, stretch.exp()], 1).view(-1, 2, 2)
    flipped = torch.stack([torch.ones_like(turn), 1 - 2 * mirrored.to(turn)], 1)
    linear: Tensor = turned @ grown * (-scale).exp()[:, None, None] * flipped[:, None, :]
    return linear


def motion_of(line: Tensor, field: Shape, window: Shape) -> tuple[Tensor, bool]:
    """The motion (6,) of an affine map (3, 2) from places in the window to places in the field, and if it mirrors."""
    A, middle = line[:2].T, (line.new_tensor(window) - 1) / 2
    shift = (line.new_tensor(field) - 1) / 2 - (A @ middle + line[2])
    mirrored = bool(torch.linalg.det(A) < 0)
    A = A * A.new_tensor([1.0, -1.0]) if mirrored else A
    turn = torch.atan2(A[0, 1], A[1, 1])
    cos, sin = turn.cos(), turn.sin()
    grown = torch.stack([torch.stack([cos, -sin]), torch.stack([sin, cos])]) @ A
    tall, wide = grown[0, 0].clamp_min(1e-6).log(), grown[1, 1].clamp_min(1e-6).log()
    scale = -(tall + wide) / 2
    motion = torch.stack([turn, scale, (wide - tall) / 2, grown[1, 0] * scale.exp()])
    return torch.cat([motion, shift]), mirrored


def read(T: Tensor, field: Shape, window: Shape, clamp: bool = True) -> tuple[Tensor, bool, float]:
    """The motion (6,) that an operator (D2, D1) is nearest to, if it mirrors, and its squared distance, relative."""
    places = grid(field).to(T)
    points, mass = centres(T, places)
    edge = ((points <= 1e-6) | (points >= places.new_tensor(field) - 1 - 1e-6)).any(1)  # clamped, perhaps
    trust = mass.clamp(0, 1) * ~edge
    line = affine(grid(window).to(T), points, trust if (trust > 0).sum() >= 6 else mass.clamp(0, 1))
    motion, mirrored = motion_of(line, field, window)
    flip = torch.tensor([mirrored], device=T.device)

    def off(motion: Tensor) -> Tensor:
        return (matrices(motion[None], flip, field, window, clamp)[0] - T).flatten()

    left, eye = off(motion), torch.eye(6).to(T)
    for _ in range(NEWTON):
        if left.square().sum() < 1e-12 * T.square().sum():
            break
        slopes = torch.stack([(off(motion + 1e-4 * e) - off(motion - 1e-4 * e)) / 2e-4 for e in eye], 1)
        gram = slopes.T @ slopes
        step = torch.linalg.solve(gram + 1e-6 * gram.diagonal().mean().clamp_min(1e-9) * eye, slopes.T @ left)
        after = off(motion - step)
        if not after.square().sum() < left.square().sum():
            break
        motion, left = motion - step, after
    return motion, mirrored, float(left.square().sum() / T.square().sum().clamp_min(1e-12))


def centres(T: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """The centre of each row's positive weights, (D2, axes), and their sum, (D2,)."""
    weights = T.clamp_min(0)
    mass = weights.sum(1)
    return weights @ places / mass.clamp_min(1e-9)[:, None], mass


def affine(places: Tensor, points: Tensor, trust: Tensor) -> Tensor:
    """The affine map (axes + 1, axes) from places to points, the constant last, by robust weighted least squares."""
    ones = torch.cat([places, torch.ones_like(places[:, :1])], 1)
    weight, few = trust, 1e-9 * torch.eye(ones.shape[1]).to(ones)
    for _ in range(ROBUST):
        weighted = ones * weight[:, None]
        line: Tensor = torch.linalg.solve(weighted.T @ ones + few, weighted.T @ points)
        off = (points - ones @ line).square().sum(1)
        scale = (weight * off).sum() / weight.sum().clamp_min(1e-12) + 1e-6
        weight = trust / (1 + off / scale)
    return line


def grid(shape: Shape) -> Tensor:
    """The places of all pixels, (D, axes)."""
    return torch.tensor(list(product(*map(range, shape))), dtype=torch.float64)


def in_words(motion: Tensor, mirrored: bool) -> str:
    """What a motion does: turn by 45 degrees, scale by 0.8, shift by 2 right."""
    turn, scale, stretch, shear, down, right = motion.tolist()
    turn = (turn + pi) % (2 * pi) - pi
    parts = ["mirror"] if mirrored else []
    if angle := round(degrees(turn), 1):
        parts.append(f"turn by {180 if angle == -180 else angle:g} degrees")
    for name, factor in (("scale", exp(scale)), ("stretch", exp(stretch))):
        if round(factor, 2) != 1:
            parts.append(f"{name} by {round(factor, 2):g}")
    if round(shear, 2):
        parts.append(f"shear by {round(shear, 2):g}")
    ways = ((down, "down", "up"), (right, "right", "left"))
    shifts = [f"{abs(round(by, 1)):g} {way if by > 0 else back}" for by, way, back in ways if round(by, 1)]
    return ", ".join(parts + ([f"shift by {' and '.join(shifts)}"] if shifts else [])) or "identity"


def reach(window: Shape) -> Tensor:
    """Pixels that a unit of each number of a motion moves a window's pixels by, (6,), roughly: in the mean square."""
    radius = (sum((w**2 - 1) / 12 for w in window)) ** 0.5
    return torch.tensor([radius, radius, radius, radius / 2**0.5, 1.0, 1.0], dtype=torch.float64).clamp_min(0.1)
