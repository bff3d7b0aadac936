"""Compare what is installed with known vulnerabilities: `make audit`.

With a network, pip-audit asks the database of the Python Packaging Authority. Without one, versions are compared with
those in `.ci/safe-versions.txt`: for each package that reads files of others, or talks to a network, the first version
without the vulnerabilities that were known when the list was last looked through. Ends with 1 if something is older.
"""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from packaging.version import Version

LIST = Path(__file__).with_name("safe-versions.txt")


def main() -> int:
    """0 if nothing is known against what is installed."""
    if find_spec("pip_audit") is None:
        print("pip-audit is not installed (pip install pip-audit), so its database is not asked", file=sys.stderr)
        return offline()
    asked = subprocess.run([sys.executable, "-m", "pip_audit", "--local"], capture_output=True, text=True, check=False)
    if asked.returncode and "Found" not in asked.stderr:
        print(f"the database cannot be reached: {asked.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return offline()
    print(asked.stdout or asked.stderr)
    return asked.returncode


def offline() -> int:
    """Compare with the list."""
    lines = [line.split("#")[0].split() for line in LIST.read_text().splitlines()]
    wanted = dict(line for line in lines if line)
    older, there = [], 0
    for name, least in wanted.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            continue
        there += 1
        if Version(found) < Version(least):
            older.append(f"{name} {found} has known vulnerabilities; {least} does not: pip install '{name}>={least}'")
    print("\n".join([*older, f"{there} packages compared with {LIST.name}, {len(older)} older than they should be"]))
    return int(bool(older))


if __name__ == "__main__":
    sys.exit(main())
