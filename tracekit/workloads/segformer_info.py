"""SegFormer-B0 as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

SEGFORMER = WorkloadInfo(
    name="segformer",
    title="SegFormer-B0 segmentation: transformers.SegformerForSemanticSegmentation",
    module="tracekit.workloads.segformer",
    sizes={
        "full": "the published architecture: 8 layers, 32 to 256 wide, 512x512",
        "tiny": "4 layers, 16 to 32 wide, for a CPU: 64x64",
    },
    memory_gib={"full": 1.0, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="pixel_values 1x3x512x512",
    parameters=3_752_694,
    breaks=NO_BREAKS,
    checkpoints={"full": "nvidia/segformer-b0-finetuned-ade-512-512"},
)
