"""Run every benchmark and print its ratios beside those that were recorded: `make bench`, `make bench RECORD=1`."""

import argparse
import sys
from dataclasses import replace

from benchmarks import dictionaries, encoding, growth, learning, record, reduction
from benchmarks.timing import Others, Row
from orbitpool.kernels.products import SHORT

NOISE = 0.15  # of a core that others may take, before figures are too noisy to be held to the record
PARTS = {part.__name__.rpartition(".")[2]: part for part in (learning, encoding, dictionaries, reduction, growth)}


def main() -> int:
    """0, or 1 if a ratio is worse than it must be, or than recorded by more than the margin."""
    parser = argparse.ArgumentParser(description="Ratios of our times to others' on the same work; smaller is better.")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="some alone")
    parser.add_argument("--record", action="store_true", help=f"keep the ratios in {record.RECORDED.name}")
    given = parser.parse_args()
    before, rows, others = record.recorded(), [], Others()
    print(", ".join(f"{key} {value}" for key, value in record.machine().items()))
    if not SHORT:
        print("this processor multiplies no bfloat16 numbers, so products of them are left out")
    print(f"\n{'':<96} {'ratio':>6} {'must':>6} {'recorded':>9}")
    for part in given.parts:
        for row in PARTS[part].run():
            rows.append(replace(row, noisy=others.look() > NOISE))
            print(_line(rows[-1], before.get(row.name)), flush=True)
    record.note(rows)
    if any(row.noisy for row in rows):
        print("~ other programs were at work: this says little, is not recorded and not held to the record")
    if given.record:
        record.record([row for row in rows if not row.noisy])
        return 0
    count, failures = record.held(rows, before)
    print(f"{count} of {len(rows)} figures were held to the record or to what they must reach")
    for line in failures:
        print(f"too slow: {line}", file=sys.stderr)
    if failures:
        print("run it again on a quiet machine; `make bench RECORD=1` records anew", file=sys.stderr)
    return int(bool(failures))


def _line(row: Row, recorded: float | None) -> str:
    limit = "" if row.limit is None else f"{row.limit:.2f}"
    mark = "~" if row.noisy else " "
    return f"{row.name:<96}{mark}{row.value:6.2f} {limit:>6} {'' if recorded is None else f'{recorded:.2f}':>9}"


if __name__ == "__main__":
    sys.exit(main())
