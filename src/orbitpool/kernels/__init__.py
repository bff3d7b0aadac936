"""The heavy products, on whatever device the data is: the one place that knows how an orbit is computed fast.

`reduce_orbit` is what encoding needs. A kernel for one kind of device goes beside `chunked` and is chosen here.
"""

from orbitpool.kernels.chunked import reduce_orbit

__all__ = ["reduce_orbit"]
