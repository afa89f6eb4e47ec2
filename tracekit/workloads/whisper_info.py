"""Whisper-small as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

WHISPER = WorkloadInfo(
    name="whisper",
    title="Whisper-small, one forward: transformers.WhisperForConditionalGeneration",
    module="tracekit.workloads.whisper",
    sizes={
        "full": "the published architecture: 12 + 12 layers, 768 wide; 30 s of sound, 64 words",
        "tiny": "64 wide, 2 + 2 layers, for a CPU; 1 s of sound, 8 words",
    },
    memory_gib={"full": 2.0, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    inputs="input_features 1x80x3000, decoder_input_ids 1x64",
    parameters=241_734_912,
    breaks=NO_BREAKS,
    checkpoints={"full": "openai/whisper-small"},
)
