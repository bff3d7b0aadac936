"""Operators learned from pairs of inputs that differ by one of a few unknown transformations."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from orbitpool.discovery.local import local_map, moments
from orbitpool.discovery.mixture import Mixture, find, settle
from orbitpool.discovery.naming import UNKNOWN, name
from orbitpool.kernels import undisturbed
from orbitpool.progress import counted, say
from orbitpool.transforms import TransformSet, from_matrices
from orbitpool.transforms.families import as_shape, check_whole
from orbitpool.transforms.set import Shape, by

MOST_PIXELS = 4096  # of a field or a window: sums of products of every two of them are kept
FEWEST = 20  # pairs to an operator
COARSE = 5000  # pairs, or so many hundreds to an operator, from which the mixture is found
INPUTS, PARTNERS = 80, 30  # principal components, at most, in which it is found
FLAT = 0.1  # of the usual size of an input: what smaller ones have counts less
SAME = 0.97  # the cosine above which two operators are one
HELD_OUT, JUDGED = 0.2, 500  # the part of the pairs by which operators are judged, and how many of them at most
RELATED = 0.7  # how often, at least, a partner is nearer to its own input, moved, than to another; chance has 0.5
TRIM, EXACT = 4.0, 0.01  # times the median error, or part of a partner, within which a pair is explained


@undisturbed()
def learn_transforms(
    X: Any,
    Y: Any,
    count: int,
    field: int | Sequence[int],
    window: int | Sequence[int] | None = None,
    random_state: Any = None,
) -> TransformSet:
    """The linear operators that take each input to its partner, y = T_s x for one of `count` unknown s.

    Which operator belongs to which pair is found on principal components, by a mixture of linear regressions that is
    annealed from several starts; a pair may belong to none. Every operator is then fitted at full size: each pixel of
    the window takes from few pixels of the field, near a flow that is smooth, with weights drawn towards interpolation
    at that flow. Pixels that never vary have no data; they follow the flow, and are zero where it leaves the field.

    Operators of most pairs are tried on the others: if a partner there is hardly more often nearer to its own input,
    moved, than to another, the pairs have nothing to do with each other, and that is an error.

    Operators that are doubled or explain hardly any pair are dropped, with a warning. Labels say what an operator
    looks like if it is close to a turn, shift, scaling, shear or mirror, or to two of them: "turn by 45 degrees",
    "shift by 2 right" (what is seen moves to the right), "scale by 0.8"; else "operator 3", the fourth of the set.

    Parameters
    ----------
    X, Y : arrays (N, D1 C) and (N, D2 C), or images (N, H, W[, C]), channels last
        Inputs and their partners. An operator does the same to every channel.
    count : int
        How many transformations to look for; better too many than too few.
    field, window : int or (rows, columns) or (frames,)
        Sizes of inputs and partners; the window is the field if not given.
    random_state : int, RandomState or None

    Returns
    -------
    TransformSet
        Of `count` operators or fewer, likes together.
    """
    check_whole("count", count, 1)
    around = as_shape("field", field, (1, 2))
    to = around if window is None else as_shape("window", window, (len(around),))
    x, y = _rows(X, around, "X", "field"), _rows(Y, to, "Y", "window")
    _check_pairs(x, y, count)
    x, y = _evened(x, y)
    generator = torch.Generator().manual_seed(int(check_random_state(random_state).randint(2**31 - 1)))
    operators = _operators(x, y, _memberships(x, y, count, generator).belongs, around, to, generator)
    if len(operators) < count:
        warnings.warn(
            f"count is {count}, but {len(operators)} different operators explain the pairs; the others were dropped",
            stacklevel=2,
        )
    return _named(operators, around, to)


def _evened(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs of about one size: what takes an input to its partner takes any multiple of it to that of the partner."""
    sizes = [torch.linalg.vector_norm(each, dim=(1, 2), dtype=torch.float64) for each in (x, y)]  # squares may be vast
    size = torch.hypot(*sizes)
    size += FLAT * size.median().clamp_min(1e-12 * size.max())
    return (x / size[:, None, None]).float(), (y / size[:, None, None]).float()


