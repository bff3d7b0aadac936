"""The laws of the paper's digit variations: how digits are turned, scaled and shifted, and what is put behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, pi, radians
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

READING = "noise where digits are black, scales up to the largest that fits"  # of footnote 6
TILT = "tilt"  # not the paper's: turned by up to 20 degrees either way
VARIATIONS = ("rot", "rot-bgimg", "scale", "scale-bgrand", "trans", "trans-bgrand")
Floats = NDArray[np.float32]

_SCALES = (0.3, 1.0)
_TILT = radians(20)
_FAINT = 0.5 / 255  # what would round to black in eight bits is background
_TEXTURE = 0.25  # a patch is used if it deviates by more than this part of its photograph's standard deviation
_CHUNK = 8192


def make_variation(
    name: str, digits: NDArray[Any], rng: np.random.Generator, backgrounds: Sequence[NDArray[Any]] | None = None
) -> tuple[Floats, dict[str, NDArray[Any]]]:
    """Varied digits (N, w, w) in [0, 1], and the parameters drawn for them (footnote 6).

    The parameters are `angle` (N,), radians anticlockwise, uniform in [0, 2 pi), or within 20 degrees of upright for
    *tilt*, which is not the paper's; or `factor` (N,), about the centre, antialiased, uniform in 0.3-1 of the largest
    that truncates no pixel of the digit; or `shift` (N, 2), rows down and columns right, uniform among all that
    truncate none. *-bgrand* puts uniform noise in [0, 1] into the background, the
    pixels where the digit is black. *-bgimg* puts a random patch of a photograph, none with little texture, behind the
    digit, as Larochelle et al. do: it shows where it is brighter. docs/lab.md has the evidence for these readings.

    Parameters
    ----------
    name : str
        One of `VARIATIONS`, or "tilt".
    digits : array (N, w, w)
        Bytes, or floats in [0, 1]; 0 is background.
    rng : numpy.random.Generator
        Where all randomness comes from.
    backgrounds : sequence of 2-D arrays in [0, 1], optional
        Photographs; needed for *-bgimg*.
    """
    check_variation(name)
    digits = np.asarray(digits)
    if digits.ndim != 3 or digits.shape[1] != digits.shape[2]:
        raise ValueError(f"digits have shape {digits.shape}; they must be square images, (N, w, w)")
    kind, _, ground = ("rot" if name == TILT else name).partition("-")
    if ground == "bgimg":
        backgrounds = _usable(backgrounds or (), digits.shape[1])
    word, draw, _ = _MOVES[kind]
    parameters = _draw_tilts(digits, rng) if name == TILT else draw(digits, rng)
    images = np.empty(digits.shape, np.float32)
    for start in range(0, len(digits), _CHUNK):
        part = slice(start, start + _CHUNK)
        image = move_digits(kind, digits[part], parameters[part])
        if ground:
            behind = _patches(image.shape, rng, backgrounds or ()) if ground == "bgimg" else _noise(image.shape, rng)
            image = _put(image, behind, ground)
        images[part] = image
    return images, {word: parameters}


def move_digits(kind: str, digits: NDArray[Any], amounts: NDArray[Any]) -> Floats:
    """Digits (N, w, w) in [0, 1], each turned, scaled or shifted by an amount of its own; see `make_variation`.

    Parameters
    ----------
    kind : {"rot", "scale", "trans"}
        What is done.
    digits : array (N, w, w)
        Bytes, or floats in [0, 1]; 0 is background.
    amounts : array (N,) or (N, 2)
        Angles, factors, or shifts; a shift must not push a digit over the edge: it would come in on the other side.
    """
    if kind not in _MOVES:
        raise ValueError(f"digits cannot be moved by {kind!r}; choose one of {', '.join(_MOVES)}")
    moved = _MOVES[kind][2](_as_floats(digits), torch.from_numpy(np.asarray(amounts)))
    return np.asarray(moved.where(moved >= _FAINT, 0).clamp_(max=1))


def check_variation(name: str) -> None:
    """Complain about a variation that does not exist."""
    if name not in (*VARIATIONS, TILT):
        raise ValueError(f"there is no variation {name!r}; choose one of {', '.join((*VARIATIONS, TILT))}")


def _as_floats(digits: NDArray[Any]) -> Tensor:
    scale = 255 if digits.dtype.kind in "ui" else 1
    return torch.from_numpy(digits.astype(np.float32) / np.float32(scale))


def _draw_angles(digits: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    return rng.uniform(0, 2 * pi, len(digits))


def _draw_tilts(digits: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    return rng.uniform(-_TILT, _TILT, len(digits))


def _draw_factors(digits: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    factors: NDArray[Any] = rng.uniform(*_SCALES, len(digits)) * largest_factors(digits)
    return factors


def largest_factors(digits: NDArray[Any]) -> NDArray[Any]:
    """How much each digit can be enlarged about the centre before interpolation pushes light over the edge, (N,)."""
    used = [np.any(digits, axis) for axis in (1, 2)]
    half, free = (digits.shape[1] + 1) / 2, np.min([margin for lines in used for margin in _margins(lines)], axis=0)
    largest: NDArray[Any] = half / (half - free)
    return largest


def _draw_shifts(digits: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Whole pixels down and right that keep every digit's bounding box inside, (N, 2)."""
    room = [_margins(np.any(digits, axis)) for axis in (2, 1)]
    return np.stack([rng.integers(-before, after, endpoint=True) for before, after in room], axis=1)


