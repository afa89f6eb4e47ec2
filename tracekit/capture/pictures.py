"""Small pictures of the images that a model makes."""

from __future__ import annotations

import torch
from torch.nn import functional

from tracekit.capture.outputs import Output

#: Longest side of a picture in pixels: enough to see whether two images are the same, small enough for a page.
PIXELS = 192
#: By what a difference is multiplied at most; more would show the rounding of the picture itself.
MOST_SCALE = 64.0


def find_images(output: Output) -> torch.Tensor | None:
    """The first images of an output, [N, 3, height, width] with values from 0 to 1; None where there are none. What has
    three channels and such values is taken for images."""
    for tensor in output.tensors.values():
        if tensor.ndim != 4 or tensor.shape[1] != 3 or min(tensor.shape[2:]) < 16 or not tensor.is_floating_point():
            continue
        images = tensor.float()
        if bool(torch.isfinite(images).all()) and images.min() >= -1e-3 and images.max() <= 1.001:
            return images
    return None


def draw_image(images: torch.Tensor) -> bytes:
    """The first image as PNG, made smaller if it is larger than 192 pixels."""
    return _png(_small(images[:1]))


def draw_difference(images: torch.Tensor, others: torch.Tensor) -> tuple[bytes, float]:
    """The difference of the first images as PNG, and by what it was multiplied so that its largest value is white; at
    most 64. Where the images are the same it is black."""
    difference = (images[:1] - others[:1]).abs()
    largest = float(difference.max())
    scale = min(1 / largest, MOST_SCALE) if largest else 1.0
    return _png(_small(difference * scale)), scale


def _small(images: torch.Tensor) -> torch.Tensor:
    shrinking = PIXELS / max(images.shape[2:])
    if shrinking >= 1:
        return images
    size = [max(round(side * shrinking), 1) for side in images.shape[2:]]
    return functional.interpolate(images, size=size, mode="area")


def _png(images: torch.Tensor) -> bytes:
    import io

    from PIL import Image

    pixels = (images[0].clamp(0, 1) * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous()
    file = io.BytesIO()
    Image.fromarray(pixels.numpy()).save(file, format="PNG", optimize=True)
    return file.getvalue()
