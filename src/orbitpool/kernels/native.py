"""What `native.c` does, with tensors: the softmax over poses with an off state, drawing from it, sums, steps, features.

`orbit`, `poses` and `turning` are the definition. Numbers are float32; products, and what is to be multiplied, may be
bfloat16. Hidden units lie in memory as (K, S, N), or as `turning.Beside` says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from ctypes import c_float, c_int, c_long, c_uint64, c_void_p
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from orbitpool.kernels.compiled import LANES, library
from orbitpool.kernels.matrices import unwatched

if TYPE_CHECKING:
    from orbitpool.kernels.turning import Beside
    from orbitpool.transforms.sparse import Sparse

HELD = 4  # responses at a time, one to a pose
FULL = (torch.float32,)
BRIEF = {torch.float32: 0, torch.bfloat16: 1}  # either kind of number, and whether it is short
TYPES = {"p": c_void_p, "i": c_int, "l": c_long, "u": c_uint64, "f": c_float}
ARGUMENTS = {
    "infer": "piplllpillpppull",
    "tilt": "pillpplllp",
    "apart": "pillplp",
    "unite": "pillplp",
    "encode": "pipllllllfiplpp",
    "stand": "plllpi",
    "generate": "ppilllllppplpllppp",
    "move": "pppllpllpi",
    "descend": "pppilfff",
}


@cache
def _functions() -> dict[str, Any]:
    """By name; none where there is no library that has them all."""
    loaded = library()
    if not all(hasattr(loaded, name) for name in ARGUMENTS):
        return {}
    found = {name: getattr(loaded, name) for name in ARGUMENTS}
    for name, function in found.items():
        function.argtypes, function.restype = [TYPES[letter] for letter in ARGUMENTS[name]], None
    return found


def ready(*tensors: Tensor, kinds: Collection[torch.dtype] = FULL) -> bool:
    """Whether such numbers are for these functions: on a CPU, row by row in memory, and nobody wants gradients."""
    fit = all(x.device.type == "cpu" and x.dtype in kinds and x.is_contiguous() for x in tensors)
    return fit and unwatched() and bool(_functions())


def infer(
    products: Sequence[Tensor],
    b: Tensor,
    n: int,
    hidden: Beside,
    *,
    seed: int | None = None,
    first: int = 0,
    batch: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Probability of any pose, (N, K), the mean of that of each, (K, S), and poses drawn, (N, K).

    From what `products.answers` gives; the probability of each pose becomes `hidden`, which may be in place of it. None
    are drawn without a seed; with one, these inputs get the numbers of those from `first` on in such a batch.
    """
    K, S = b.shape
    z, mean = b.new_empty(K, n), torch.empty_like(b)
    pose = b.new_empty(0 if seed is None else K, n, dtype=torch.int32)
    numbers = (None if seed is None else pose), seed or 0, first, batch
    _call("infer", _addresses(products), BRIEF[products[0].dtype], b, K, S, n, *_lie(hidden), z, mean, *numbers)
    return z.T, mean, pose.T


def tilt_(hidden: Beside, z: Tensor, weight: Tensor) -> Tensor:
    """`poses.tilt_` by cost times slope, (K,)."""
    n, K, S = hidden.shape
    mean = z.new_empty(K, S)
    _call("tilt", *_lie(hidden), z.T, weight, K, S, n, mean)
    return mean


def _lie(hidden: Beside) -> tuple[Any, ...]:
    return _addresses(hidden.parts), BRIEF[hidden.parts[0].dtype], hidden.first, hidden.room


def apart(W: Tensor, pixels: Tensor, size: int) -> list[Tensor]:
    """`turning.taken_apart`."""
    K, D = W.shape
    parts = [W.new_empty(K, some) for some in (D - 3 * size, size, 2 * size)]
    _call("apart", W, BRIEF[W.dtype], K, D, pixels, size, _addresses(parts))
    return parts


def unite(parts: Sequence[Tensor], pixels: Tensor) -> Tensor:
    """What `apart` takes apart, but for factors of four and two, (K, D)."""
    odd = parts[1]
    (K, m), D = odd.shape, len(pixels)
    x = odd.new_empty(K, D, dtype=torch.float32)
    _call("unite", _addresses(parts), BRIEF[odd.dtype], K, D, pixels, m, x)
    return x


