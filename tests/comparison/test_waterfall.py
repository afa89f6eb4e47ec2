import math

import pytest
from msgspec.structs import replace
from tests.sides import COMPILED, EAGER, make_analysis, make_cpu_analysis, make_form, make_pair, make_side, scaled

from tracekit.comparison.matching.groups import group_kernels
from tracekit.comparison.waterfall import build_waterfall, find_reason
from tracekit.model.comparison import Side, Verdict
from tracekit.model.estimate import SeparateRunsChange
from tracekit.model.groups import GroupLabel, Label
from tracekit.model.idle_estimate import Between, IdleEstimate
from tracekit.model.waterfall import Waterfall, WaterfallPart


def waterfall_of(a: Side, b: Side) -> Waterfall:
    return build_waterfall(a, b, group_kernels(a, b))


def part(waterfall: Waterfall, label: Label) -> float:
    return next(each.delta_us for each in waterfall.parts if each.label == label)


def closes(waterfall: Waterfall) -> bool:
    total = waterfall.a_us + math.fsum(each.delta_us for each in waterfall.parts) + waterfall.residual_us
    return total == pytest.approx(waterfall.b_us)


def test_unprofiled_walls_are_the_ends_where_both_sides_have_them():
    # A call a little shorter than its work had no idle time.
    a, b = make_pair(scaled(1.5), scaled(0.7))
    waterfall = waterfall_of(a, b)
    assert (waterfall.basis, b.unprofiled_idle_us, closes(waterfall)) == ("unprofiled", 0, True)
    waterfall = waterfall_of(*make_pair(scaled(1.5), scaled(1.1)))
    assert (waterfall.a_us, waterfall.b_us) == pytest.approx((1500.375, 1100.275))
    assert waterfall.basis == "unprofiled" and closes(waterfall)


def test_idle_parts_are_without_what_recording_added_and_tell_what_was_recorded():
    # Both have 137 us of idle time in a call and 400 us in a recorded step.
    a = make_side("a", make_analysis(causes={"op_dispatch": 0.75, "device": 0.25}), make_form())
    b = make_side("b", make_analysis(causes={"op_dispatch": 0.9, "device": 0.1}), make_form())
    waterfall = waterfall_of(a, b)
    # The GPU's own idle time is as recorded, the host's takes the rest of the call's.
    assert part(waterfall, "device") == pytest.approx(400 * (0.1 - 0.25))
    assert part(waterfall, "op_dispatch") == pytest.approx(-part(waterfall, "device"))
    recorded = {each.label: each.recorded_delta_us for each in waterfall.parts if each.kind == "idle"}
    assert recorded == pytest.approx({"op_dispatch": 60, "device": -60})
    assert waterfall.residual_us == pytest.approx(0, abs=1e-6)


def test_idle_time_that_the_recording_does_not_show_is_in_the_residual():
    a = make_side("a", make_analysis(idle_us=0, causes={}), make_form(wall_us=scaled(1.0)))
    waterfall = waterfall_of(a, make_side("b", make_analysis(), make_form()))
    assert part(waterfall, "op_dispatch") == pytest.approx(0.75 * 137)
    assert waterfall.residual_us == pytest.approx(-137.25)
    assert closes(waterfall)


def test_work_launched_outside_the_steps_has_a_part_and_kernels_that_ran_side_by_side_are_corrected_for():
    b = make_side("b", make_analysis(outside_us=60)), make_side("b", make_analysis(overlap_us=100))
    outside, beside = (waterfall_of(make_side("a"), each) for each in b)
    assert part(outside, "outside_steps") == pytest.approx(30)
    assert part(outside, "overlap_correction") == pytest.approx(0)
    assert part(beside, "overlap_correction") == pytest.approx(-50)
    assert closes(outside) and closes(beside)


def test_calls_are_not_set_against_recordings_that_cannot_be_theirs():
    """The one is shorter than its busy time, the others were not read by steps."""
    whole = make_side("a", make_analysis(window="whole"), make_form())
    for a, b in (make_pair(scaled(1.5), scaled(0.5)), (whole, whole)):
        waterfall = waterfall_of(a, b)
        assert (waterfall.basis, waterfall.a_us) == ("trace", a.span_us)
        assert closes(waterfall)


