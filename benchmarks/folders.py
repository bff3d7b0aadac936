"""How long a folder of very many images takes until its first hundred are there: `python -m benchmarks.folders`.

The files are links to a few, in a hundred class folders. Memory is what the process grows by at the most, and what it
keeps: the names. Python's own way, a sorted list of paths, is measured beside it.
"""

import argparse
import multiprocessing
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from PIL import Image

from orbitpool.userdata.reading import open_images

CLASSES, BATCH = 100, 100


def main() -> None:
    """Print a line for each number of files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[20_000, 200_000], help="how many")
    print(f"{'files':>9}  {'':<14} {'listed':>8} {'first batch':>12} {'at most':>9} {'a file':>9}")
    context = multiprocessing.get_context("spawn")
    for count in parser.parse_args().files:
        with TemporaryDirectory() as made:
            write(Path(made), count)
            for way in (ours, paths):
                with context.Pool(1) as pool:
                    listed, first, most, kept = pool.apply(measured, (way, Path(made)))
                print(
                    f"{count:>9,}  {way.__doc__:<14} {listed:>6.2f} s {first:>10.2f} s {most / 2**20:>6.0f} MB "
                    f"{kept / count:>7.0f} B",
                    flush=True,
                )


def write(folder: Path, count: int) -> None:
    """So many images, of which a few are written and the others are links to them."""
    rng = np.random.default_rng(0)
    for i in range(CLASSES):
        (folder / f"class-{i:03}").mkdir()
    for i in range(count):
        path = folder / f"class-{i % CLASSES:03}" / f"image-{i:08}.png"
        if i < CLASSES:
            Image.fromarray(rng.integers(0, 256, (16, 16, 3), np.uint8)).save(path)
        else:  # a class has one of its own, since a file may have only so many links
            path.hardlink_to(folder / f"class-{i % CLASSES:03}" / f"image-{i % CLASSES:08}.png")


def ours(folder: Path) -> tuple[Any, Callable[[Sequence[int]], object]]:
    """orbitpool"""
    images = open_images(folder, strict=True)
    return images, images.read


def paths(folder: Path) -> tuple[Any, Callable[[Sequence[int]], object]]:
    """sorted(rglob)"""
    found = sorted(path for path in folder.rglob("*") if path.suffix == ".png" and path.is_file())
    return found, lambda places: [np.array(Image.open(found[i])) for i in places]


def measured(way: Callable[[Path], tuple[Any, Callable[[Sequence[int]], object]]], folder: Path) -> tuple[float, ...]:
    """Seconds until names are known and until a batch is there; bytes at the most, and kept."""
    with TemporaryDirectory() as made:  # what is imported late is imported now
        write(Path(made), CLASSES)
        way(Path(made))[1]([0])
    before, start = _status("VmRSS"), perf_counter()
    Path("/proc/self/clear_refs").write_text("5")
    held, read = way(folder)
    listed, kept = perf_counter() - start, _status("VmRSS") - before
    read(np.random.default_rng(0).integers(0, len(held), BATCH).tolist())
    return listed, perf_counter() - start, _status("VmHWM") - before, kept


def _status(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
