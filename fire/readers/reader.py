"""What a reader of files is tried with, and what must hold of whatever it gives back."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orbitpool.experiments import results

Pack = Callable[[bytes], bytes]


def _as_is(data: bytes) -> bytes:
    return data


@dataclass(frozen=True)
class Reader:
    """A reader: the folder's files, which of them is damaged, how, and what reads it.

    `pack` is put around damaged bytes, so that a checksum on the outside does not keep damage from what is inside;
    `take` undoes it once. `check` gets what was read and raises AssertionError if that is nonsense.
    """

    name: str
    files: dict[str, bytes]
    victim: str
    read: Callable[[Path], Any]
    check: Callable[[Any], None]
    take: Pack = _as_is
    pack: Pack = _as_is
    odd: str = ""  # "read" or "refused", where files are odd as they are and stay so


def is_dataset(data: Any) -> None:
    for part in ("train", "test"):
        X, y = getattr(data, f"X_{part}"), getattr(data, f"y_{part}")
        assert len(X) == len(y), "labels are not as many as images"
        assert X.shape[1:3] in ((28, 28), (32, 32)), "images are of another size"
        assert np.isfinite(X).all() and y.min(initial=0) >= 0 and y.max(initial=0) <= 9, "values out of range"


def are_grey(found: Any) -> None:
    for image in found[0]:
        assert image.ndim == 2 and np.isfinite(image).all() and image.min() >= 0 and image.max() <= 1, "values"


def are_images(found: Any) -> None:
    for image in found:
        assert image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3 and 0 not in image.shape, "no image"


def is_poses(found: Any) -> None:
    assert found.to_dense().isfinite().all(), "weights are not finite"


def are_features(found: Any) -> None:
    Z, labels = found
    assert Z.ndim == 2 and Z.dtype.kind == "f" and len(Z) == len(labels), "features and labels do not belong together"
    assert np.isfinite(Z).all(), "features are not finite"
    assert all(isinstance(label, str) for label in labels), "labels are not words"


def is_sound(found: Any) -> None:
    assert found.ndim == 1 and len(found) and np.isfinite(found).all() and abs(found).max() <= 200, "no samples"


def are_spans(found: Any) -> None:
    assert found and all(0 <= s.start < s.end for s in found), "spans are not in order"


def is_table(found: Any) -> None:
    assert len(found.segments) == len(found.labels), "labels are not as many as segments"
    assert all(0 <= s.start < s.end <= s.recording.seconds for s in found.segments), "segments outside the sound"


def is_model(found: Any) -> None:
    model, given = found
    assert np.isfinite(model.transform(given)).all(), "features are not finite"


def is_result(found: Any) -> None:
    if found is not None:
        assert ("figure" in found) != ("row" in found), "neither a row nor a figure"
        if "row" in found:
            results.summary(found)
