"""A .tar of images as a shard, as WebDataset has them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbitpool.imagefiles import decode_image, endings
from orbitpool.shards.shard import stacked, understood


class TarShard:
    """A .tar of images; a label is in a member of the same name that ends in .cls, or is the name of a folder."""

    row_shape: tuple[int, ...] | None = None
    scattered = True
    wholes: Sequence[int] = ()
    whole_size = 0

    def __init__(self, path: Path) -> None:
        self.path = path
        found, classes = [], {}
        with understood(path, "an archive of images, not packed"), tarfile.open(path, "r:") as tar:
            end = path.stat().st_size
            while (member := tar.next()) is not None:
                tar.members.clear()  # type: ignore[attr-defined]  # millions of them would fill the memory
                if not member.isreg() or member.issparse():
                    continue
                if member.offset_data + member.size > end:
                    raise ValueError(f"it ends inside {member.name!r}")
                name = PurePosixPath(member.name)
                if name.suffix.lower() in endings() and not name.name.startswith("."):
                    found.append((member.name, member.offset_data, member.size))
                elif name.suffix == ".cls" and member.size < 1000 and (held := tar.extractfile(member)):
                    classes[str(name.with_suffix(""))] = held.read().decode("utf-8", "replace").strip()
        if not found:
            raise ValueError(f"{path} holds no images; put some in, such as .png or .jpg")
        self.spans = np.array([span for _, *span in found])
        self.names: Sequence[str] = [f"{path.name}/{name}" for name, *_ in found]
        self.labels: Sequence[str] = [_label(PurePosixPath(name), classes) for name, *_ in found]

    def __len__(self) -> int:
        return len(self.spans)

    def value(self, i: int, grey: bool) -> NDArray[np.uint8]:
        """An image, out of memory."""
        offset, size = map(int, self.spans[i])
        with self.path.open("rb") as file:
            file.seek(offset)
            return decode_image(io.BytesIO(file.read(size)), grey)

    def values(self, items: Sequence[int]) -> NDArray[Any]:
        """Images of one size, from 0 to 1, (n, H, W, 3)."""
        return stacked(self, items)

    def cuts(self, most: int) -> list[int]:
        """Even pieces."""
        return [*range(0, len(self), most), len(self)]


def _label(name: PurePosixPath, classes: dict[str, str]) -> str:
    """What a .cls beside an image says, or else the folder that it lies in."""
    return classes.get(str(name.with_suffix("")), name.parent.name)
