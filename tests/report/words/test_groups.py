from typing import get_args

from syrupy.assertion import SnapshotAssertion

from tracekit.model.groups import Evidence, EvidenceKind, GroupLabel, KernelCounts
from tracekit.report.words.groups import EVIDENCE, FAMILIES, PARTS, evidence_sentences, label_words

PRODUCT = KernelCounts(1, 0, (("product", 1),))
MIXED = KernelCounts(4, 0, (("attention", 1), ("product", 2)))
PLAIN, TRITON, SOME = KernelCounts(14, 0, ()), KernelCounts(2, 2, ()), KernelCounts(3, 1, ())
EVERY = (
    "void gemm<float>(int)",
    GroupLabel("fused", 38, PLAIN, TRITON, ("rms_norm", "mul", "add", "neg"), more_operators=True),
    GroupLabel("defused", 8.5, PRODUCT, MIXED),
    GroupLabel("substituted", 1, SOME, KernelCounts(1, 0, ())),
    GroupLabel("eliminated", 1, PLAIN, None, ("copy",)),
    GroupLabel("added", 2, None, TRITON),
    GroupLabel("unmatched", 1, None, PLAIN),
    *(GroupLabel("substituted", family=family) for family in FAMILIES),  # type: ignore[arg-type]
    GroupLabel("unmatched", family="gemm"),
    GroupLabel("communication", family="communication"),
    *PARTS,
)


def test_every_label_has_words(snapshot: SnapshotAssertion):
    assert [label_words(each) for each in EVERY] == snapshot


SHOWN = (
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
    assert set(EVIDENCE) == set(get_args(EvidenceKind)) == {each.kind for each in SHOWN}
    assert evidence_sentences(SHOWN) == snapshot
