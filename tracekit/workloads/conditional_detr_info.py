"""Conditional DETR with ResNet-50 as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

CONDITIONAL_DETR = WorkloadInfo(
    name="conditional-detr",
    title="Conditional DETR (ResNet-50): transformers.ConditionalDetrForObjectDetection",
    module="tracekit.workloads.conditional_detr",
    sizes={
        "full": "the published architecture: ResNet-50, 6 + 6 layers, 300 queries, 800x1066",
        "tiny": "a ResNet of 4 blocks, 10 queries, for a CPU: 64x96",
    },
    memory_gib={"full": 1.5, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="pixel_values 1x3x800x1066",
    parameters=43_418_401,
    breaks=NO_BREAKS,
    checkpoints={"full": "microsoft/conditional-detr-resnet-50"},
)