def test_bare_traces_are_compared_over_their_windows_with_idle_time_as_recorded():
    a, b = make_side("a", make_analysis(EAGER)), make_side("b", make_analysis(COMPILED, idle_us=300))
    waterfall = waterfall_of(a, b)
    assert waterfall.basis == "trace"
    assert (waterfall.a_us, waterfall.b_us) == pytest.approx(((1726 + 800) / 2, (1418 + 300) / 2))
    assert part(waterfall, "op_dispatch") == pytest.approx((300 - 800) / 2 * 0.75)
    assert waterfall.residual_us == pytest.approx(0, abs=1e-9)


def test_small_groups_share_a_part_and_unchanged_kernels_another():
    few = {"gemm": ("gemm", 1, 10_000.0), "Memset": ("memset", 9, 9.0), "p": ("pointwise", 10, 1000.0)}
    fewer = {"gemm": ("gemm", 1, 10_100.0), "p": ("pointwise", 2, 100.0)}
    waterfall = waterfall_of(make_side("a", make_analysis(few, steps=1)), make_side("b", make_analysis(fewer, steps=1)))
    assert part(waterfall, "other_gpu_work") == -9
    assert part(waterfall, "unchanged_kernels") == pytest.approx(100)
    assert part(waterfall, GroupLabel("fused", family="element_wise")) == -900


def test_cpu_runs_and_several_gpus_have_no_waterfall():
    cpu = make_side("a", make_cpu_analysis())
    assert build_waterfall(cpu, cpu, ()) is None
    several = make_side("a", make_analysis(devices=2))
    assert build_waterfall(several, several, group_kernels(several, several)) is None


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


def shares_of(*parts: WaterfallPart, a: Side = A, b: Side = B) -> list[tuple[str, float]]:
    reason = find_reason(a, b, FASTER, waterfall(*parts))
    return [(share.kind, share.delta_us) for share in reason.shares] if reason else []


def named(*parts: WaterfallPart) -> list[Label]:
    """The parts named of the first share."""
    reason = find_reason(A, B, FASTER, waterfall(*parts))
    return [part.label for part in reason.shares[0].parts]


def test_the_larger_share_comes_first_with_the_parts_that_made_it() -> None:
    parts = (gpu("fused", -900), gpu("slower", 100), idle("op_dispatch", -2000), idle("launch_call", -300))
    reason = find_reason(A, B, FASTER, waterfall(*parts))
    assert [(share.kind, share.delta_us) for share in reason.shares] == [("idle", -2300), ("gpu", -800)]
    # Launch calls are less than 15 % of their share, and so is what they leave.
    assert [[part.label for part in share.parts] for share in reason.shares] == [["op_dispatch"], ["fused"]]
    assert [share.rest_us for share in reason.shares] == [0.0, 0.0]
    assert (reason.change_us, reason.unexplained_us, reason.of_one_process) == (-3100, 0.0, False)


def test_at_most_two_parts_are_named_the_largest_first_and_the_rest_is_a_sum() -> None:
    parts = (gpu("c", -300), gpu("a", -500), gpu("b", -400), gpu("other_gpu_work", 100))
    assert named(*parts) == ["a", "b"]
    (share,) = find_reason(A, B, FASTER, waterfall(*parts)).shares
    assert (share.rest_us, share.delta_us) == pytest.approx((-200, -1100))


def test_groups_that_one_label_tells_are_named_as_one() -> None:
    parts = [gpu(group("a", times), us) for times, us in ((3, -300.0), (3, -200.0), (1.5, -50.0), (1, -50.0))]
    assert named(*parts, gpu(group("b", 2), -250.0)) == [group("a", 8.5), group("b", 2)]
    reason = find_reason(A, B, FASTER, waterfall(*parts, gpu(group("b", 2), -250.0)))
    assert [part.delta_us for part in reason.shares[0].parts] == [-600.0, -250.0]
    # Small ones are large together.
    others = [gpu(f"other {number}", -100.0) for number in range(9)]
    assert named(*others, gpu(group("a"), -100.0)) == []
    assert named(*others, gpu(group("a"), -100.0), gpu(group("a", 4), -100.0)) == [group("a", 5)]


