"""FLUX.1-schnell as a line of the list."""

from __future__ import annotations

from dataclasses import replace

from tracekit.workloads.flux_info import FLUX

FLUX_SCHNELL = replace(
    FLUX,
    name="flux-schnell",
    title="FLUX.1-schnell text to image: the pipeline of flux without guidance, its noise levels not shifted",
    module="tracekit.workloads.flux_schnell",
    inputs="a prompt of 256 T5 and 77 CLIP tokens, noise for an image of 512x512",
    parameters=16_860_369_379,
    checkpoints={"full": "black-forest-labs/FLUX.1-schnell"},
)
