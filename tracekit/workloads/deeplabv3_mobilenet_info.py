"""DeepLabV3 with MobileNetV2 as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

DEEPLABV3_MOBILENET = WorkloadInfo(
    name="deeplabv3-mobilenet",
    title="DeepLabV3 (MobileNetV2) segmentation: transformers.MobileNetV2ForSemanticSegmentation",
    module="tracekit.workloads.deeplabv3_mobilenet",
    sizes={
        "full": "the published architecture: full width, 513x513",
        "tiny": "a quarter of the width, for a CPU: 65x65",
    },
    memory_gib={"full": 1.0, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="pixel_values 1x3x513x513",
    parameters=2_525_717,
    breaks=NO_BREAKS,
    checkpoints={"full": "google/deeplabv3_mobilenet_v2_1.0_513"},
)
