"""Build a wheel, compare it with the sources, install it in an empty environment, and run the demo from there."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from zipfile import ZipFile

HOME = Path(__file__).resolve().parent.parent


def check_wheel(folder: Path) -> None:
    """Raise unless the wheel is whole, can be installed, and works."""
    pip = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--wheel-dir", str(folder), str(HOME)]
    _run("built", pip, folder)
    (wheel,) = folder.glob("*.whl")
    _check_files(wheel)
    _run("empty environment made", [sys.executable, "-m", "venv", "empty"], folder)
    python = folder / "empty" / "bin" / "python"
    _run("installed", [str(python), "-m", "pip", "--quiet", "install", str(wheel)], folder)
    _run("run: orbitpool demo", [str(python.with_name("orbitpool")), "demo", "--quiet"], folder)
    if "data:image/png" not in (folder / "demo" / "index.html").read_text():
        raise SystemExit("the page of the demo holds no pictures; see what orbitpool.report writes")


def _check_files(wheel: Path) -> None:
    """Raise unless the wheel holds exactly the package's files, data included."""
    with ZipFile(wheel) as content:
        packed = {name for name in content.namelist() if name.startswith("orbitpool/")}
    listed = subprocess.run(
        ["git", "ls-files", "orbitpool"], cwd=HOME / "src", capture_output=True, text=True, check=True
    )
    if different := packed ^ set(listed.stdout.split()):
        raise SystemExit(f"{wheel.name} and src/ do not have the same files: {', '.join(sorted(different))}")
    print(f"{wheel.name}: {len(packed)} files, as in src/")


def _run(what: str, command: list[str], folder: Path) -> None:
    """Run a command away from the sources, under the constraints."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    start = perf_counter()
    subprocess.run(command, cwd=folder, env={**kept, "PIP_CONSTRAINT": str(HOME / "constraints.txt")}, check=True)
    print(f"{what} in {perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        check_wheel(Path(made))
