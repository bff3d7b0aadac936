"""All that can go wrong outside the program, tried on purpose: `make fire`, `python -m fire inputs --seconds 60`."""

import argparse
import sys
from collections.abc import Callable
from importlib import import_module

from fire.summary import Part

SHARES = {"inputs": 0.15, "kills": 0.35, "workers": 0.25, "disks": 0.15, "races": 0.05, "arguments": 0.05}
PARTS = tuple(SHARES)
SHOWN = 20  # of what is wrong


def main() -> int:
    """0, or 1 if anything is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all if none is named")
    parser.add_argument("--seconds", type=float, default=900.0, help="for all parts together; 900 if not given")
    parser.add_argument("--seed", type=int, default=0, help="for what is random")
    given = parser.parse_args()
    parts = given.parts or list(PARTS)
    total, done = sum(SHARES[name] for name in parts), []
    for name in parts:
        print(f"{name} …", file=sys.stderr, flush=True)
        run: Callable[[float, int], Part] = import_module(f"fire.{name}").run
        done.append(run(given.seconds * SHARES[name] / total, given.seed))
        for wrong in done[-1].wrong[:SHOWN]:
            print(f"WRONG  {wrong}", file=sys.stderr, flush=True)
    print("\n".join(part.in_words() for part in done))
    return int(any(part.wrong for part in done))


if __name__ == "__main__":
    sys.exit(main())
