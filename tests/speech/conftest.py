import os
from pathlib import Path

import numpy as np
import pytest
import soundfile
from sounds import RATE, tone


@pytest.fixture
def write(tmp_path):
    """Write samples to a file in the temporary folder; its path."""

    def written(name, samples, rate=RATE, **options):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, samples, rate, **options)
        return path

    return written


@pytest.fixture(scope="session")
def recordings(tmp_path_factory):
    """Eight recordings of two speakers: half a second that rises, half that falls, a quarter of noise."""
    from orbitpool.speech import Recording

    folder, made = tmp_path_factory.mktemp("sound"), []
    for i in range(8):
        low, high = 300 + 20 * i, 2000 + 100 * i
        noise = 0.1 * np.random.default_rng(100 + i).normal(size=4000).astype(np.float32)
        sound = np.concatenate([tone(0.5, low, high, i), tone(0.5, high, low, 50 + i), noise])
        path = folder / f"{i}.wav"
        soundfile.write(path, sound, RATE)
        made.append(Recording.read(path, speaker="anna" if i % 2 else "ben"))
    return made


@pytest.fixture(scope="session")
def labelled(recordings):
    """Segments of the recordings, some shorter than others, and what they are."""
    from orbitpool.speech import Segment

    spans = [(0.0, 0.2, "up"), (0.2, 0.5, "up"), (0.5, 0.8, "down"), (0.8, 1.0, "down"), (1.0, 1.25, "noise")]
    pairs = [(Segment(r, start, end), label) for r in recordings for start, end, label in spans]
    return [s for s, _ in pairs], [label for _, label in pairs]


@pytest.fixture(scope="session")
def sample():
    """The folder of the TIMIT sample in $ORBITPOOL_DATA."""
    path = Path(os.environ.get("ORBITPOOL_DATA", "nowhere")) / "timit_sample"
    if not path.is_dir():
        pytest.skip("needs timit_sample in $ORBITPOOL_DATA")
    return path
