"""DETR with ResNet-101 as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

DETR_101 = WorkloadInfo(
    name="detr-resnet-101",
    title="DETR (ResNet-101) object detection: transformers.DetrForObjectDetection",
    module="tracekit.workloads.detr_resnet_101",
    sizes={
        "full": "the published architecture: ResNet-101, 6 + 6 layers, 100 queries, 800x1066",
        "tiny": "a ResNet of 4 blocks, 10 queries, for a CPU: 64x96",
    },
    memory_gib={"full": 1.5, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="pixel_values 1x3x800x1066",
    parameters=60_464_672,
    breaks=NO_BREAKS,
    checkpoints={"full": "facebook/detr-resnet-101"},
)
