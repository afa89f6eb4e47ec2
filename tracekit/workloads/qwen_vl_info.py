"""Qwen2.5-VL as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import WorkloadInfo

QWEN_VL = WorkloadInfo(
    name="qwen2.5-vl",
    title="Qwen2.5-VL answering prompts about images: transformers.Qwen2_5_VLForConditionalGeneration.generate",
    module="tracekit.workloads.qwen_vl",
    sizes={
        "7b": "the published 7B: 28 layers, 3584 wide, 32 vision blocks; images of 448x448, 128 new tokens",
        "3b": "the published 3B: 36 layers, 2048 wide, 32 vision blocks; images of 448x448, 128 new tokens",
        "small": "the 3B's width, 4 layers and 4 vision blocks; images of 448x448, 32 new tokens",
        "tiny": "64 wide, 2 layers and 2 vision blocks, for a CPU; images of 56x56, 4 new tokens",
    },
    memory_gib={"7b": 20.0, "3b": 10.0, "small": 3.0, "tiny": 0.5},
    scopes={
        "model": "all of it; known to break into several graphs, for the windows of the vision tower depend on values",
        "language": "the decoder",
        "visual": "the vision tower; known to break",
        "regional": "each decoder layer and vision block by itself: compiles much sooner",
    },
    fullgraph=False,
    extra="profile",
    takes=("height", "width", "prompt", "pretrained", "max_new_tokens", "use_fast", "cache", "phase"),
    # Patches of 14 pixels, of which 2x2 become one token.
    pixel_step=28,
    inputs="an image of 448x448 and a prompt, 128 new tokens",
    parameters=8_292_166_656,
    breaks="the vision tower breaks, for its windows depend on values",
    checkpoints={"7b": "Qwen/Qwen2.5-VL-7B-Instruct", "3b": "Qwen/Qwen2.5-VL-3B-Instruct"},
    # One H200: the 3B took 7.19 GiB with one image of 448x448, of which 7.0 are weights.
    megapixel_gib=1.0,
)
