"""ViT-B/16 as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

VIT = WorkloadInfo(
    name="vit",
    title="ViT-B/16 image classification: transformers.ViTForImageClassification, from pixels to logits",
    module="tracekit.workloads.vit",
    sizes={
        "full": "the published architecture: 12 layers, 768 wide, 224x224 in patches of 16",
        "tiny": "64 wide, 2 layers, for a CPU: 64x64",
    },
    memory_gib={"full": 1.5, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    resizes=True,
    inputs="pixel_values 1x3x224x224",
    parameters=86_567_656,
    breaks=NO_BREAKS,
    checkpoints={"full": "google/vit-base-patch16-224"},
)
