"""A causal language model, gemma-2b, as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

CAUSAL_LM = WorkloadInfo(
    name="causal-lm",
    title="gemma-2b reading a prompt: transformers.GemmaForCausalLM, one forward from token ids to logits",
    module="tracekit.workloads.causal_lm",
    sizes={
        "full": "the published architecture: 18 layers, 2048 wide, a vocabulary of 256,000; a prompt of 512 tokens",
        "small": "full width, 4 layers; a prompt of 512 tokens",
        "tiny": "64 wide, 2 layers, for a CPU; a prompt of 32 tokens",
    },
    memory_gib={"full": 8.0, "small": 4.0, "tiny": 0.5},
    scopes={
        "model": "all of it",
        "regional": "each decoder layer by itself: compiles much sooner",
    },
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
    resizes=True,
    inputs="input_ids 1x512",
    parameters=2_506_172_416,
    breaks=NO_BREAKS,
    checkpoints={"full": "google/gemma-2b"},
)
