"""BERT-base as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import WorkloadInfo

BERT = WorkloadInfo(
    name="bert",
    title="BERT-base guessing masked words: transformers.BertForMaskedLM",
    module="tracekit.workloads.bert",
    sizes={
        "full": "the published architecture: 12 layers, 768 wide; 128 tokens",
        "tiny": "64 wide, 2 layers, for a CPU; 16 tokens",
    },
    memory_gib={"full": 1.5, "tiny": 0.5},
    scopes={"model": "all of it"},
    fullgraph=True,
    extra="profile",
    takes=("pretrained",),
)
