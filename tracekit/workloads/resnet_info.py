"""ResNet-50 as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

RESNET = WorkloadInfo(
    name="resnet",
    title="ResNet-50 image classification: transformers.ResNetForImageClassification",
    module="tracekit.workloads.resnet",
    sizes={
        "full": "the published architecture: 16 bottleneck blocks, 224x224",
        "tiny": "4 bottleneck blocks, for a CPU: 64x64",
    },
    memory_gib={"full": 1.0, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="pixel_values 1x3x224x224",
    parameters=25_557_032,
    breaks=NO_BREAKS,
    checkpoints={"full": "microsoft/resnet-50"},
)
