"""Images in files of many."""

import io
import tarfile

import numpy as np
from PIL import Image


def encoded(image):
    file = io.BytesIO()
    Image.fromarray((255 * image).astype(np.uint8)).save(file, "png")
    return file.getvalue()


def tar(path, members):
    with tarfile.open(path, "w") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
