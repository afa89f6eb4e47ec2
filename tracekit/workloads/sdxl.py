"""The UNet of Stable Diffusion XL: one denoising step, with guidance.

Architecture figures are those of the published configuration file of stabilityai/stable-diffusion-xl-base-1.0.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from diffusers import UNet2DConditionModel

from tracekit.workloads.one_forward import OneForward, build_one_forward
from tracekit.workloads.sdxl_info import SDXL

FULL: dict[str, Any] = {
    "block_out_channels": (320, 640, 1280),
    "attention_head_dim": (5, 10, 20),
    "transformer_layers_per_block": (1, 2, 10),
    "cross_attention_dim": 2048,
    "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
}
TINY: dict[str, Any] = {
    "block_out_channels": (32, 64),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    "layers_per_block": 1,
    "attention_head_dim": (1, 2),
    "transformer_layers_per_block": (1, 1),
    "cross_attention_dim": 32,
    "addition_time_embed_dim": 8,
    "projection_class_embeddings_input_dim": 64,
}
BLOCKS: dict[str, Any] = {
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
}
#: A latent is an eighth of the picture.
LATENT_PIXELS = {"full": 128, "tiny": 16}
TEXT_TOKENS = 77
TIME_IDS = 6


def _model(size: str) -> UNet2DConditionModel:
    figures = {"full": FULL, "tiny": TINY}[size]
    return UNet2DConditionModel(
        **{**BLOCKS, **figures},
        sample_size=LATENT_PIXELS[size],
        use_linear_projection=True,
        addition_embed_type="text_time",
    )


def draw_latents(size: str, count: int, seed: int) -> dict[str, Any]:
    """Noise, and embeddings of prompts, drawn by the seed: two of each a picture, with the prompt and without."""
    generator = torch.Generator().manual_seed(seed)
    figures = {"full": FULL, "tiny": TINY}[size]
    pixels, text = LATENT_PIXELS[size], figures["cross_attention_dim"]
    pooled = figures["projection_class_embeddings_input_dim"] - TIME_IDS * figures["addition_time_embed_dim"]
    # Original size, crop and target size, in the picture's pixels.
    time_ids = torch.tensor([8.0 * pixels, 8.0 * pixels, 0, 0, 8.0 * pixels, 8.0 * pixels])
    return {
        "sample": torch.randn(2 * count, 4, pixels, pixels, generator=generator),
        "timestep": torch.tensor(500),
        "encoder_hidden_states": torch.randn(2 * count, TEXT_TOKENS, text, generator=generator),
        "added_cond_kwargs": {
            "text_embeds": torch.randn(2 * count, pooled, generator=generator),
            "time_ids": time_ids.expand(2 * count, TIME_IDS),
        },
    }


SDXL_MODEL = OneForward(
    info=SDXL,
    kind=UNet2DConditionModel,
    make=_model,
    inputs=draw_latents,
    does={
        size: f"takes one denoising step of pictures of {8 * pixels}x{8 * pixels}, each with its prompt and without"
        for size, pixels in LATENT_PIXELS.items()
    },
    outputs=("sample",),
    gpu_iterations=20,
)
build = partial(build_one_forward, SDXL_MODEL)
