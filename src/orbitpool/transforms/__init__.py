"""Sets of linear transformations from a receptive field to a filter's window: what a filter's orbit is made of.

A field is what the model looks at (r x r pixels, or r frames), a window is what a filter covers (w x w). Operators are
matrices T_s of shape (D2, D1), window pixels by field pixels; they are seldom square, because a window that moves,
turns or grows inside a larger field needs no padding (the paper's footnote 5). They act on every channel alike.
"""

from orbitpool.transforms.algebra import compose, from_function, from_matrices, union
from orbitpool.transforms.families import identity, mirrors, pad, rotations, scalings, time_shifts, translations
from orbitpool.transforms.learned import LearnedSet, learned
from orbitpool.transforms.maps import turned_maps
from orbitpool.transforms.set import TransformSet

__all__ = [
    "LearnedSet",
    "TransformSet",
    "compose",
    "from_function",
    "from_matrices",
    "identity",
    "learned",
    "mirrors",
    "pad",
    "rotations",
    "scalings",
    "time_shifts",
    "translations",
    "turned_maps",
    "union",
]
