"""Image files as arrays of bytes: upright, in grey or colour, of a bounded size, never drawn by another program."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

# What images may be: nothing that is drawn by another program (.eps), or that few have ever tried to read.
FORMATS = ("PNG", "JPEG", "MPO", "TIFF", "GIF", "BMP", "WEBP", "PPM", "TGA", "PCX", "ICO", "JPEG2000", "AVIF")
MOST_PIXELS = 2**26  # some copies of which stay below a gigabyte


@cache
def endings() -> frozenset[str]:
    """How the names of images end, in small letters."""
    from PIL import Image

    return frozenset(ending for ending, kind in Image.registered_extensions().items() if kind in FORMATS)


def decode_image(file: Path | IO[bytes], grey: bool) -> NDArray[np.uint8]:
    """The first image of a file, upright, in bytes, (H, W) in grey or (H, W, 3); raises OSError or ValueError."""
    from PIL import Image

    try:
        return _decoded(file, grey)
    except (SyntaxError, MemoryError, OverflowError, KeyError, IndexError, Image.DecompressionBombError) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _decoded(file: Path | IO[bytes], grey: bool) -> NDArray[np.uint8]:
    from PIL import Image, ImageOps

    Image.init()
    known = [name for name in FORMATS if name in Image.OPEN]
    with warnings.catch_warnings(action="ignore"), Image.open(file, formats=known) as image:  # odd metadata do no harm
        if image.width * image.height > MOST_PIXELS:
            raise ValueError(f"it has {image.width}x{image.height} pixels, more than {MOST_PIXELS:,}; shrink it")
        ImageOps.exif_transpose(image, in_place=True)
        if image.mode in ("F", "I"):
            raise ValueError("its pixels are numbers of 32 bits, whose range is not known")
        made: Image.Image = image
        if image.mode.startswith("I;16"):  # Pillow would clip sixteen bits at 255
            made = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        if made.has_transparency_data:  # what can be seen through stands on white paper
            seen = made if made.mode == "RGBA" else made.convert("RGBA")
            made = Image.alpha_composite(Image.new("RGBA", made.size, "white"), seen)
            del seen
        mode = "L" if grey else "RGB"
        return np.array(made if made.mode == mode else made.convert(mode))
