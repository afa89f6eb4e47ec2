"""A few linear layers as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

MLP = WorkloadInfo(
    name="mlp",
    title="a few blocks of LayerNorm, Linear, GELU, Linear: compiles in seconds, to learn and to try things with",
    module="tracekit.workloads.mlp",
    sizes={
        "full": "4 blocks, 1024 wide, 512 tokens",
        "tiny": "2 blocks, 64 wide, 32 tokens, for a CPU",
    },
    memory_gib={"full": 1.0, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    resizes=True,
    inputs="x 1x512x1024",
    parameters=33_583_104,
    breaks=NO_BREAKS,
    torch_alone=True,
)
