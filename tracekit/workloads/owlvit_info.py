"""OWL-ViT-B/32 as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

OWLVIT = WorkloadInfo(
    name="owlvit",
    title="OWL-ViT-B/32 detection by words: transformers.OwlViTForObjectDetection",
    module="tracekit.workloads.owlvit",
    sizes={
        "full": "the published architecture: 12 layers, 768 wide, 768x768 in patches of 32",
        "tiny": "64 wide, 2 layers, for a CPU: 64x64",
    },
    memory_gib={"full": 1.5, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="pixel_values 1x3x768x768, input_ids 2x16, attention_mask 2x16",
    parameters=153_231_879,
    breaks=NO_BREAKS,
    checkpoints={"full": "google/owlvit-base-patch32"},
)
