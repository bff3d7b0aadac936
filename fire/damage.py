"""Ways in which bytes get damaged: by disks, by networks, by other programs, and by those who mean it."""

import random
import re
from collections.abc import Callable

Damage = Callable[[bytes, random.Random], bytes]

EXTREMES = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 2**40, 2**63 - 1, 2**64 - 1)
WORDS = (b"0", b"-1", b"1", b"65536", b"2147483648", b"99999999999", b"1e309", b"nan", b"inf", b"-0.0", b"1" * 400, b"")
ODD = (b"\0", b"\n", b",", b'"', b"\xff", b"\xe2\x80\xae", b"\r", b"{", b"[" * 3000, b"../", b"x" * 200_000, b"%s%n")
HEAD = 600  # bytes at the beginning of a file that most likely are its header


def truncated(data: bytes, rng: random.Random) -> bytes:
    """Its beginning alone."""
    return data[: rng.randrange(len(data) + 1)]


def headless(data: bytes, rng: random.Random) -> bytes:
    """Its end alone."""
    return data[rng.randrange(len(data) + 1) :]


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Some bits turned over, in the header more often than not."""
    changed = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        limit = min(len(changed), HEAD) if rng.random() < 0.6 else len(changed)
        changed[rng.randrange(limit)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def overwritten(data: bytes, rng: random.Random) -> bytes:
    """A stretch replaced by zeros, ones or noise."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((1, 4, 64, 512, 4096)))
    fill = rng.choice((b"\0" * (end - start), b"\xff" * (end - start), rng.randbytes(end - start)))
    return data[:start] + fill + data[end:]


def shortened(data: bytes, rng: random.Random) -> bytes:
    """A stretch taken out."""
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.choice((1, 2, 16, 512)) :]


def lengthened(data: bytes, rng: random.Random) -> bytes:
    """A stretch twice, or noise put in, or at the end."""
    start, size = rng.randrange(len(data) + 1), rng.choice((1, 2, 16, 512))
    start = len(data) if rng.random() < 0.3 else start
    return data[:start] + rng.choice((data[start : start + size], rng.randbytes(size), rng.choice(ODD))) + data[start:]


def lying(data: bytes, rng: random.Random) -> bytes:
    """A number of the header that claims something else: sizes, counts, offsets."""
    size, order = rng.choice((1, 2, 4, 8)), rng.random() < 0.5
    number = (rng.choice(EXTREMES) % (1 << 8 * size)).to_bytes(size, "big" if order else "little")
    start = rng.randrange(max(1, min(len(data), HEAD)))
    return data[:start] + number + data[start + size :]


def misspelt(data: bytes, rng: random.Random) -> bytes:
    """A written number that became another one, or none."""
    found = list(re.finditer(rb"-?\d[\d.]*", data[:4096] if rng.random() < 0.7 else data[:200_000]))
    if not found:
        return lying(data, rng)
    place = rng.choice(found)
    return data[: place.start()] + rng.choice(WORDS) + data[place.end() :]


def emptied(data: bytes, rng: random.Random) -> bytes:
    """Nothing, or as many zeros."""
    return rng.choice((b"", b"\0" * len(data), b"\0", b"\n"))


def replaced(data: bytes, rng: random.Random) -> bytes:
    """Something else altogether."""
    return rng.choice(
        (rng.randbytes(len(data)), b"<!DOCTYPE html><html>Not found</html>", b"\x80\x04cos\nsystem\n", b"{}")
    )


KINDS: tuple[Damage, ...] = (
    truncated,
    headless,
    flipped,
    flipped,
    overwritten,
    shortened,
    lengthened,
    lying,
    lying,
    misspelt,
    misspelt,
    emptied,
    replaced,
)


def damaged(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """What was done, and what is left; damages may come together."""
    names = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        kind = rng.choice(KINDS)
        names.append(kind.__name__)
        data = kind(data, rng)
    return " and ".join(names), data
