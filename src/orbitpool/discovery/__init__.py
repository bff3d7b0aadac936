"""Transformations out of data: which ones it has, and ones that are learned from pairs of inputs."""

from orbitpool.discovery.auto import Discovery, discover
from orbitpool.discovery.operators import learn_transforms
from orbitpool.discovery.sheet import draw_operators

__all__ = ["Discovery", "discover", "draw_operators", "learn_transforms"]
