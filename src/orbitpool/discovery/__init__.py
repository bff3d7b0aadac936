"""Transformations out of data: which ones it has."""

from orbitpool.discovery.auto import Discovery, discover

__all__ = ["Discovery", "discover"]
