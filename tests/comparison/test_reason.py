from __future__ import annotations

from dataclasses import replace

import pytest

from tracekit.comparison.waterfall import find_reason
from tracekit.model.comparison import Side, Verdict, Waterfall, WaterfallPart
from tracekit.model.estimate import SeparateRunsChange
from tracekit.model.labels import GroupLabel, Label

from ..sides import make_analysis, make_pair, scaled

FASTER = Verdict("faster", 2.0, (1.9, 2.1), 0.01, 2000.0, 1000.0, basis="rounds")


def group(operator: str, repeats: float = 1) -> GroupLabel:
    return GroupLabel("substituted", repeats, operators=(operator,))


def gpu(label: Label, delta_us: float) -> WaterfallPart:
    return WaterfallPart("gpu", label, delta_us)


def idle(cause: str, delta_us: float) -> WaterfallPart:
    return WaterfallPart("idle", cause, delta_us, delta_us)


def waterfall(*parts: WaterfallPart, residual_us: float = 0.0) -> Waterfall:
    b_us = 10_000 + sum(part.delta_us for part in parts) + residual_us
    return Waterfall("unprofiled", 10_000.0, b_us, parts, residual_us)


def with_rich(side: Side, longer_us: float) -> Side:
    """The side, with a rich recording that shows so much more GPU time per step."""
    return replace(side, rich=make_analysis({"gemm": ("gemm", 2, 2 * (side.busy_us or 0) + 2 * longer_us)}))


#: Their two recordings agree.
A, B = (with_rich(side, 0.0) for side in make_pair(scaled(2.0), scaled(1.0)))


def shares_of(*parts: WaterfallPart, a: Side = A, b: Side = B, verdict: Verdict = FASTER) -> list[tuple[str, float]]:
    reason = find_reason(a, b, verdict, waterfall(*parts))
    return [(share.kind, share.delta_us) for share in reason.shares] if reason else []


def named(*parts: WaterfallPart) -> list[Label]:
    """The parts named of the first share."""
    reason = find_reason(A, B, FASTER, waterfall(*parts))
    assert reason is not None
    return [part.label for part in reason.shares[0].parts]


def test_the_larger_share_comes_first_with_the_parts_that_made_it() -> None:
    parts = (gpu("fused", -900), gpu("slower", 100), idle("op_dispatch", -2000), idle("launch_call", -300))
    reason = find_reason(A, B, FASTER, waterfall(*parts))
    assert reason is not None
    assert [(share.kind, share.delta_us) for share in reason.shares] == [("idle", -2300), ("gpu", -800)]
    # Launch calls are less than 15 % of their share, and so is what they leave.
    assert [[part.label for part in share.parts] for share in reason.shares] == [["op_dispatch"], ["fused"]]
    assert [share.rest_us for share in reason.shares] == [0.0, 0.0]
    assert (reason.change_us, reason.unexplained_us, reason.of_one_process) == (-3100, 0.0, False)


def test_shares_of_different_signs_are_ordered_by_their_size() -> None:
    assert shares_of(gpu("fused", -2000), idle("device", 900)) == [("gpu", -2000), ("idle", 900)]
    assert shares_of(gpu("slower", 400), idle("device", -2000)) == [("idle", -2000), ("gpu", 400)]


def test_at_most_two_parts_are_named_the_largest_first_and_the_rest_is_a_sum() -> None:
    parts = (gpu("c", -300), gpu("a", -500), gpu("b", -400), gpu("other_gpu_work", 100))
    assert named(*parts) == ["a", "b"]
    reason = find_reason(A, B, FASTER, waterfall(*parts))
    assert reason is not None
    assert reason.shares[0].rest_us == pytest.approx(-200)
    assert reason.shares[0].delta_us == pytest.approx(-1100)


def test_groups_that_one_label_tells_are_named_as_one() -> None:
    parts = [
        gpu(group("a", 3), -300.0),
        gpu(group("a", 3), -200.0),
        gpu(group("a", 1.5), -50.0),
        gpu(group("a"), -50.0),
    ]
    assert named(*parts, gpu(group("b", 2), -250.0)) == [group("a", 8.5), group("b", 2)]
    reason = find_reason(A, B, FASTER, waterfall(*parts, gpu(group("b", 2), -250.0)))
    assert reason is not None
    assert [part.delta_us for part in reason.shares[0].parts] == [-600.0, -250.0]


def test_small_groups_of_one_label_are_large_together() -> None:
    others = [gpu(f"other {number}", -100.0) for number in range(9)]
    assert named(*others, gpu(group("a"), -100.0)) == []
    assert named(*others, gpu(group("a"), -100.0), gpu(group("a", 4), -100.0)) == [group("a", 5)]


