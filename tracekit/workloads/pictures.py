"""Pictures drawn here, for models that look at some."""

from __future__ import annotations

import torch
from PIL import Image


def draw_images(count: int, height: int, width: int, seed: int) -> torch.Tensor:
    """RGB images from -1 to 1: a blue disc, placed by the seed, before a gradient of red and green. The same on every
    device."""
    places = torch.rand(count, 2, 1, 1, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    down, across = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    disc = (down - places[:, 0]) ** 2 + (across - places[:, 1]) ** 2 < 0.25
    return torch.stack((across.expand_as(disc), down.expand_as(disc), disc * 2.0 - 1), dim=1)


def draw_pictures(count: int, height: int, width: int, seed: int) -> list[Image.Image]:
    """The same images as PIL has them."""
    bytes_ = ((draw_images(count, height, width, seed) + 1) * 127.5).to(torch.uint8).permute(0, 2, 3, 1)
    return [Image.fromarray(each.numpy()) for each in bytes_]
