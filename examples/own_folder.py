"""
Your own folder of images
=========================

Four commands from a folder to a confusion matrix, without a line of Python: ``fit``, ``encode``, ``classify`` and
``inspect``. Here a script runs them, so that this page shows what they really say.
"""

# %%
# A folder to work on
# -------------------
# Subfolders are classes. These are cuttings of the two photographs that come with scikit-learn, of different sizes,
# some in grey, and one file that is damaged, as happens.

import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

home = Path(mkdtemp())
rng = np.random.default_rng(0)
for name, photograph in zip(("temple", "flower"), load_sample_images().images, strict=True):
    (home / "photos" / name).mkdir(parents=True)
    for i in range(120):
        (h, w), top, left = rng.integers(32, 64, 2), rng.integers(0, 360), rng.integers(0, 570)
        cutting = Image.fromarray(photograph[top : top + h, left : left + w])
        (cutting if i % 3 else cutting.convert("L")).save(home / "photos" / name / f"{i:03}.png")
damaged = home / "photos" / "flower" / "119.png"
damaged.write_bytes(damaged.read_bytes()[:500])

figure, axes = plt.subplots(2, 8, figsize=(8, 2.4), layout="constrained")
for row, name in zip(axes, ("temple", "flower"), strict=True):
    row[0].set_ylabel(name)
    for ax, file in zip(row, sorted((home / "photos" / name).iterdir()), strict=False):
        ax.imshow(Image.open(file).convert("RGB"))
        ax.set(xticks=[], yticks=[])
plt.show()


# %%
# Learn
# -----
# What was chosen for these images is said on standard error, then how far learning is; the result goes to standard
# output. On a terminal you see a bar instead. ``--quiet`` shows the result alone, ``--json`` is for programs.


def orbitpool(*arguments):
    """Run a command in the folder and print what it says."""
    print("$ orbitpool", *arguments)
    command = [sys.executable, "-m", "orbitpool", *arguments]
    run = subprocess.run(command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    print(run.stdout)


orbitpool("fit", "photos", "--components", "64", "--epochs", "15", "--out", "model.safetensors")

# %%
# Turn images into features
# -------------------------
# The file keeps what each row is a feature of. ``.csv`` and ``.parquet`` are for other programs, ``.npy`` has no names.

orbitpool("encode", "model.safetensors", "photos", "--out", "features.npz")

# %%
# Are the classes told apart?
# ---------------------------
# Five times a linear classifier learns from four fifths of the images and is judged on the rest.

orbitpool("classify", "features.npz")

# %%
# What was learned?
# -----------------

orbitpool("inspect", "model.safetensors", "--out", "filters.png")
plt.figure(figsize=(4, 4), layout="constrained")
plt.imshow(Image.open(home / "filters.png"))
plt.axis("off")
plt.title("64 filters of 6x6 pixels, in colour")
plt.show()

# %%
# The same file opens in Python
# -----------------------------

from sklearn.decomposition import PCA

from orbitpool import load

model = load(home / "model.safetensors")
held = np.load(home / "features.npz")
print(type(model).__name__, held["features"].shape, held["files"][0], held["labels"][0])

plane = PCA(2).fit_transform(held["features"])
plt.figure(figsize=(5, 4), layout="constrained")
for name, marker in (("temple", "o"), ("flower", "^")):
    plt.scatter(*plane[held["labels"] == name].T, marker=marker, alpha=0.7, label=name)
plt.legend()
plt.title("features of the images, two main directions")
plt.show()
