"""Data sets from their official files, the digits in variations that the paper makes, and folders of images.

Files are looked for in one folder (`data_dir`), fetched there with their checksums when they are missing, and never
used half-written. Every data set says what it is: official, rebuilt by the published recipe, or a stand-in.
"""

from orbitpool.datasets.dataset import Dataset, Provenance
from orbitpool.datasets.objects import cifar10, stl10, write_stl10_32
from orbitpool.datasets.photographs import ImageFolder, image_folder, natural_images, sample_photographs
from orbitpool.datasets.store import DataCorrupt, DataMissing, data_dir
from orbitpool.datasets.timit import Phones, timit
from orbitpool.datasets.variations import VARIATIONS, make_variation, move_digits
from orbitpool.datasets.written import mnist, mnist_variation, turned_digits

__all__ = [
    "VARIATIONS",
    "DataCorrupt",
    "DataMissing",
    "Dataset",
    "ImageFolder",
    "Phones",
    "Provenance",
    "cifar10",
    "data_dir",
    "image_folder",
    "make_variation",
    "mnist",
    "mnist_variation",
    "move_digits",
    "natural_images",
    "sample_photographs",
    "stl10",
    "timit",
    "turned_digits",
    "write_stl10_32",
]
