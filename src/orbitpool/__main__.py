"""`python -m orbitpool`."""

from orbitpool.cli import main

main()
