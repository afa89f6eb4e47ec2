"""ConvNeXt-L as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

CONVNEXT = WorkloadInfo(
    name="convnext",
    title="ConvNeXt-L image classification: transformers.ConvNextForImageClassification",
    module="tracekit.workloads.convnext",
    sizes={
        "full": "the published architecture: 36 blocks, 192 to 1536 wide, 224x224",
        "tiny": "4 blocks, 16 to 128 wide, for a CPU: 64x64",
    },
    memory_gib={"full": 1.5, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="pixel_values 1x3x224x224",
    parameters=197_767_336,
    breaks=NO_BREAKS,
    checkpoints={"full": "facebook/convnext-large-224"},
)
