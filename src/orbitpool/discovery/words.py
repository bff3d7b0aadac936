"""What was found, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orbitpool.discovery.ranges import Ranges
from orbitpool.transforms import TransformSet
from orbitpool.transforms.set import by

NAMES = {
    "turn": "turned by degrees",
    "shift down": "shifted up or down by pixels",
    "shift right": "shifted to the side by pixels",
    "scale": "made smaller so many times",
    "mirror": "mirrored",
}


def sentence(poses: Ranges, judged: set[str], transforms: TransformSet) -> str:
    """As far as each family goes, which is as far as moved images pass for others, and how many poses that makes."""
    parts = [_turns(poses)]
    if "shift down" in judged:
        parts.append(_shifts(poses))
    parts.append(f"sizes that differ by up to {poses.scale:.3g} times" if poses.scale > 1 else "no other sizes")
    if "mirror" in judged:
        parts.append("mirror images" if poses.mirror else "no mirror images")
    else:
        parts.append("neither shifts nor mirror images asked for")
    several = len(transforms) > 1
    number = f"{len(transforms)} poses" if several else "one pose"
    far = ", which go as far as moved images pass for others" if several else ""
    return f"{', '.join(parts)}: {number} of filters of {by(transforms.window_shape)} pixels{far}"


def _turns(poses: Ranges) -> str:
    if not poses.turn:
        return "no turns"
    return "turns by any angle" if poses.turn >= 180 else f"turns of up to ±{poses.turn:g} degrees"


def _shifts(poses: Ranges) -> str:
    down, right = poses.shift
    if not (down or right):
        return "no shifts"
    if down == right:
        return f"shifts of up to ±{down} {_pixels(down)}"
    ways = ((down, "up and down"), (right, "to the sides"))
    return "shifts of " + " and ".join(f"up to ±{m} {_pixels(m)} {way}" for m, way in ways if m)


def _pixels(number: int) -> str:
    return "pixel" if number == 1 else "pixels"


def table(findings: Iterable[Any]) -> str:
    """Overlaps by amount, one line a family, in brackets where poses do not go that far."""
    lines: dict[str, list[str]] = {}
    for f in findings:
        amount = "" if f.family == "mirror" else f"{f.amount:.3g}: "
        cell = f"{f.overlap:.2f}" if f.kept else f"({f.overlap:.2f})"
        lines.setdefault(f.family, []).append(f"{amount}{cell}")
    return "\n".join(f"{NAMES[family]:<31}{'  '.join(cells)}" for family, cells in lines.items())
