"""Mask2Former with Swin-T as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

MASK2FORMER = WorkloadInfo(
    name="mask2former",
    title="Mask2Former (Swin-T) segmentation: transformers.Mask2FormerForUniversalSegmentation",
    module="tracekit.workloads.mask2former",
    sizes={
        "full": "the published architecture: Swin-T, 100 queries, 384x384",
        "tiny": "a Swin 16 wide, 10 queries, for a CPU: 64x64",
    },
    memory_gib={"full": 1.5, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="pixel_values 1x3x384x384",
    parameters=47_436_800,
    breaks=NO_BREAKS,
    checkpoints={"full": "facebook/mask2former-swin-tiny-coco-panoptic"},
)
