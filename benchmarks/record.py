"""The ratios that were recorded last, on each kind of machine, and whether others are worse."""

import json
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sklearn
import torch

from benchmarks.timing import Row
from orbitpool.kernels.compiled import library
from orbitpool.kernels.products import SHORT

RECORDED = Path(__file__).with_name("ratios.json")
LAST = Path(__file__).with_name("last.json")  # what the last run measured, recorded or not
MARGIN = 1.25  # times a recorded ratio, beyond which a run is slower


def machine() -> dict[str, Any]:
    """What ratios depend on besides the code."""
    features = torch.cpu.get_capabilities()
    return {
        "processor": features.get("cpu_name", platform.processor()),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "bfloat16": SHORT,
        "compiled": library() is not None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
    }


def measured(path: Path) -> dict[str, float]:
    """The first figure of each line by the name before it, and the share that a table calls that of the work."""
    found = {}
    for line in path.read_text().splitlines():
        if (parts := re.match(r"(.*?\S)\s{2,}([\d.]+) (\S+)(.*)", line)) is not None:
            name, value, _, rest = parts.groups()
            found[name] = float(value)
            if len(shares := re.findall(r"([\d.]+)%", rest)) == 3:
                found[f"{name}: of the work"] = float(shares[2])
    return found


def recorded() -> dict[str, float]:
    """The ratios on such a machine, by name."""
    ratios: dict[str, float] = _all().get(_kind(machine()), {}).get("ratios", {})
    return ratios


def _kind(machine: dict[str, Any]) -> str:
    return f"{machine['processor']}{'' if machine['compiled'] else ', without a C compiler'}"


def record(rows: Sequence[Row]) -> None:
    """Keep what was measured, beside older ratios of such a machine and those of others."""
    here = _measured(rows)
    here["ratios"] = recorded() | here["ratios"]
    _write(RECORDED, _all() | {_kind(here["machine"]): here})


def note(rows: Sequence[Row]) -> None:
    """Write down what the last run measured."""
    _write(LAST, _measured(rows))


def _all() -> dict[str, Any]:
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def _measured(rows: Sequence[Row]) -> dict[str, Any]:
    return {"machine": machine(), "ratios": {row.name: round(row.value, 3) for row in rows}}


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")


def held(rows: Sequence[Row], ratios: dict[str, float]) -> tuple[int, list[str]]:
    """How many ratios of times can be held to the record or to what they must reach, and those that fail, in words."""
    count, failures = 0, []
    for row in rows:
        if row.noisy or not row.timed or (row.limit is None and row.name not in ratios):
            continue
        count += 1
        if row.limit is not None and row.value > row.limit:
            failures.append(f"{row.name}: {row.value:.2f}, and it must reach {row.limit:.2f}")
        elif row.value > MARGIN * ratios.get(row.name, float("inf")):
            failures.append(f"{row.name}: {row.value:.2f}, over {MARGIN} times the recorded {ratios[row.name]:.2f}")
    return count, failures
