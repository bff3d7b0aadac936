"""Sound to test with."""

import numpy as np
from scipy.signal import chirp

RATE = 16_000


def tone(seconds, low, high, seed):
    """A sweep between two frequencies in a little noise, (seconds * 16000,)."""
    t = np.arange(int(seconds * RATE)) / RATE
    noise = np.random.default_rng(seed).normal(size=len(t))
    return (0.3 * chirp(t, low, t[-1], high) + 0.01 * noise).astype(np.float32)
