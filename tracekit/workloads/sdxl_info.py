"""The UNet of Stable Diffusion XL as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

SDXL = WorkloadInfo(
    name="sdxl",
    title="Stable Diffusion XL's UNet, one denoising step: diffusers.UNet2DConditionModel",
    module="tracekit.workloads.sdxl",
    sizes={
        "full": "the published architecture: 320 to 1280 wide; 1024x1024, with guidance",
        "tiny": "32 to 64 wide, for a CPU; 128x128, with guidance",
    },
    memory_gib={"full": 9.0, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    inputs="sample 2x4x128x128, timestep scalar, encoder_hidden_states 2x77x2048, text_embeds 2x1280, time_ids 2x6",
    parameters=2_567_463_684,
    breaks=NO_BREAKS,
)
