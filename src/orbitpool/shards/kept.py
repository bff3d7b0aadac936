"""What was read of many files and is kept for the next look, within one limit for all of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class Kept:
    """What was used last, as far as it fits into `room`; the last of all in any case."""

    def __init__(self, room: int) -> None:
        self.room, self.taken = room, 0
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Any], size: int = 1) -> Any:
        """What is kept under a key, or else what `make` makes, which takes at most `size`: room is made before."""
        if key not in self._held:
            while self._held and self.taken + size > self.room:
                self.drop(next(iter(self._held)))
            self._held[key] = make(), size
            self.taken += size
        self._held.move_to_end(key)
        return self._held[key][0]

    def drop(self, key: Hashable) -> None:
        """Keep something no longer."""
        self.taken -= self._held.pop(key, (None, 0))[1]
