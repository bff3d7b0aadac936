"""What may have happened to images: moves by growing amounts, and images that are moved."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, radians, sin, sqrt

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

SMALLEST = 6  # pixels a side, below which nothing can be said
TURNS = (10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0, 180.0)  # degrees
QUARTERS = (0.25, 0.5, 0.75, 1.0)  # of the room around the window, and of half an octave
JITTER = (3.0, 0.5, 0.03)  # degrees, pixels and share of the size by which every image is moved besides, at most


@dataclass(frozen=True)
class Move:
    """A move of images by an amount: degrees, pixels, or how many times smaller; 1 for a mirror."""

    family: str
    amount: float

    def matrix(self) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """Where a pixel (x, y, 1) of the moved image comes from, (x, y), both from the centre."""
        a = self.amount
        if self.family == "turn":
            return (cos(radians(a)), -sin(radians(a)), 0.0), (sin(radians(a)), cos(radians(a)), 0.0)
        return {
            "none": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
            "shift down": ((1.0, 0.0, 0.0), (0.0, 1.0, -a)),
            "shift right": ((1.0, 0.0, -a), (0.0, 1.0, 0.0)),
            "scale": ((a, 0.0, 0.0), (0.0, a, 0.0)),
            "mirror": ((-1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        }[self.family]

    @property
    def sharper(self) -> float:
        """By how much a shrunken image is sharper than one taken at that size, as a variance in square pixels.

        Interpolation blurs by 1/6; what is shrunk has shrunken pixels, and is interpolated between them.
        """
        return (1 - 1 / self.amount**2) / 3 if self.family == "scale" else 0.0


STILL = Move("none", 0.0)


def window_of(field: tuple[int, int]) -> int:
    """The side of the largest square that stays inside the field however it is turned."""
    return round(min(field) / sqrt(2))


def candidates(field: tuple[int, int], families: tuple[str, ...]) -> list[Move]:
    """Moves to judge on images of a size, each family by growing amounts.

    None needs a pixel from outside the image: what is judged is a window in the middle. By how much images overlap that
    are moved one way is by how much they overlap that are moved back, so that one direction is enough.
    """
    if min(field) < SMALLEST:
        raise ValueError(
            f"images have {field[0]}×{field[1]} pixels; it takes {SMALLEST} a side to find out which transformations "
            "they have: give larger images, or transformations"
        )
    room = (min(field) - window_of(field)) / 2
    amounts = {
        "turn": TURNS,
        "shift down": tuple(share * room for share in QUARTERS),
        "shift right": tuple(share * room for share in QUARTERS),
        "scale": tuple(2 ** (share / 2) for share in QUARTERS),
        "mirror": (1.0,),
    }
    return [Move(family, amount) for family in families for amount in amounts[family]]


def moved(images: Tensor, which: Tensor, moves: list[Move], side: int, generator: torch.Generator | None) -> Tensor:
    """The middle of images (N, C, H, W) after moves chosen for each, (N, C, side, side), bilinear.

    With a generator every image is also moved by a random trifle, so that all of them are interpolated alike.
    """
    A = torch.tensor([move.matrix() for move in moves], dtype=images.dtype)[which.cpu()]
    if generator is not None:
        A = _after(A, _trifles(len(which), generator).to(images.dtype))
    reach = (side - 1) / 2
    x = torch.linspace(-reach, reach, side, dtype=images.dtype)
    places = torch.stack([x.repeat(side), x.repeat_interleave(side), torch.ones(side * side, dtype=images.dtype)])
    half = torch.tensor([images.shape[3] - 1, images.shape[2] - 1], dtype=images.dtype) / 2
    grid = ((A @ places).mT / half).view(len(A), side, side, 2).to(images.device)
    return grid_sample(images, grid, padding_mode="border", align_corners=True)


def _trifles(n: int, generator: torch.Generator) -> Tensor:
    """Small random turns, shifts and scalings, (n, 2, 3)."""
    turn, pixels, size = JITTER
    u = 2 * torch.rand(n, 4, generator=generator, dtype=torch.float64) - 1
    angle, scale = u[:, 0] * radians(turn), 1 + size * u[:, 1]
    c, s = scale * angle.cos(), scale * angle.sin()
    return torch.stack([c, -s, pixels * u[:, 2], s, c, pixels * u[:, 3]], 1).view(n, 2, 3)


def _after(A: Tensor, B: Tensor) -> Tensor:
    """The affine maps A of B, (n, 2, 3)."""
    linear = A[:, :, :2]
    return torch.cat([linear @ B[:, :, :2], linear @ B[:, :, 2:] + A[:, :, 2:]], 2)
