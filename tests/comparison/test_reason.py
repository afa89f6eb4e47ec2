from __future__ import annotations

from dataclasses import replace

import pytest

from tracekit.comparison.reason import find_reason
from tracekit.model.apart import ApartChange
from tracekit.model.comparison import Side, Verdict, Waterfall, WaterfallPart

from ..sides import make_analysis, make_pair, scaled

FASTER = Verdict("faster", 2.0, (1.9, 2.1), 0.01, 2000.0, 1000.0)
A, B = make_pair(scaled(2.0), scaled(1.0))


def gpu(label: str, delta_us: float) -> WaterfallPart:
    return WaterfallPart("gpu", label, delta_us)


def idle(cause: str, delta_us: float) -> WaterfallPart:
    return WaterfallPart("idle", cause, delta_us, delta_us)


def waterfall(*parts: WaterfallPart, residual_us: float = 0.0) -> Waterfall:
    b_us = 10_000 + sum(part.delta_us for part in parts) + residual_us
    return Waterfall("unprofiled", 10_000.0, b_us, parts, residual_us)


def test_the_larger_share_comes_first_with_the_parts_that_made_it() -> None:
    parts = (gpu("fused", -900), gpu("slower", 100), idle("op_dispatch", -2000), idle("launch_call", -300))
    reason = find_reason(A, B, FASTER, waterfall(*parts))
    assert reason is not None
    assert [(share.kind, share.delta_us) for share in reason.shares] == [("idle", -2300), ("gpu", -800)]
    # A part that went the other way made the share smaller, and launch calls are less than 15 % of theirs.
    assert [[part.label for part in share.parts] for share in reason.shares] == [["op_dispatch"], ["fused"]]
    assert reason.change_us == -3100
    assert reason.unexplained_us == 0


def test_at_most_two_parts_are_named_the_largest_first() -> None:
    parts = (gpu("c", -300), gpu("a", -500), gpu("b", -400))
    reason = find_reason(A, B, FASTER, waterfall(*parts))
    assert reason is not None
    assert [part.label for part in reason.shares[0].parts] == ["a", "b"]


def test_what_is_left_of_other_parts_names_nothing() -> None:
    parts = (gpu("other GPU work", -500), gpu("overlap correction", -500), gpu("unchanged kernels", -500))
    reason = find_reason(A, B, FASTER, waterfall(*parts))
    assert reason is not None
    assert [part.label for part in reason.shares[0].parts] == ["unchanged kernels"]
    assert reason.shares[0].delta_us == -1500


def test_a_small_share_is_left_out_and_counts_as_unexplained_only_with_more() -> None:
    reason = find_reason(A, B, FASTER, waterfall(gpu("fused", -1000), idle("device", -30)))
    assert reason is not None
    assert [share.kind for share in reason.shares] == ["gpu"]
    assert reason.unexplained_us == 0
    reason = find_reason(A, B, FASTER, waterfall(gpu("fused", -1000), idle("device", -30), residual_us=-70))
    assert reason is not None
    assert reason.unexplained_us == pytest.approx(-100)


def with_rich(side: Side, longer_us: float) -> Side:
    """The side, with a rich recording that shows so much more GPU time per step."""
    return replace(side, rich=make_analysis({"gemm": ("gemm", 2, 2 * (side.busy_us or 0) + 2 * longer_us)}))


def test_gpu_work_that_may_be_the_recordings_own_difference_is_not_told() -> None:
    parts = waterfall(gpu("fused", -100), idle("op_dispatch", -900))
    known = find_reason(with_rich(A, 40), with_rich(B, 50), FASTER, parts)
    doubted = find_reason(with_rich(A, 60), with_rich(B, 50), FASTER, parts)
    assert known is not None
    assert doubted is not None
    assert [share.kind for share in known.shares] == ["idle", "gpu"]
    assert [share.kind for share in doubted.shares] == ["idle"]
    assert doubted.unexplained_us == pytest.approx(-100)


@pytest.mark.parametrize("result", ["inconclusive", "not_timed"])
def test_a_difference_that_was_not_established_has_no_reason(result: str) -> None:
    assert find_reason(A, B, replace(FASTER, result=result), waterfall(gpu("fused", -1000))) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("beyond", [True, False])
def test_separate_runs_have_a_reason_where_their_times_differ_by_more_than_those_leave_open(beyond: bool) -> None:
    apart = ApartChange(0.5, 0.45, 0.55, None, beyond)
    verdict = replace(FASTER, result="inconclusive", basis="apart", apart=apart)
    assert (find_reason(A, B, verdict, waterfall(gpu("fused", -1000))) is not None) is beyond


def test_recorded_windows_are_distorted_and_explain_no_unprofiled_difference() -> None:
    assert find_reason(A, B, FASTER, replace(waterfall(gpu("fused", -1000)), basis="trace")) is None
    assert find_reason(A, B, FASTER, None) is None
