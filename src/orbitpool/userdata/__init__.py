"""A user's own data: learn a model from it, turn it into features, tell its classes apart, look at what was learned."""

from orbitpool.userdata.commands import classify, encode, fit, found_in, inspect

__all__ = ["classify", "encode", "fit", "found_in", "inspect"]
