"""A .npy file as a shard."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.arrayfiles import read_npy
from orbitpool.shards.shard import Empty, Numbered


class ArrayShard:
    """A .npy file, mapped."""

    scattered = True
    wholes: Sequence[int] = ()
    whole_size = 0

    def __init__(self, path: Path) -> None:
        self.path, self.array = path, read_npy(path)
        if self.array.ndim < 2 or 0 in self.array.shape or self.array.dtype.kind not in "fiub":
            raise ValueError(
                f"{path} has shape {self.array.shape} and type {self.array.dtype}; give (n, features) or images "
                "(n, height, width[, channels]) of real numbers, none of them 0"
            )
        self.names: Sequence[str] = Numbered(path.name, len(self.array))
        self.labels: Sequence[str] = Empty(len(self.array))
        self.row_shape: tuple[int, ...] | None = self.array.shape[1:]

    @cached_property
    def scale(self) -> int:
        """What makes pixels go to 255: they go to 1, or to 255 already, as far as the beginning shows."""
        first = self.array[: max(1, 2**22 // self.array[0].nbytes)]
        return 255 if first.max() <= 1 else 1

    def __len__(self) -> int:
        return len(self.array)

    def value(self, i: int, grey: bool) -> NDArray[Any]:
        """Pixels from 0 to 1 or from 0 to 255, as bytes."""
        image = np.asarray(self.array[i], np.float32)
        if image.ndim not in (2, 3) or image.shape[2:] not in ((), (1,), (3,)):
            raise ValueError(f"images have shape {image.shape}; give (H, W), (H, W, 1) or (H, W, 3)")
        if not 0 <= image.min() <= image.max() <= 255 / self.scale:
            raise ValueError(f"its pixels go from {image.min():g} to {image.max():g}; others go to {255 // self.scale}")
        pixels: NDArray[np.uint8] = np.rint(image * self.scale).astype(np.uint8)
        return pixels[..., 0] if pixels.shape[2:] == (1,) else pixels

    def values(self, items: Sequence[int]) -> NDArray[Any]:
        """Rows as they are."""
        return np.array(self.array[items.start : items.stop] if isinstance(items, range) else self.array[items])

    def cuts(self, most: int) -> list[int]:
        """Even pieces."""
        return [*range(0, len(self.array), most), len(self.array)]
