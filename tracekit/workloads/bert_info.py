"""BERT-base as a line of the list."""

from __future__ import annotations

from tracekit.model.workload import NO_BREAKS, WorkloadInfo

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
    inputs="input_ids 1x128, attention_mask 1x128",
    parameters=109_514_298,
    breaks=NO_BREAKS,
    checkpoints={"full": "google-bert/bert-base-uncased"},
)
