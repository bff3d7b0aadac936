"""Mel-frequency cepstral coefficients: 13 of them, how they change, and how that changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbitpool.speech.audio import RATE, Samples, extra

SHIFT = 0.01  # seconds between frames; frame t is centred at (t + 1/2) SHIFT
CEPSTRA = 13
SIZE = 3 * CEPSTRA

Frames = NDArray[np.float32]


def mfcc(samples: Samples) -> Frames:
    """13 cepstra, their deltas and the deltas' deltas every 10 ms, (T, 39), of samples at 16 kHz in [-1, 1].

    Kaldi's definition with its settings for TIMIT: povey windows of 25 ms, reflected at the ends, 23 mel bins from
    20 Hz, the zeroth cepstrum in place of the energy, lifter 22, no dither. Deltas are regressions over two frames
    either side, with the first and last frame repeated.
    """
    samples = np.asarray(samples)
    if samples.ndim != 1 or samples.dtype.kind != "f" or not np.isfinite(samples).all():
        raise ValueError(f"samples are {samples.shape} {samples.dtype}; give finite floats in [-1, 1], (N,)")
    fbank = extra("kaldi_native_fbank")
    options = fbank.MfccOptions()
    options.frame_opts.samp_freq = RATE
    options.frame_opts.dither = 0.0
    options.frame_opts.snip_edges = False
    options.num_ceps = CEPSTRA
    options.use_energy = False
    computer = fbank.OnlineMfcc(options)
    computer.accept_waveform(RATE, samples * 32768)  # Kaldi counts in 16-bit steps
    computer.input_finished()
    if not computer.num_frames_ready:
        raise ValueError(f"{len(samples)} samples make no frame; give at least 5 ms of sound, {RATE // 200} samples")
    cepstra = np.stack([computer.get_frame(t) for t in range(computer.num_frames_ready)])
    first = deltas(cepstra)
    return np.concatenate([cepstra, first, deltas(first)], axis=1)


def deltas(frames: Frames) -> Frames:
    """The slope at each frame of a line through five frames, (T, F)."""
    ahead = np.pad(frames, ((2, 2), (0, 0)), mode="edge")
    return np.asarray((ahead[3:-1] - ahead[1:-3] + 2 * (ahead[4:] - ahead[:-4])) / 10, dtype=np.float32)
