from __future__ import annotations

from typing import get_args

from syrupy.assertion import SnapshotAssertion

from tracekit.model.evidence import Evidence, EvidenceKind
from tracekit.report.words.evidence import WORDS, evidence_sentences

EVERY = (
    Evidence("attention_lost", {"kernel": "flash_fprop", "products": 2, "other_kernels": 1}),
    Evidence("single_precision", {"products": 1, "before": "bfloat16"}),
    Evidence("single_precision", {"products": 2, "before": None}),
    Evidence("epilogue_lost", {"kernels_beside": 0}),
    Evidence("epilogue_lost", {"kernels_beside": 1}),
    Evidence("epilogue_lost", {"kernels_beside": 2}),
    Evidence("other_operator", {"work": "product", "before": "aten::mm", "after": "aten::addmm"}),
    Evidence("inputs_prepared", {"kernels": 1}),
    Evidence("inputs_prepared", {"kernels": 3}),
    Evidence("split_along_k", {"is_split": True}),
    Evidence("split_along_k", {"is_split": False}),
    Evidence("other_kernel", {"before": "void gemm_128x64_bias<float>(int)", "after": "gemm_64x64_" + "x" * 60}),
    Evidence("channels_moved_last"),
    Evidence(
        "attention_asked_otherwise",
        {
            "operator": {"before": "aten::_flash_attention_forward", "after": "aten::_efficient_attention_forward"},
            "is_causal": {"before": True, "after": False},
            "mask": {"before": None, "after": [1, 1, 512, 512]},
        },
    ),
    Evidence("attention_asked_otherwise", {"mask": {"before": [1, 1, 512, 512], "after": None}}),
    Evidence(
        "attention_asked_otherwise",
        {
            "mask": {"before": [1, 1, 1, 512], "after": [1, 1, 512, 512]},
            "key": {"before": [1, 1, 512, 256], "after": [1, 8, 512, 256]},
        },
    ),
    Evidence("same_kernel_other_time", {"before_us": 16.0, "after_us": 34.0}),
    Evidence(
        "same_kernel_other_time",
        {"before_us": 16.0, "after_us": 34.0, "inputs": {"before": [[8, 16], [16, 8]], "after": [[8, 32], [32, 8]]}},
    ),
)


def test_every_kind_of_evidence_has_words(snapshot: SnapshotAssertion):
    assert set(WORDS) == set(get_args(EvidenceKind)) == {each.kind for each in EVERY}
    assert evidence_sentences(EVERY) == snapshot
