"""FLUX.1-dev as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

FLUX = WorkloadInfo(
    name="flux",
    title="FLUX.1-dev text to image: diffusers.FluxPipeline with both text encoders, transformer and VAE",
    module="tracekit.workloads.flux",
    sizes={
        "full": "the published architecture: 19 + 38 blocks, T5-XXL, 512x512, 4 denoising steps",
        "small": "full width, 4 + 8 blocks, 4 T5 layers, 512x512, 4 denoising steps",
        "tiny": "64 wide, 1 + 2 blocks, for a CPU: 128x128, 2 denoising steps",
    },
    memory_gib={"full": 38.0, "small": 11.0, "tiny": 0.5},
    scopes={
        "transformer": "the denoising network, most of the time",
        "vae": "the image decoder",
        "text-encoders": "CLIP-L and T5-XXL",
        "all": "transformer, vae and text-encoders",
        "regional": "each repeated transformer block by itself: compiles much sooner",
    },
    fullgraph=True,
    extra="profile",
    takes=("height", "width", "steps", "prompt", "pretrained"),
    # The VAE shrinks by 8 and the transformer packs 2x2 latents into a token; diffusers would round in silence.
    pixel_step=16,
    resizes=True,
    inputs="a prompt of 512 T5 and 77 CLIP tokens, noise for an image of 512x512",
    parameters=16_870_599_139,
    breaks=NO_BREAKS,
    checkpoints={"full": "black-forest-labs/FLUX.1-dev"},
    # One H200, eager: at most 32.1 GiB held at 512x512, 34.0 with batch 5, 33.8 at 1024x1024, 41.5 with batch 5.
    megapixel_gib=1.9,
)