def test_what_went_the_other_way_is_named_of_gpu_work_alone_and_what_is_left_of_other_parts_never() -> None:
    assert named(gpu("fused", -1500), gpu("slower", 300)) == ["fused"]
    assert named(gpu("fused", -1500), gpu("slower", 400)) == ["fused", "slower"]
    # Of waiting, the causes are divided by an assumption: those against the change are in the sum alone.
    assert named(idle("op_dispatch", -1500), idle("device", 400)) == ["op_dispatch"]
    for rest in ("other_gpu_work", "overlap_correction", "outside_steps"):
        assert named(gpu(rest, -900), gpu("unchanged_kernels", -500)) == ["unchanged_kernels"]


def test_a_cause_whose_change_may_be_none_is_no_reason() -> None:
    for high_us, causes in ((10.0, ["op_dispatch"]), (-10.0, ["python", "op_dispatch"])):
        python = WaterfallPart("idle", "python", -900.0, -900.0, -1800.0, high_us)
        assert named(python, idle("op_dispatch", -800)) == causes


def test_idle_parts_have_their_ranges_and_what_they_leave_is_in_the_residual() -> None:
    a, b = make_pair(scaled(2.0), scaled(1.0))
    a = replace(a, idle_estimate=IdleEstimate({"python": Between(900, 800, 1000), "device": Between(30, 30, 30)}))
    b = replace(b, idle_estimate=IdleEstimate({"python": Between(350, 300, 420), "gc": Between(20, 10, 40)}))
    waterfall = waterfall_of(a, b)
    parts = {each.label: (each.delta_us, each.low_us, each.high_us) for each in waterfall.parts if each.kind == "idle"}
    assert parts["python"] == (-550, -700, -380)
    # No recording has either; and of dispatch, which they have, nothing is left.
    assert (parts["gc"], parts["device"], parts["op_dispatch"]) == ((20, 10, 40), (-30, -30, -30), (0, None, None))
    assert waterfall.residual_us == pytest.approx(b.idle_residual_us - a.idle_residual_us)
    assert b.idle_residual_us < 0 < a.idle_residual_us and closes(waterfall)


def test_a_small_share_is_left_out_and_counts_as_unexplained_only_with_more() -> None:
    reason = find_reason(A, B, FASTER, waterfall(gpu("fused", -1000), idle("device", -20)))
    assert [share.kind for share in reason.shares] == ["gpu"]
    assert reason.unexplained_us == 0
    reason = find_reason(A, B, FASTER, waterfall(gpu("fused", -1000), idle("device", -20), residual_us=-80))
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


def test_a_difference_that_was_not_established_has_no_reason_and_distorted_windows_are_none() -> None:
    assert find_reason(A, B, FASTER, replace(waterfall(gpu("fused", -1000)), basis="trace")) is None
    assert find_reason(A, B, FASTER, None) is None
    for result in ("inconclusive", "not_timed"):
        assert find_reason(A, B, replace(FASTER, result=result), waterfall(gpu("fused", -1000))) is None


def test_a_recorded_process_that_shows_another_sign_than_all_of_them_explains_nothing() -> None:
    of_all = replace(FASTER, basis="processes")
    assert find_reason(A, B, of_all, waterfall(gpu("slower", 1000))) is None
    assert find_reason(A, B, FASTER, waterfall(gpu("same", 0.0))) is None
    reason = find_reason(A, B, of_all, waterfall(gpu("fused", -1000)))
    assert reason.of_one_process


def test_separate_runs_have_a_reason_where_their_times_differ_by_more_than_those_leave_open() -> None:
    for beyond in (True, False):
        apart = SeparateRunsChange(0.5, 0.45, 0.55, (), beyond)
        verdict = replace(FASTER, result="inconclusive", basis="apart", apart=apart)
        assert (find_reason(A, B, verdict, waterfall(gpu("fused", -1000))) is not None) is beyond