def encode(
    responses: Iterator[Tensor], bias: Tensor | None, S: int, alpha: float, sides: int, cell: Tensor, cells: int
) -> Tensor:
    """Features from responses a in each of S poses, (K, N P), added up over cells, (N, cells, sides, K).

    They are probabilities of any pose, with biases (S, K), or without them what the largest response has above alpha;
    on a second side those of -a. `cell` says where each of the P patches of an image belongs.
    """
    cell, P = cell.int(), len(cell)
    for first in range(0, S, HELD):
        some = list(islice(responses, HELD))
        if not first:
            K, n = some[0].shape
            sums = cell.new_zeros(n // P, sides, K, cells, dtype=torch.float32)
            z = sums.new_empty(sides, K, n if S > HELD else 0)
        poses = first, first + len(some), S
        given = _addresses(some), BRIEF[some[0].dtype], bias, K, n // P, P
        _call("encode", *given, *poses, alpha, sides, cell, cells, z, sums)
        some.clear()  # or they would be held until there are as many more
    return sums.permute(0, 3, 1, 2)


def hidden(pose: Tensor, n_poses: int, dtype: torch.dtype) -> Tensor:
    """`orbit.hidden`."""
    n, K = pose.shape
    each = pose.new_empty(K, n_poses, n, dtype=dtype)
    _call("stand", pose.T.int().contiguous(), K, n_poses, n, each, BRIEF[dtype])
    return each.permute(2, 0, 1)


def generate(pose: Tensor, W: Sequence[Tensor], transposes: Sparse, size: int, pixels: Tensor | None) -> Tensor:
    """`poses.generate_drawn`, (N, size), by rows of T_s', with filters that are whole, or that are apart by pixels."""
    (N, K), D = pose.shape, sum(part.shape[1] for part in W)
    rows, D2 = transposes.shape
    C, m, crew = D // D2, 0 if pixels is None else W[1].shape[1], torch.get_num_threads()
    D1, S = size // C, rows * C // size
    room, field = (W[0].new_empty(*shape, dtype=torch.float32) for shape in ((crew, LANES * (D + size) + D), (N, size)))
    filters = pose.new_empty(crew, LANES * (S + K), dtype=torch.int32)
    given = pose.T.int().contiguous(), _addresses(W), BRIEF[W[0].dtype], K, S, N, D, C
    matrix = transposes.starts, transposes.columns, transposes.values, D1
    _call("generate", *given, *matrix, pixels, m, crew, room, filters, field)
    return field


def move(
    v: Tensor, operators: Sparse, parts: Sequence[tuple[slice, int]], channels: int, dtype: torch.dtype
) -> list[Tensor]:
    """Some rows of operators times inputs (N, D1 C), which are pixels in so many poses, (pixels C, poses N)."""
    x, moved = v.T.contiguous(), []
    for rows, poses in parts:
        size, matrix = rows.stop - rows.start, (operators.starts[rows.start :], operators.columns, operators.values)
        moved.append(x.new_empty(size // poses * channels, poses * len(v), dtype=dtype))
        _call("move", *matrix, size, poses, x, channels, len(v), moved[-1], BRIEF[dtype])
    return moved


def descend_(t: Tensor, velocity: Tensor, gradient: Tensor, rate: float, momentum: float, decay: float) -> None:
    """Velocity becomes momentum velocity + rate gradient - decay t and is added to t, both in place."""
    _call("descend", t, velocity, gradient, BRIEF[gradient.dtype], t.numel(), rate, momentum, decay)


def _call(name: str, *given: Any) -> None:
    _functions()[name](*(_address(x) if isinstance(x, Tensor) else x for x in given))


def _addresses(parts: Sequence[Tensor]) -> Any:
    """Of matrices, up to four, and of none after them."""
    return (c_void_p * 4)(*map(_address, parts))


def _address(x: Tensor) -> int:
    if not x.is_contiguous():
        raise ValueError(f"numbers of shape {tuple(x.shape)} lie {x.stride()} apart; copy them row by row")
    return x.data_ptr()
