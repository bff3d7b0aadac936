"""What transformations data has: learned from pairs of inputs."""

from orbitpool.discovery.operators import learn_transforms

__all__ = ["learn_transforms"]
