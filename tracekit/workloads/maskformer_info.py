"""MaskFormer with Swin-B as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

MASKFORMER = WorkloadInfo(
    name="maskformer",
    title="MaskFormer (Swin-B) segmentation: transformers.MaskFormerForInstanceSegmentation",
    module="tracekit.workloads.maskformer",
    sizes={
        "full": "the published architecture: Swin-B, 100 queries, 640x640",
        "tiny": "a Swin 16 wide, 10 queries, for a CPU: 64x64",
    },
    memory_gib={"full": 2.0, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="pixel_values 1x3x640x640",
    parameters=101_831_439,
    breaks=NO_BREAKS,
    dtype="float32",
    checkpoints={"full": "facebook/maskformer-swin-base-ade"},
)
