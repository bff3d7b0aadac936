"""Readers of sound, and of what is said when."""

import io
from collections.abc import Iterator
from math import pi

import numpy as np

from fire.readers.reader import Reader, are_spans, is_sound, is_table
from orbitpool import datasets
from orbitpool.speech import read_audio, read_phn, read_table


def sound(kind: str, subtype: str = "PCM_16", channels: int = 1) -> bytes:
    import soundfile

    file, t = io.BytesIO(), np.arange(4000) / 16_000
    samples = np.stack([0.3 * np.sin(2 * pi * 440 * (1 + c) * t) for c in range(channels)], 1)
    soundfile.write(file, samples, 16_000, subtype, format=kind)
    return file.getvalue()


def sounds() -> Iterator[Reader]:
    for kind, subtype, channels in (
        ("WAV", "PCM_16", 1),
        ("WAV", "FLOAT", 2),
        ("WAV", "IMA_ADPCM", 1),
        ("WAVEX", "PCM_24", 2),
        ("NIST", "PCM_16", 1),
        ("FLAC", "PCM_16", 2),
    ):
        content = {"a.wav": sound(kind, subtype, channels)}
        yield Reader(f"{kind} {subtype}", content, "a.wav", lambda p: read_audio(p / "a.wav"), is_sound)
    phones = b"0 1000 h#\n1000 1800 sh\n1800 2500 iy\n2500 4000 h#\n"
    yield Reader(".phn", {"a.phn": phones}, "a.phn", lambda p: read_phn(p / "a.phn"), are_spans)
    wav = sound("WAV")
    corpus = {
        f"timit/{part}/dr1/{who}/si1{ending}": content
        for part, who in (("train", "fcjf0"), ("test", "mdab0"))
        for ending, content in ((".wav", wav), (".phn", phones))
    }
    for victim in ("timit/train/dr1/fcjf0/si1.phn", "timit/test/dr1/mdab0/si1.wav"):
        yield Reader(f"TIMIT {victim[-4:]}", corpus, victim, lambda p: datasets.timit(p), lambda d: d.splits())
    table = {"t.csv": b"file,start,end,label,speaker\na.wav,0,0.1,up,ann\na.wav,0.1,,down,ann\n", "a.wav": wav}
    for victim in table:
        yield Reader(f"sound table, {victim}", table, victim, lambda p: read_table(p / "t.csv"), is_table)
