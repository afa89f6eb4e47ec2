"""ResNet-50 as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import WorkloadInfo

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
)
