from syrupy.assertion import SnapshotAssertion

from tracekit.model.groups import GroupLabel, KernelCounts
from tracekit.report.words.groups import FAMILIES, PARTS, label_words

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
