"""Which transformations does data have? Found without labels, as a set that learners take."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import asdict, dataclass, replace
from math import prod
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate

from orbitpool import together
from orbitpool.discovery import words
from orbitpool.discovery.candidates import Move, candidates, window_of
from orbitpool.discovery.ranges import APART, BUDGET, MIRRORED, Ranges, needed, ranges, reach
from orbitpool.discovery.telling import overlaps
from orbitpool.kernels import choose_device, undisturbed
from orbitpool.pictures import Bytes, save_png
from orbitpool.transforms import TransformSet
from orbitpool.transforms.families import as_shape
from orbitpool.transforms.set import by

FAMILIES = ("turn", "shift down", "shift right", "scale", "mirror")
LOCAL = ("turn", "scale")  # for patches: pooling over places makes up for shifts, and a mirrored patch is another one
THRESHOLD = 0.75  # overlap from which on moved images count as images of the same kind
FEWEST = 500  # images below which nothing can be said
MOST = 10_000  # images that are looked at
STEPS = 600  # in which the network learns
THUMBNAIL = 32  # pixels a side at which photographs are judged
LEAST_PATCH = 4  # pixels a side of patches, whose filters are smaller by the room to turn
AT_ONCE = 2**25  # numbers that are converted at a time
SHOWN = 8  # images that are kept for the picture


@dataclass(frozen=True)
class Finding:
    """By how much images overlap with images that were moved by an amount, and whether poses go that far.

    They may not although the overlap is large: they go in whole steps, and in filters of patches not far.
    """

    family: str
    amount: float
    overlap: float
    kept: bool


@dataclass(frozen=True, eq=False, repr=False)
class Discovery:
    """Which transformations images have, and how that was found out.

    Attributes
    ----------
    findings : tuple of Finding
        What was measured: family, amount (degrees, pixels of `judged`, times smaller), overlap, kept.
    ranges : Ranges
        How far poses go.
    transforms : TransformSet
        The poses.
    threshold : float
        Overlap from which on a move was kept.
    judged : (int, int)
        Pixels of the images that were judged, which are thumbnails where filters see patches.
    n_images : int
        How many there were.
    examples : tensor (n, C, H, W) or None
        Some of them, for the picture; they are not kept in files.
    """

    findings: tuple[Finding, ...]
    ranges: Ranges
    transforms: TransformSet
    threshold: float
    judged: tuple[int, int]
    n_images: int
    examples: Tensor | None = None

    def __repr__(self) -> str:
        return f"<Discovery: {self.words()}>"

    def words(self) -> str:
        """How far moved images pass for others, family by family, and the poses that makes, in a sentence."""
        return words.sentence(self.ranges, {f.family for f in self.findings}, self.transforms)

    def table(self) -> str:
        """What was measured: one line a family."""
        return words.table(self.findings)

    def picture(self, path: str | os.PathLike[str]) -> Path:
        """Draw examples that were moved, and overlaps by amount, to a PNG file."""
        return save_png(self.drawn(), path)

    def drawn(self, what: str = "") -> Bytes:
        """The picture itself, (rows, columns, 3), which may say what the images are."""
        from orbitpool.discovery.picture import draw  # which needs this module

        return draw(self, what)

    def to_json(self) -> dict[str, Any]:
        """All but the transformations and the examples, for a file."""
        facts = ("threshold", "judged", "n_images")
        return {
            "findings": [list(asdict(finding).values()) for finding in self.findings],
            "ranges": asdict(self.ranges),
            **{name: getattr(self, name) for name in facts},
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], transforms: TransformSet | None = None) -> Discovery:
        """The discovery that `to_json` wrote, with its transformations; made anew if they are not given."""
        known = dict(content["ranges"])
        pairs = {name: (int(known[name][0]), int(known[name][1])) for name in ("field", "shift")}
        found = Ranges(**{**known, **pairs})
        findings = tuple(Finding(str(f), float(a), float(o), bool(k)) for f, a, o, k in content["findings"])
        rows, columns = content["judged"]
        facts = float(content["threshold"]), (int(rows), int(columns)), int(content["n_images"])
        return cls(findings, found, transforms or found.transforms(), *facts)


@undisturbed()
def discover(
    X: Any,
    *,
    patch: int | tuple[int, int] | None = None,
    threshold: float = THRESHOLD,
    random_state: Any = None,
    device: str = "auto",
) -> Discovery:
    """Which of turns, shifts, sizes and mirror images data has, and a set of poses for it.

    Data has a transformation if moved images still look like images of the same kind: if a network that was taught to
    tell them apart cannot. A range ends where it can, so that it says how far images may be moved and still pass for
    data. That is less than how far they were moved: images at all angles of ±A, equally often, pass when they are
    turned by another A / 2 at the usual threshold. Moves are also tried from small to large, so that what has only a
    few poses far from each other, such as quarter turns, is not found; give those.

    Parameters
    ----------
    X : array or tensor of images (N, H, W) or (N, H, W, C), or rows (N, H * H [* 3]) of square ones, grey or in colour
    patch : int or (int, int), optional
        The size of the patches that filters see, if they do not see whole images. Then turns and sizes are judged
        alone, and on images: patches of photographs are the same upside down, photographs are not.
    threshold : float
        Overlap of the distributions of images and of moved ones from which on a move is kept, 0 to 1; mirror images,
        to which no smaller move leads, take 0.9 or more.
    random_state : int, RandomState or None
    device : str
        "auto" takes a tensor's own device, else a GPU if there is one.
    """
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not 0 < float(threshold) < 1:
        raise ValueError(f"threshold is {threshold!r}; it must lie between 0 and 1, both excluded")
    images = real_images(X)
    field = None if patch is None else as_shape("patch", patch)
    if field is not None and (field[0] > images.shape[1] or field[1] > images.shape[2]):
        raise ValueError(f"patch is {by(field)} pixels, but images have {by(images.shape[1:3])}; give a smaller patch")
    seed = together.seed_of(random_state)
    generator = torch.Generator().manual_seed(seed)
    some = torch.randperm(len(images), generator=generator)[:MOST].sort().values
    side = None if field is None else min(THUMBNAIL, *images.shape[1:3])
    return judge(looked_at(images, some, side, choose_device(device, X)), field, seed, float(threshold))


def judge(seen: Tensor, patch: tuple[int, ...] | None, seed: int, threshold: float = THRESHOLD) -> Discovery:
    """Which transformations images (N, C, H, W) have; with patches these are thumbnails."""
    if len(seen) < FEWEST:
        raise ValueError(
            f"{len(seen)} images are too few to find out which transformations they have; give {FEWEST} or more, or "
            "give transformations"
        )
    if not seen.isfinite().all():
        raise ValueError("X contains NaN or infinity; every value must be finite: drop or fill those images first")
    if patch is not None and min(patch) < LEAST_PATCH:
        raise ValueError(
            f"patches have {by(patch)} pixels; it takes {LEAST_PATCH} a side for filters that turn: give larger ones, "
            "or transformations"
        )
    judged = (int(seen.shape[2]), int(seen.shape[3]))
    moves = candidates(judged, FAMILIES if patch is None else LOCAL)
    measured = overlaps(seen, moves, window_of(judged), STEPS, seed)
    if only_quarters(moves, measured, threshold):
        measured = overlaps(blurred(seen), moves, window_of(judged), STEPS, seed)
        if only_quarters(moves, measured, threshold):
            warnings.warn(
                "images look the same when they are turned by 90 degrees, but not by angles between: if they have "
                "quarter turns, give transforms.rotations(…, count=4, step=pi / 2); if edges are hard, smooth them",
                stacklevel=3,
            )
    return conclude(moves, measured, judged, patch, threshold, seen)


def only_quarters(moves: list[Move], measured: list[float], threshold: float) -> bool:
    """Whether quarter turns pass and turns between them do not, which may be the doing of pixels."""
    passed = {m.amount: o for m, o in zip(moves, measured, strict=True) if m.family == "turn"}
    return min(passed[90.0], passed[180.0]) >= max(threshold, MIRRORED) and min(passed.values()) < threshold


def blurred(images: Tensor) -> Tensor:
    """Images (N, C, H, W) without hard edges, whose steps show how pixels lie."""
    for _ in range(2):
        images = avg_pool2d(images, 3, 1, 1, count_include_pad=False)
    return images


def conclude(
    moves: list[Move],
    measured: list[float],
    judged: tuple[int, int],
    patch: tuple[int, ...] | None,
    threshold: float,
    seen: Tensor,
) -> Discovery:
    """What overlaps mean for filters of whole images, or of patches."""
    found = {}
    for family in dict.fromkeys(move.family for move in moves):
        amounts, shares = zip(
            *((m.amount, o) for m, o in zip(moves, measured, strict=True) if m.family == family), strict=True
        )
        start = 1.0 if family == "scale" else 0.0
        far = reach(amounts, shares, needed(family, threshold), start)
        if family != "mirror" or far == 1:
            found[family] = far
    if patch is None:
        poses = ranges(found, judged)
    else:
        field = patch[0], patch[1]
        poses = ranges(found, field, rim=1, smallest=-(-3 * min(field) // 4))
    findings = tuple(
        Finding(m.family, m.amount, o, poses.reaches(m.family, m.amount)) for m, o in zip(moves, measured, strict=True)
    )
    kept = seen[:SHOWN].cpu()
    made = Discovery(findings, poses, poses.transforms(), threshold, judged, len(seen), kept)
    agreed = together.everywhere(json.dumps(made.to_json()))[0]  # processes may differ in the last digits
    return replace(Discovery.from_json(json.loads(agreed)), examples=kept)


def in_numbers() -> dict[str, float]:
    """All numbers that a discovery depends on, but the images and the seed."""
    return {
        "threshold": THRESHOLD,
        "mirrored": MIRRORED,
        "apart": APART,
        "budget": BUDGET,
        "steps": STEPS,
        "images": MOST,
        "thumbnail": THUMBNAIL,
    }


def real_images(X: Any) -> Any:
    """An array or a tensor (N, H, W, C), not copied, out of images (N, H, W[, C]) or square rows of real numbers."""
    try:
        x = X.detach() if isinstance(X, Tensor) else np.asarray(X)
    except ValueError as error:  # a list that is no array
        raise ValueError(
            f"X is a {type(X).__name__} of {len(X)} that makes no array ({error}); give images of one size, not batches"
        ) from error
    if x.is_complex() if isinstance(x, Tensor) else x.dtype.kind not in "fiub":
        raise ValueError(f"X is of type {x.dtype}; give images of real numbers, all of one size")
    if x.ndim == 2 and 0 not in x.shape:
        x = x.reshape(len(x), *square(x.shape[1]))
    if x.ndim not in (3, 4) or 0 in x.shape:
        raise ValueError(f"X has shape {tuple(x.shape)}; give images (N, H, W) or (N, H, W, C), none of them 0")
    return x[..., None] if x.ndim == 3 else x


def looked_at(images: Any, rows: Tensor, side: int | None, place: torch.device) -> Tensor:
    """Some of the images (N, H, W, C) as floats (n, C, H, W), shrunk to a side if there is one, a few at a time."""
    parts = []
    for some in torch.split(rows, max(1, AT_ONCE // prod(images.shape[1:]))):
        if isinstance(images, Tensor):
            part = images[some.to(images.device)]
        else:
            part = torch.from_numpy(np.require(images[some.numpy()], np.float32, ["C", "W"]))
        part = part.to(place, torch.float32).movedim(3, 1)
        parts.append(part if side is None else thumbnails(part, side))
    return torch.cat(parts)


def square(pixels: int) -> tuple[int, int, int]:
    """Height, width and channels of a square image of so many numbers."""
    for channels in (1, 3):
        side = round((pixels / channels) ** 0.5)
        if side * side * channels == pixels:
            return side, side, channels
    raise ValueError(
        f"rows of {pixels} numbers are no square images in grey or colour; give images (N, H, W) or (N, H, W, C) to "
        "find out which transformations they have, or give transformations"
    )


def thumbnails(images: Tensor, side: int) -> Tensor:
    """The largest square in the middle of images (N, C, H, W), shrunk to a side, antialiased."""
    height, width = images.shape[2:]
    most = min(height, width)
    top, left = (height - most) // 2, (width - most) // 2
    middle = images[:, :, top : top + most, left : left + most]
    return middle if most == side else interpolate(middle, (side, side), mode="bilinear", antialias=True)
