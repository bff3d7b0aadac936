"""The heavy products, on whatever device the data is: the one place that decides how an orbit is computed fast.

A kernel for one kind of device goes beside `chunked` and is chosen here.
"""

from orbitpool.kernels.chunked import reduce_orbit, reduce_templates
from orbitpool.kernels.descent import descend_
from orbitpool.kernels.devices import choose_device
from orbitpool.kernels.poses import compare, expect, face, generate_drawn, infer, move, tilt_
from orbitpool.kernels.precision import full_precision, undisturbed
from orbitpool.kernels.products import Statistics, correlate, generate, respond, shortened
from orbitpool.kernels.traced import pool_templates

__all__ = [
    "Statistics",
    "choose_device",
    "compare",
    "correlate",
    "descend_",
    "expect",
    "face",
    "full_precision",
    "generate",
    "generate_drawn",
    "infer",
    "move",
    "pool_templates",
    "reduce_orbit",
    "reduce_templates",
    "respond",
    "shortened",
    "tilt_",
    "undisturbed",
]
