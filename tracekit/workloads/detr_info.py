"""DETR with ResNet-50 as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

DETR_50 = WorkloadInfo(
    name="detr",
    title="DETR (ResNet-50) object detection: transformers.DetrForObjectDetection",
    module="tracekit.workloads.detr",
    sizes={
        "full": "the published architecture: ResNet-50, 6 + 6 layers, 100 queries, 800x1066",
        "tiny": "a ResNet of 4 blocks, 10 queries, for a CPU: 64x96",
    },
    memory_gib={"full": 1.5, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="pixel_values 1x3x800x1066",
    parameters=41_524_768,
    breaks=NO_BREAKS,
    checkpoints={"full": "facebook/detr-resnet-50"},
)