def test_gpu_work_that_became_much_worse_is_named_beside_what_became_better() -> None:
    assert named(gpu("fused", -1500), gpu("slower", 300)) == ["fused"]
    assert named(gpu("fused", -1500), gpu("slower", 400)) == ["fused", "slower"]
    # Of waiting, the causes are divided by an assumption: those against the change are in the sum alone.
    assert named(idle("op_dispatch", -1500), idle("device", 400)) == ["op_dispatch"]


def test_a_slower_form_s_parts_are_those_that_grew() -> None:
    slower = replace(FASTER, result="slower", speedup=0.5)
    reason = find_reason(A, B, slower, waterfall(gpu("small", 300), gpu("defused", 900), idle("device", 800)))
    assert reason is not None
    assert [[part.label for part in share.parts] for share in reason.shares] == [["defused", "small"], ["device"]]


def test_an_idle_part_that_recordings_show_the_other_way_is_not_named() -> None:
    turned = WaterfallPart("idle", "launch_call", -900.0, 2.0)
    assert named(turned, idle("op_dispatch", -800)) == ["op_dispatch"]


@pytest.mark.parametrize("rest", ["other_gpu_work", "overlap_correction", "outside_steps"])
def test_what_is_left_of_other_parts_names_nothing(rest: str) -> None:
    assert named(gpu(rest, -900), gpu("unchanged_kernels", -500)) == ["unchanged_kernels"]


def test_a_small_share_is_left_out_and_counts_as_unexplained_only_with_more() -> None:
    reason = find_reason(A, B, FASTER, waterfall(gpu("fused", -1000), idle("device", -20)))
    assert reason is not None
    assert [share.kind for share in reason.shares] == ["gpu"]
    assert reason.unexplained_us == 0
    reason = find_reason(A, B, FASTER, waterfall(gpu("fused", -1000), idle("device", -20), residual_us=-80))
    assert reason is not None
    assert reason.unexplained_us == pytest.approx(-100)


def test_what_may_be_the_recordings_own_difference_is_told_of_neither_share() -> None:
    parts = (gpu("fused", -100), idle("op_dispatch", -900))
    assert shares_of(*parts, a=with_rich(A, 90)) == [("idle", -900), ("gpu", -100)]
    assert shares_of(*parts, a=with_rich(A, 110)) == [("idle", -900)]
    assert shares_of(gpu("fused", -900), idle("op_dispatch", -100), b=with_rich(B, 110)) == [("gpu", -900)]
    # Neither is certain to be more than the recordings differ by: then nothing is said.
    assert shares_of(gpu("fused", -100), idle("op_dispatch", 50), a=with_rich(A, 120)) == []


def test_where_one_recording_alone_was_made_gpu_time_is_taken_to_move_by_a_twentieth() -> None:
    bare = replace(A, rich=None)
    assert bare.busy_us == pytest.approx(863)
    assert shares_of(gpu("fused", -42), idle("op_dispatch", -900), a=bare) == [("idle", -900)]
    assert shares_of(gpu("fused", -45), idle("op_dispatch", -900), a=bare) == [("idle", -900), ("gpu", -45)]


@pytest.mark.parametrize("result", ["inconclusive", "not_timed"])
def test_a_difference_that_was_not_established_has_no_reason(result: str) -> None:
    assert find_reason(A, B, replace(FASTER, result=result), waterfall(gpu("fused", -1000))) is None  # type: ignore[arg-type]


def test_a_recorded_process_that_shows_another_sign_than_all_of_them_explains_nothing() -> None:
    of_all = replace(FASTER, basis="processes")
    assert find_reason(A, B, of_all, waterfall(gpu("slower", 1000))) is None
    assert find_reason(A, B, FASTER, waterfall(gpu("same", 0.0))) is None
    reason = find_reason(A, B, of_all, waterfall(gpu("fused", -1000)))
    assert reason is not None
    assert reason.of_one_process


@pytest.mark.parametrize("beyond", [True, False])
def test_separate_runs_have_a_reason_where_their_times_differ_by_more_than_those_leave_open(beyond: bool) -> None:
    apart = SeparateRunsChange(0.5, 0.45, 0.55, (), beyond)
    verdict = replace(FASTER, result="inconclusive", basis="apart", apart=apart)
    assert (find_reason(A, B, verdict, waterfall(gpu("fused", -1000))) is not None) is beyond


def test_recorded_windows_are_distorted_and_explain_no_unprofiled_difference() -> None:
    assert find_reason(A, B, FASTER, replace(waterfall(gpu("fused", -1000)), basis="trace")) is None
    assert find_reason(A, B, FASTER, None) is None