def _margins(used: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Free lines before the first and after the last used one, (N,) each; none where nothing is used."""
    some = used.any(1)
    return used.argmax(1) * some, used[:, ::-1].argmax(1) * some


def _turn(digits: Tensor, angles: Tensor) -> Tensor:
    """Digits turned about the centre, bilinear, black outside; the sense of `transforms.rotations`."""
    cos, sin, zero = angles.cos(), angles.sin(), torch.zeros_like(angles)
    theta = torch.stack([cos, -sin, zero, sin, cos, zero], 1).view(-1, 2, 3).float()
    size = [len(digits), 1, *digits.shape[1:]]
    grid = functional.affine_grid(theta, size, align_corners=True)
    return functional.grid_sample(digits[:, None], grid, align_corners=True)[:, 0]


def _resize(digits: Tensor, factors: Tensor) -> Tensor:
    """Digits scaled about the centre along both axes, black outside."""
    along = _scaling(digits.shape[1], factors.float())
    return along @ digits @ along.mT


def _scaling(size: int, factors: Tensor) -> Tensor:
    """The weights of old pixels in new ones along an axis, (N, size, size): triangles, wider the more is shrunk.

    All weights of a new pixel sum to one, those of the black pixels outside included.
    """
    factors, pixels, middle = factors[:, None, None], torch.arange(size), (size - 1) / 2
    centres, narrow = (pixels - middle)[:, None] / factors + middle, factors.clamp(max=1)
    reach = ceil(1 / _SCALES[0])
    total = _triangle(torch.arange(-reach, reach + 2) - centres.frac(), narrow).sum(2, keepdim=True)
    return _triangle(pixels - centres, narrow).div_(total)


def _triangle(distance: Tensor, narrow: Tensor) -> Tensor:
    """One at no distance, falling to zero at 1 / narrow."""
    return distance.abs_().mul_(-narrow).add_(1).clamp_(min=0)


def _shift(digits: Tensor, shifts: Tensor) -> Tensor:
    """Digits moved by whole pixels down and right; what is shifted in from the other side is black by the draw."""
    pixels = torch.arange(digits.shape[1])
    rows, columns = ((pixels - shifts[:, axis, None]) % len(pixels) for axis in (0, 1))
    lowered = digits.gather(1, rows[:, :, None].expand_as(digits))
    return lowered.gather(2, columns[:, None, :].expand_as(digits))


_MOVES: dict[str, tuple[str, Callable[..., NDArray[Any]], Callable[[Tensor, Tensor], Tensor]]] = {
    "rot": ("angle", _draw_angles, _turn),
    "scale": ("factor", _draw_factors, _resize),
    "trans": ("shift", _draw_shifts, _shift),
}


def _put(image: Floats, behind: Floats, ground: str) -> Floats:
    """Digits with something behind them: a photograph where it is brighter, noise where they are black."""
    return np.maximum(image, behind) if ground == "bgimg" else np.where(image > 0, image, behind)


def _noise(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    return rng.random(shape, dtype=np.float32)


def _patches(shape: tuple[int, ...], rng: np.random.Generator, photographs: Sequence[NDArray[Any]]) -> Floats:
    """Random patches of random photographs, (N, w, w), drawn again where they have little texture."""
    patches = np.empty(shape, np.float32)
    left = np.arange(shape[0])
    for _ in range(1000):
        which = rng.integers(len(photographs), size=len(left))
        plain = np.zeros(len(left), bool)
        for i, photograph in enumerate(photographs):
            mine = np.flatnonzero(which == i)
            views = sliding_window_view(photograph, shape[1:])
            y, x = (rng.integers(n, size=len(mine)) for n in views.shape[:2])
            patches[left[mine]] = views[y, x]
            plain[mine] = patches[left[mine]].std((1, 2)) <= _TEXTURE * photograph.std()
        left = left[plain]
        if not len(left):
            return patches
    raise ValueError(
        f"1000 random patches of {len(photographs)} photographs had too little texture (a standard deviation below "
        f"{_TEXTURE:g} of the photograph's) to put behind a digit; give photographs with more texture"
    )


def _usable(photographs: Sequence[NDArray[Any]], size: int) -> list[NDArray[Any]]:
    """The photographs that patches can be cut from."""
    usable = [p for p in photographs if p.ndim == 2 and min(p.shape) >= size and p.std() > 0]
    if not usable:
        raise ValueError(
            f"{len(photographs)} background photographs were given, and none is a grey image of at least {size}x{size} "
            "pixels that are not all alike; give some, such as natural_images()[0]"
        )
    return usable
