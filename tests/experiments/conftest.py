import numpy as np
import pytest
import soundfile
from scipy.signal import chirp

SOUNDS = {"iy": (300, 2500), "aa": (2500, 300), "s": (5000, 5200)}


@pytest.fixture(scope="session")
def spoken(tmp_path_factory):
    """Six speakers with two utterances each, of three sounds that none of them says like another."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for speaker in range(6):
        place = folder / "timit_sample" / f"dr1-fab{speaker:02}"
        place.mkdir(parents=True)
        for number in (1, 2):
            pieces, notes = [], ""
            for i, phone in enumerate([*SOUNDS, *SOUNDS]):
                t = np.arange(1600) / 16_000
                low, high = SOUNDS[phone]
                pieces.append(0.2 * chirp(t, low * (1 + speaker / 50), t[-1], high) + 0.02 * rng.normal(size=1600))
                notes += f"{1600 * i} {1600 * (i + 1)} {phone}\n"
            soundfile.write(place / f"sx{number}.wav", np.concatenate(pieces), 16_000)
            (place / f"sx{number}.phn").write_text(notes)
    return folder
