"""Models that look at pictures, in one forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from tracekit.model.workload import WorkloadInfo
from tracekit.workloads.one_forward import OneForward
from tracekit.workloads.pictures import draw_images


def image_model(
    info: WorkloadInfo,
    kind: Any,
    make: Callable[[str], Any],
    sizes: Mapping[str, tuple[int, int]],
    does: str,
    outputs: tuple[str, ...] = ("logits",),
    words: Callable[[int], dict[str, torch.Tensor]] | None = None,
) -> OneForward:
    """A workload whose inputs are images drawn here, in the height and width of a size, and `words` for so many of
    them. `does` says what a call does to images."""

    def inputs(size: str, count: int, seed: int) -> dict[str, Any]:
        height, width = sizes[size]
        return {"pixel_values": draw_images(count, height, width, seed), **(words(count) if words else {})}

    said = {size: f"{does} images of {height}x{width}" for size, (height, width) in sizes.items()}
    return OneForward(info, kind, make, inputs, said, outputs)
