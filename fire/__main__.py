"""All that can go wrong outside the program, tried on purpose: `make fire`, `python -m fire inputs --seconds 60`."""

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from time import perf_counter

from fire.summary import Part, verdict

# Of the time; what a part does not need is for those that follow.
SHARES = {"races": 0.05, "arguments": 0.1, "inputs": 0.2, "disks": 0.15, "kills": 0.3, "workers": 0.2}
PARTS = tuple(SHARES)
SHOWN = 20  # of what is wrong


def main() -> int:
    """0, or 1 if anything is not as it must be, or was not tried."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all if none is named")
    parser.add_argument("--seconds", type=float, default=1200.0, help="for all parts together; 1200 if not given")
    parser.add_argument("--seed", type=int, default=0, help="for what is random")
    given = parser.parse_args()
    parts = given.parts or list(PARTS)
    start, done = perf_counter(), list[Part]()
    for number, name in enumerate(parts):
        print(f"{name} …", file=sys.stderr, flush=True)
        run: Callable[[float, int], Part] = import_module(f"fire.{name}").run
        left = given.seconds - (perf_counter() - start)
        done.append(run(left * SHARES[name] / sum(SHARES[other] for other in parts[number:]), given.seed))
        for wrong in done[-1].wrong[:SHOWN]:
            print(f"WRONG  {wrong}", file=sys.stderr, flush=True)
    code, last = verdict(done)
    print("\n".join([*(part.in_words() for part in done), last]))
    return code


if __name__ == "__main__":
    sys.exit(main())
