from __future__ import annotations

from dataclasses import replace

from tracekit.model.comparison import Comparison, Reason, ReasonShare, Waterfall, WaterfallPart
from tracekit.report.sections.reason import reason_sentence

from .conftest import timed_comparison

FUSED = WaterfallPart("gpu", "7 kernels -> 1 Triton", -500.0)
DISPATCH = WaterfallPart("idle", "op_dispatch", -2000.0, -2500.0)


def told(*shares: ReasonShare, unexplained_us: float = 0.0) -> Comparison:
    waterfall = Waterfall("unprofiled", 10_000.0, 7500.0, (FUSED, DISPATCH), 0.0)
    return replace(timed_comparison(), waterfall=waterfall, reason=Reason(-2500.0, shares, unexplained_us))


def test_a_reason_is_a_sentence_in_the_waterfall_s_words() -> None:
    comparison = told(ReasonShare("idle", -2000.0, (DISPATCH,)), ReasonShare("gpu", -500.0, (FUSED,)))
    assert reason_sentence(comparison) == (
        "Why: the GPU waits 2.00 ms less (operator dispatch −2.00 ms);"
        " GPU work takes 500.0 µs less (7 kernels -> 1 Triton −500.0 µs)."
    )


def test_what_became_longer_is_told_as_that() -> None:
    comparison = told(ReasonShare("gpu", 300.0, ()), ReasonShare("idle", 200.0, ()))
    assert reason_sentence(comparison) == "Why: GPU work takes 300.0 µs longer; the GPU waits 200.0 µs more."


def test_what_is_not_explained_is_said() -> None:
    assert reason_sentence(told(unexplained_us=-2500.0)) == "Why: −2.50 ms is not explained."
    comparison = told(ReasonShare("gpu", -500.0, ()), unexplained_us=-900.0)
    assert reason_sentence(comparison) == "Why: GPU work takes 500.0 µs less; another −900.0 µs is not explained."


def test_without_a_reason_there_is_no_sentence() -> None:
    assert reason_sentence(replace(timed_comparison(), reason=None)) is None
