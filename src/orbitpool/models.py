"""Models out of files: learners, and features around them."""

from __future__ import annotations

import os

from orbitpool import modelfile
from orbitpool.images import ConvFeatures, Stack
from orbitpool.kernels import choose_device, undisturbed
from orbitpool.learners import CLASSES, Learner, files
from orbitpool.learners.around import AroundLearner
from orbitpool.speech import SpeechFeatures

AROUND: dict[str, type[AroundLearner | Stack]] = {
    "ConvFeatures": ConvFeatures,
    "SpeechFeatures": SpeechFeatures,
    "Stack": Stack,
}


@undisturbed()
def load(path: str | os.PathLike[str], device: str = "auto") -> Learner | AroundLearner | Stack:
    """The model that `save` wrote, or that a checkpoint holds; runs nothing from the file, refuses what is damaged."""
    choose_device(device, None)
    content, tensors = modelfile.read(path)
    with modelfile.understood(path):
        around = AROUND.get(content["class"])
        if around is None:
            return files.unpack(content, tensors, CLASSES, device)
        return around.unpack(content, tensors, CLASSES, device)
