"""BEiT-B/16 as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

BEIT = WorkloadInfo(
    name="beit",
    title="BEiT-B/16 image classification: transformers.BeitForImageClassification",
    module="tracekit.workloads.beit",
    sizes={
        "full": "the published architecture: 12 layers, 768 wide, 224x224 in patches of 16",
        "tiny": "64 wide, 2 layers, for a CPU: 64x64",
    },
    memory_gib={"full": 1.5, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="pixel_values 1x3x224x224",
    parameters=102_557_713,
    breaks=NO_BREAKS,
    checkpoints={"full": "microsoft/beit-base-patch16-224-pt22k-ft22k"},
)
