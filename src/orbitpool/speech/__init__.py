"""From sound to features: audio, cepstral frames, patches of them, and averages over the parts of a segment."""

from orbitpool.speech.annotations import read_phn, read_table
from orbitpool.speech.audio import read_audio
from orbitpool.speech.features import SpeechFeatures
from orbitpool.speech.mfcc import mfcc
from orbitpool.speech.phones import CLASSES, FOLD, PHONES
from orbitpool.speech.recordings import Recording, Segment

__all__ = [
    "CLASSES",
    "FOLD",
    "PHONES",
    "Recording",
    "Segment",
    "SpeechFeatures",
    "mfcc",
    "read_audio",
    "read_phn",
    "read_table",
]
