"""From images to features: patches, contrast normalisation, whitening, and dense encoding pooled on a grid."""

from orbitpool.images.conv import ConvFeatures
from orbitpool.images.patches import dense_patches, random_patches
from orbitpool.images.stack import Stack
from orbitpool.images.whitening import ZCA, ContrastNormalizer

__all__ = ["ZCA", "ContrastNormalizer", "ConvFeatures", "Stack", "dense_patches", "random_patches"]
