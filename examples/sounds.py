"""
Sounds that come a little sooner or later
=========================================

A sound is the same sound some hundredths of a second later. Filters over patches of eleven frames may slide in time
here; they learn from sounds that are synthesised on the spot, so that you can try the same with a table of your own.
"""

# %%
# Four kinds of sound
# -------------------
# Each of 160 files holds silence with faint noise and, somewhere in it, one event: a tone that rises, one that falls, a
# hum, or a knock. A table names the files and what is in them.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import soundfile
from scipy.signal import chirp

RATE = 16_000
home, rng = Path(mkdtemp()), np.random.default_rng(0)
t = np.arange(int(0.25 * RATE)) / RATE


def event(kind):
    """A quarter of a second of sound, never twice the same."""
    low, high = rng.uniform(300, 500), rng.uniform(1200, 2000)
    if kind == "rise":
        return chirp(t, low, t[-1], high)
    if kind == "fall":
        return chirp(t, high, t[-1], low)
    if kind == "hum":
        return sum(np.sin(2 * np.pi * n * rng.uniform(0.99, 1.01) * low / 2 * t) / n for n in range(1, 6))
    return rng.normal(size=len(t)) * np.exp(-t * rng.uniform(20, 60))


rows = ["file,start,end,label"]
for i in range(160):
    kind = ("rise", "fall", "hum", "knock")[i % 4]
    sound = 0.02 * rng.normal(size=int(0.6 * RATE))
    start = int(rng.uniform(0, 0.3) * RATE)
    sound[start : start + len(t)] += rng.uniform(0.1, 0.4) * event(kind)
    soundfile.write(home / f"{i:03}.wav", sound, RATE)
    rows.append(f"{i:03}.wav,,,{kind}")
(home / "recordings.csv").write_text("\n".join(rows))

# %%
# From sound to frames
# --------------------
# Sound becomes 39 cepstral coefficients (MFCC and their first and second differences) every 10 ms.

from orbitpool.speech import read_table

segments, labels = read_table(home / "recordings.csv")
labels = np.array(labels)

figure, axes = plt.subplots(2, 4, figsize=(10, 4), layout="constrained")
for column, kind in zip(axes.T, ("rise", "fall", "hum", "knock"), strict=True):
    first = list(labels).index(kind)
    sound, _ = soundfile.read(home / f"{first:03}.wav")
    column[0].specgram(sound, NFFT=400, Fs=RATE, noverlap=240, cmap="magma", vmin=-120)
    column[0].set(title=kind, ylim=(0, 4000), xticks=[])
    column[1].imshow(segments[first].recording.frames[:, :13].T, aspect="auto", origin="lower", cmap="magma")
    column[1].set(xlabel="frame (10 ms)")
axes[0, 0].set_ylabel("frequency (Hz)")
axes[1, 0].set_ylabel("cepstral coefficient")
plt.show()

# %%
# Learn and compare
# -----------------
# The same number of filters with one pose, and with three places in time. Eight sounds of each kind have labels, drawn
# ten times; all others are for judging. Filters learn from everything, since they need no labels.

from sklearn.model_selection import StratifiedShuffleSplit

from orbitpool import TIRBM, LinearSVM, SpeechFeatures
from orbitpool import transforms as T

settings = {"visible": "gaussian", "two_sided": True, "learning_rate": 0.005, "n_iter": 15, "batch_size": 50}
kinds = {
    "cepstra alone": SpeechFeatures(None),
    "RBM": SpeechFeatures(TIRBM(64, None, **settings), random_state=0),
    "TIRBM, three shifts": SpeechFeatures(TIRBM(64, T.time_shifts(11, 9), **settings), random_state=0),
}
draws = StratifiedShuffleSplit(10, train_size=32, random_state=0)
for name, features in kinds.items():
    Z, errors = features.fit(segments).transform(segments), []
    for train, test in draws.split(Z, labels):
        classifier = LinearSVM(C=0.001, standardize=True).fit(Z[train], labels[train])
        errors.append(1 - classifier.score(Z[test], labels[test]))
    print(f"{name:<20} {Z.shape[1]:4} features, error {np.mean(errors):.1%} ± {np.std(errors):.1%}")

# %%
# Filters of the TIRBM: nine frames from left to right, 13 cepstra and their two differences from top to bottom.

learner = kinds["TIRBM, three shifts"].learner_
tiles = learner.components_.reshape(64, 9, 39).swapaxes(1, 2)
order = np.abs(tiles).sum((1, 2)).argsort()[::-1][:12]
figure, axes = plt.subplots(1, 12, figsize=(10, 3), layout="constrained")
for ax, tile in zip(axes, tiles[order], strict=True):
    ax.imshow(tile, cmap="RdBu_r", vmin=-np.abs(tile).max(), vmax=np.abs(tile).max(), aspect="auto")
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Without Python the same is ``orbitpool fit recordings.csv --kind sound --out model.safetensors``, then ``encode`` and
# ``classify`` as for images.
