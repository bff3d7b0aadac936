"""ConvModule: dense features of whole images, as a layer that goes on learning in a network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orbitpool.images.patches import as_floats, as_images, check_channels, check_grid, dense_patches
from orbitpool.images.whitening import normalize_contrast


class ConvModule(nn.Module):
    """Features of images (N, H, W) or (N, H, W, C), averaged on a grid: (N, grid * grid * F), cell by cell, row by row.

    Bytes count as 0-1; floats become those of the module. Images of other sizes than those learned from will do.
    Contrast and whitening stay as they were learned; `features`, which encodes whitened patches, is trained.

    Attributes
    ----------
    features : nn.Module
        Patches (P, D) to their features (P, F).
    mean, whitening : buffers (D,), (D, D)
    """

    mean: Tensor
    whitening: Tensor

    def __init__(
        self,
        features: nn.Module,
        mean: Tensor,
        whitening: Tensor,
        *,
        patch: tuple[int, int],
        stride: int,
        grid: int,
        mirror: bool,
        contrast: float | None,
    ) -> None:
        super().__init__()
        self.features = features
        self.register_buffer("mean", mean)
        self.register_buffer("whitening", whitening)
        self.patch, self.stride, self.grid, self.mirror, self.contrast = patch, stride, grid, mirror, contrast

    def forward(self, images: Tensor) -> Tensor:
        """Features, (N, grid * grid * F)."""
        images = as_images(images)
        check_channels(images, len(self.mean) // (self.patch[0] * self.patch[1]))
        check_grid(images, self.patch, self.stride, self.grid)
        floats = as_floats(images, images.device).to(self.mean.dtype)
        features = self._pooled(floats)
        return (features + self._pooled(floats.flip(2))) / 2 if self.mirror else features

    def _pooled(self, images: Tensor) -> Tensor:
        patches = dense_patches(images, self.patch, self.stride)
        n, rows, columns = patches.shape[:3]
        x = patches.reshape(n * rows * columns, len(self.mean))
        x = x if self.contrast is None else normalize_contrast(x, self.contrast)
        z = self.features((x - self.mean) @ self.whitening).view(n, rows, columns, -1)
        bands = z.tensor_split(self.grid, 1)
        return torch.cat([cell.mean((1, 2)) for band in bands for cell in band.tensor_split(self.grid, 2)], 1)

    def extra_repr(self) -> str:
        """What `print` says of the layer."""
        names = ("patch", "stride", "grid", "mirror", "contrast")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)
