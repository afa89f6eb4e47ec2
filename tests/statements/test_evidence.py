from typing import get_args

from syrupy.assertion import SnapshotAssertion

from tracekit.model.groups import Change, Evidence, EvidenceKind
from tracekit.model.statement import builtins_of
from tracekit.statements import evidence

WIDE, NARROW = (1, 1, 512, 512), (1, 1, 1, 512)
SHOWN: tuple[Evidence, ...] = (
    evidence.AttentionLost("flash_fprop", products=2, other_kernels=1),
    evidence.SinglePrecision(products=1, before="bfloat16"),
    evidence.SinglePrecision(products=2, before=None),
    evidence.EpilogueLost(kernels_beside=0),
    evidence.EpilogueLost(kernels_beside=1),
    evidence.EpilogueLost(kernels_beside=2),
    evidence.OtherOperator("product", before="aten::mm", after="aten::addmm"),
    evidence.InputsPrepared(kernels=1),
    evidence.InputsPrepared(kernels=3),
    evidence.SplitAlongK(is_split=True),
    evidence.SplitAlongK(is_split=False),
    evidence.OtherKernel(before="void gemm_128x64_bias<float>(int)", after="gemm_64x64_" + "x" * 60),
    evidence.ChannelsMovedLast(),
    evidence.AttentionAskedOtherwise(
        operator=Change("aten::_flash_attention_forward", "aten::_efficient_attention_forward"),
        is_causal=Change(before=True, after=False),
        mask=Change(None, WIDE),
    ),
    evidence.AttentionAskedOtherwise(mask=Change(WIDE, None)),
    evidence.AttentionAskedOtherwise(mask=Change(NARROW, WIDE), key=Change((1, 1, 512, 256), (1, 8, 512, 256))),
    evidence.SameKernelOtherTime(before_us=16.0, after_us=34.0),
    evidence.SameKernelOtherTime(before_us=16.0, after_us=34.0, inputs=Change([(8, 16), (16, 8)], [(8, 32), (32, 8)])),
)


def test_every_kind_of_evidence_has_words(snapshot: SnapshotAssertion) -> None:
    assert set(Evidence.classes) == set(get_args(EvidenceKind)) == {each.code for each in SHOWN}
    assert tuple(each.long() for each in SHOWN) == snapshot


def test_what_one_side_has_not_is_written_as_null() -> None:
    asked = evidence.AttentionAskedOtherwise(mask=Change(None, [8, 8]))
    facts = {"mask": {"before": None, "after": [8, 8]}}
    assert builtins_of(asked) == {"kind": "attention_asked_otherwise", "facts": facts}
