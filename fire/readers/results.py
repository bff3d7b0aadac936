"""Readers of results."""

import json
from collections.abc import Iterator

from fire.readers.reader import Reader, is_result
from orbitpool.experiments import results


def rows_and_figures() -> Iterator[Reader]:
    run = {"seed": 0, "values": [4.2], "seconds": {"learn": 1.0}, "data": "official", "device": "cpu"}
    row = {"table": "table1", "row": "rot TIRBM", "metric": "error", "quick": False, "runs": [run], "values": [4.2]}
    row |= {"mean": 4.2, "std": None, "data": "official", "settings": {"a": 1}, "paper": 4.2}
    figure = {"figure": "figure4", "quick": False, "pictures": {"filters": "figure4-filters.png"}}
    for name, content in (("row", row), ("figure", figure)):
        yield Reader(
            f"result JSON, {name}",
            {"r.json": json.dumps(content, indent=1).encode()},
            "r.json",
            lambda folder: results.load(folder / "r.json"),
            is_result,
        )
