"""Transformations out of data: learned from pairs of inputs, and as a picture."""

from orbitpool.discovery.operators import learn_transforms
from orbitpool.discovery.sheet import draw_operators

__all__ = ["draw_operators", "learn_transforms"]