def _operators(
    x: Tensor, y: Tensor, belongs: Tensor, field: Shape, window: Shape, generator: torch.Generator
) -> list[Tensor]:
    """The different operators (D2, D1) at full size: fitted, pairs assigned anew, and fitted to those they explain."""
    sure, likeliest = belongs.amax(1) > 0.5, belongs.argmax(1)
    mine = [members for s in range(belongs.shape[1]) if (members := sure & (likeliest == s)).any()]
    if not mine:
        raise _unrelated(f"none of {len(x)} pairs belongs to an operator")
    first = [_fitted(x, y, members, field, window) for members in counted(mine, "learn operators", "operators")]
    different: list[Tensor] = []
    for T in sorted(first, key=lambda T: -float(T.square().sum())):
        if all(_cosine(T, other) < SAME for other in different):
            different.append(T)
    errors = torch.stack([_errors(x, y, T) for T in different], 1) / y.square().sum((1, 2)).clamp_min(1e-9)[:, None]
    least, best = errors.min(1)
    usual = float(least[sure].median())
    _check_related(x, y, different, best, field, window, generator)
    good = least <= max(TRIM * usual, EXACT)
    kept = [(T, members) for s, T in enumerate(different) if (members := good & (best == s)).any()]
    again = counted(kept, "refine operators", "operators")
    return [_fitted(x, y, members, field, window, like=T) for T, members in again]


def _check_related(
    x: Tensor, y: Tensor, operators: list[Tensor], best: Tensor, field: Shape, window: Shape, generator: torch.Generator
) -> None:
    """Raise ValueError unless operators of most pairs take the inputs of the others to their own partners.

    What operators leave of partners does not tell: images that have nothing to do with each other have much in common.
    """
    order = torch.randperm(len(x), generator=generator)
    count = max(2, round(HELD_OUT * len(x)))
    held, rest = order[:count][:JUDGED], order[count:]
    mine = [(T, members) for s, T in enumerate(operators) if len(members := rest[best[rest] == s])]
    again = [_fitted(x, y, members, field, window, like=T) for T, members in mine]
    off = torch.stack([torch.cdist(y[held].flatten(1), _moved(x[held], T).flatten(1)) for T in again]).amin(0)
    own, others = off.diagonal()[:, None], off[~torch.eye(len(off), dtype=torch.bool)].view(len(off), -1)
    nearer = float((own < others).double().mean() + (own == others).double().mean() / 2)
    if nearer < RELATED:
        raise _unrelated(
            f"partners of {len(held)} pairs that were left out are nearer to their own input, moved, than to another "
            f"in {nearer:.0%} of cases, where {RELATED:.0%} is the least and chance has 50%"
        )


def _unrelated(found: str) -> ValueError:
    return ValueError(
        f"{found}; check that row i of Y is the partner of row i of X, and give more pairs if they are noisy"
    )


def _fitted(x: Tensor, y: Tensor, mine: Tensor, field: Shape, window: Shape, like: Tensor | None = None) -> Tensor:
    """The operator (D2, D1) of some pairs, all channels alike."""
    return local_map(moments(x[mine].flatten(0, 1).double(), y[mine].flatten(0, 1).double()), field, window, like)


def _errors(x: Tensor, y: Tensor, T: Tensor) -> Tensor:
    """The squared distance between each partner and what an operator makes of the input, (N,)."""
    return (y - _moved(x, T)).square().sum((1, 2))


def _moved(x: Tensor, T: Tensor) -> Tensor:
    """What an operator makes of inputs, (N, C, D2)."""
    return from_matrices(T.numpy()).apply(x)[:, :, 0]


def _cosine(T: Tensor, other: Tensor) -> float:
    return float((T * other).sum() / (T.norm() * other.norm()).clamp_min(1e-12))


