from __future__ import annotations

from dataclasses import replace

import pytest

from tracekit.model.comparison import Reason, ReasonShare, WaterfallPart
from tracekit.model.groups import GroupLabel, KernelCounts, WorkKind
from tracekit.report.sections.headline import reason_sentence

from .conftest import timed_comparison

TRITON = KernelCounts(1, 1, ())
PRODUCT, PRODUCTS = KernelCounts(1, 0, (("product", 1),)), KernelCounts(2, 0, (("product", 2),))
ATTENTION, CONVOLUTION = KernelCounts(1, 0, (("attention", 1),)), KernelCounts(1, 0, (("convolution", 1),))
FUSED = WaterfallPart("gpu", GroupLabel("fused", 152, KernelCounts(7, 0, ()), TRITON), -500.0)
DISPATCH = WaterfallPart("idle", "op_dispatch", -2000.0, -2500.0)


def told(*shares: ReasonShare, unexplained_us: float = 0.0, of_one_process: bool = False) -> str | None:
    reason = Reason(-2500.0, shares, unexplained_us, of_one_process)
    return reason_sentence(replace(timed_comparison(), reason=reason))


def test_a_reason_is_a_sentence_without_shorthand() -> None:
    shares = ReasonShare("idle", -2000.0, (DISPATCH,), 0.0), ReasonShare("gpu", -300.0, (FUSED,), 200.0)
    assert told(*shares) == (
        "Why: the GPU waits 2.00 ms less (operator dispatch −2.00 ms);"
        " GPU work takes 300.0 µs less (152 times 7 kernels became 1 Triton −500.0 µs; all else +200.0 µs)."
    )


@pytest.mark.parametrize(
    ("label", "words"),
    [
        (
            GroupLabel("substituted", 3, CONVOLUTION, CONVOLUTION, ("conv2d",)),
            "3 times another convolution kernel (conv2d)",
        ),
        (GroupLabel("substituted", 1, ATTENTION, ATTENTION), "another attention kernel"),
        (GroupLabel("defused", 1, PRODUCT, PRODUCTS, ("mm",)), "product became 2 products (mm)"),
        (
            GroupLabel("defused", 1, PRODUCT, replace(PRODUCT, count=2), ("mm",)),
            "product became product and 1 more (mm)",
        ),
        (GroupLabel("substituted", 1, CONVOLUTION, PRODUCT, ("conv2d",)), "convolution became product (conv2d)"),
        (GroupLabel("substituted", 1, PRODUCTS, PRODUCTS, ("mm",)), "2 products became 2 products (mm)"),
    ],
)
def test_one_library_kernel_in_another_s_place_is_told_as_that(label: GroupLabel, words: str) -> None:
    part = WaterfallPart("gpu", label, 300.0)
    assert told(ReasonShare("gpu", 300.0, (part,), 0.0)) == f"Why: GPU work takes 300.0 µs longer ({words} +300.0 µs)."


def test_what_became_longer_is_told_as_that() -> None:
    shares = ReasonShare("gpu", 300.0, (FUSED,), 0.0), ReasonShare("idle", 200.0, (), 0.0)
    assert told(*shares) == (
        "Why: GPU work takes 300.0 µs longer (152 times 7 kernels became 1 Triton −500.0 µs);"
        " the GPU waits 200.0 µs more."
    )


def test_gpu_work_of_which_no_part_is_large_is_told_to_be_in_many() -> None:
    assert told(ReasonShare("gpu", 300.0, (), 0.0)) == (
        "Why: GPU work takes 300.0 µs longer (no one group of kernels makes 15 % of it)."
    )


def test_a_label_s_operators_are_not_cut() -> None:
    products: tuple[tuple[WorkKind, int], ...] = (("product", 3),)
    counts = KernelCounts(10, 0, products), KernelCounts(7, 0, products)
    label = GroupLabel("substituted", 1, *counts, ("linear", "upsample_bilinear2d", "cat"))
    told_of = told(ReasonShare("gpu", -300.0, (WaterfallPart("gpu", label, -300.0),), 0.0))
    assert told_of is not None and "(linear, upsample_bilinear2d, cat) −300.0 µs" in told_of


def test_what_is_not_explained_is_said() -> None:
    share = ReasonShare("gpu", -500.0, (FUSED,), 0.0)
    assert told(share, unexplained_us=-900.0) == (
        "Why: GPU work takes 500.0 µs less (152 times 7 kernels became 1 Triton −500.0 µs);"
        " another −900.0 µs is not explained."
    )


def test_of_several_processes_it_is_said_which_change_is_explained() -> None:
    share = ReasonShare("idle", -500.0, (), 0.0)
    assert told(share, of_one_process=True) == (
        "Why in the recorded process (−2.50 ms a call): the GPU waits 500.0 µs less."
    )


def test_without_a_reason_there_is_no_sentence() -> None:
    assert reason_sentence(replace(timed_comparison(), reason=None)) is None
