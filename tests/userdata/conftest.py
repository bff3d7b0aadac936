import sys

import numpy as np
import pytest
from PIL import Image
from shardfiles import encoded, tar
from sklearn.datasets import load_sample_images

from orbitpool import cli


@pytest.fixture
def command(monkeypatch, capsys):
    """Run a command line; its exit status, and what it says on stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["orbitpool", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def photographs_in_folders(tmp_path_factory):
    """Two classes of twenty cuttings each, of different sizes, every third in grey, and one file that is no image."""
    top, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for name, photograph in zip(("temple", "flower"), load_sample_images().images, strict=True):
        (top / name).mkdir()
        for i in range(20):
            (h, w), y, x = rng.integers(24, 40, 2), *rng.integers(0, 380, 2)
            image = Image.fromarray(photograph[y : y + h, x : x + w])
            (image if i % 3 else image.convert("L")).save(top / name / f"{i:02}.png")
    whole = (top / "flower/19.png").read_bytes()
    (top / "temple/broken.png").write_bytes(whole[: len(whole) // 3])
    return top


@pytest.fixture
def image_shards(tmp_path, turned_digits):
    """The same sixty digits as files in folders, as .tar, as .parquet and as .npy."""
    import pandas as pd

    X, y = turned_digits.X_train[:60], turned_digits.y_train[:60]
    for kind in ("tar", "parquet", "npy"):
        (tmp_path / kind).mkdir()
    for i, part in enumerate(np.split(np.arange(60), 3)):
        members = {}
        for j in part:
            members |= {f"./{j:03}.png": encoded(X[j]), f"./{j:03}.cls": str(y[j]).encode()}
        tar(tmp_path / "tar" / f"{i}.tar", members)
        frame = pd.DataFrame({"image": [{"bytes": encoded(X[j]), "path": "x"} for j in part], "label": y[part]})
        frame.to_parquet(tmp_path / "parquet" / f"{i}.parquet", row_group_size=7)
        np.save(tmp_path / "npy" / f"{i}.npy", (255 * X[part]).astype(np.uint8))
    return tmp_path