def _memberships(x: Tensor, y: Tensor, count: int, generator: torch.Generator) -> Mixture:
    """Which pair belongs to which operator: found on some pairs, and settled on all."""
    some = torch.randperm(len(x), generator=generator)[: max(COARSE, 400 * count)]
    inputs = min(INPUTS, max(1, len(some) * x.shape[1] // (4 * count)))
    say(f"looking for {count} operators in {len(x):,} pairs")
    small_x, small_y = _reduced(x, inputs, "inputs"), _reduced(y, PARTNERS, "partners")
    found = find(small_x[some], small_y[some], count, generator)
    if len(some) == len(x):
        belongs = torch.empty_like(found.belongs)
        belongs[some] = found.belongs
        return settle(small_x, small_y, belongs, doubt=True)
    errors = torch.stack([(small_y - small_x @ A).square().sum((1, 2)) for A in found.maps], 1)
    nearest = torch.softmax(-errors / (2 * found.variance), 1)
    return settle(small_x, small_y, nearest, doubt=True)


def _reduced(x: Tensor, most: int, what: str) -> Tensor:
    """Rows (N, C, D) on their leading principal directions about zero, (N, C, d), those that are not nothing."""
    flat = x.flatten(0, 1)
    sizes, directions = torch.linalg.eigh((flat.T @ flat).double() / len(flat))
    kept = (sizes[-most:] > 1e-6 * sizes[-1]).nonzero()[:, 0]
    if len(kept) < min(2, x.shape[2]):
        raise ValueError(
            f"all {what} are the same but for their brightness and a millionth of their squares; nothing can be "
            "learned from them: give others, or subtract what they have in common"
        )
    reduced: Tensor = x.double() @ directions[:, -most:][:, kept]
    return reduced


def _named(operators: list[Tensor], field: Shape, window: Shape) -> TransformSet:
    """A set of operators with names, likes together; those without a name have their place in the set."""
    named = [(*name(T, field, window), T) for T in operators]
    named.sort(key=lambda each: each[1])
    labels = [f"{words} {place}" if words == UNKNOWN else words for place, (words, *_) in enumerate(named)]
    return from_matrices(np.stack([T.numpy() for *_, T in named]), field, window, labels)


def _rows(X: Any, shape: Shape, what: str, room: str) -> Tensor:
    """Inputs as float32, (N, C, pixels)."""
    array = X.detach().cpu().numpy() if isinstance(X, Tensor) else np.asarray(X)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{what} is an array of {array.dtype}; give real numbers")
    x = torch.from_numpy(np.array(array, dtype=np.float32, order="C"))
    pixels = prod(shape)
    if pixels > MOST_PIXELS:
        raise ValueError(f"{room} {by(shape)} has {pixels} pixels; operators are learned for {MOST_PIXELS} at most")
    if x.ndim < 2 or len(x) == 0 or x[0].numel() == 0 or x[0].numel() % pixels:
        raise ValueError(
            f"{what} has shape {tuple(x.shape)}; a {room} of {by(shape)} needs (N, {pixels} x channels), N above 0, or "
            "images of that size with channels last"
        )
    if x.ndim > 2 and tuple(x.shape[1 : 1 + len(shape)]) != shape:
        raise ValueError(
            f"{what} has shape {tuple(x.shape)}, but the {room} is {by(shape)}; give "
            f"(N, {', '.join(map(str, shape))}[, channels]), or rows of numbers (N, {pixels} x channels)"
        )
    if not x.isfinite().all():
        raise ValueError(f"{what} contains NaN or infinity; every value must be finite: drop or fill those pairs first")
    return x.reshape(len(x), pixels, -1).transpose(1, 2).contiguous()


def _check_pairs(x: Tensor, y: Tensor, count: int) -> None:
    if len(x) != len(y) or x.shape[1] != y.shape[1]:
        raise ValueError(
            f"X has {len(x)} rows of {x.shape[1]} channels and Y has {len(y)} of {y.shape[1]}; "
            "each input needs its partner, with as many channels"
        )
    if len(x) < FEWEST * count:
        raise ValueError(
            f"{len(x)} pairs are too few for {count} operators; give at least {FEWEST * count}, or look for fewer"
        )
    if not x.any() or not y.any():
        raise ValueError(f"all of {'X' if not x.any() else 'Y'} is zero; give images before and after a change")
