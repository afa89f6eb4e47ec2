from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tracekit.comparison import compare
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.errors import TracekitError
from tracekit.model.comparison import Comparison, GroupMember, KernelGroup
from tracekit.model.gate import Checked
from tracekit.model.run import FormResult
from tracekit.model.timing import FormTiming, ProcessTimes

from ...sides import BUSY, COMPILED, STEADY, make_analysis, make_form, make_side, scaled

ORDER = ("eager", "compiled") * 10


def one_run(factor: float, **changes: object) -> Comparison:
    """Two forms of one process, timed in alternation: B takes `factor` times as long."""
    a = replace(make_side("eager", make_analysis(BUSY), make_form("eager", STEADY)), path="traces/x/eager.json.gz")
    b = make_side("compiled", make_analysis(BUSY), make_form("compiled", scaled(factor)))
    return compare(a, replace(b, path="traces/x/compiled.json.gz", **changes), ORDER)  # type: ignore[arg-type]


def two_runs(factor: float) -> Comparison:
    """Runs of two processes."""
    sides = [
        replace(
            make_side(name, make_analysis(BUSY), make_form("compiled", scaled(by))),
            path=f"traces/{name}/compiled.json.gz",
        )
        for name, by in (("base", 1.0), ("new", factor))
    ]
    return compare(*sides)


def repeated(factor: float, processes: tuple[float, ...], during_timing: int = 0) -> FormResult:
    """A form timed once and then in further processes, each by its own factor."""
    repeats = tuple(ProcessTimes(scaled(by), None, (), "asked number", 1.0, during_timing) for by in processes)
    timing = FormTiming("asked number", None, None, 1.0, (), repeats)
    return replace(make_form("compiled", scaled(factor)), timing=timing)


def two_runs_of(base: tuple[float, ...], new: tuple[float, ...]) -> Comparison:
    """Runs whose processes took these times as long as `STEADY`, the run's own first."""
    sides = (
        replace(make_side(name, make_analysis(BUSY), repeated(own, others)), path=f"traces/{name}/compiled.json.gz")
        for name, (own, *others) in (("base", base), ("new", new))
    )
    return compare(*sides)


def checked(comparison: Comparison, text: str) -> Checked:
    (one,) = check(comparison, parse_conditions(text)).checked
    return one


def test_a_time_within_its_limit_passes():
    one = checked(one_run(1.005), "wall<=+3%")
    assert one.outcome == "pass"
    assert one.low is not None
    assert one.high is not None
    assert one.low <= 0.005 <= one.high <= 0.01


def test_a_time_clearly_beyond_its_limit_fails():
    assert checked(one_run(1.06), "wall<=+3%").outcome == "fail"
    assert checked(one_run(1.06), "wall<=+20ms").outcome == "pass"
    assert checked(one_run(1.06), "wall<=1.02ms").outcome == "fail"
    assert checked(one_run(1.06), "wall<=+35us").outcome == "fail"


def test_a_limit_inside_the_interval_is_inconclusive():
    assert checked(one_run(1.03), "wall<=+3%").outcome == "inconclusive"


def test_two_processes_differ_by_more_than_the_interval_of_one_tells():
    alike = (1.0, 1.001, 0.999, 1.0005)
    assert checked(two_runs_of(alike, tuple(1.045 * by for by in alike)), "wall<=+3%").outcome == "fail"
    assert checked(two_runs(1.045), "wall<=+3%").outcome == "inconclusive"
    assert checked(two_runs(1.08), "wall<=+3%").outcome == "fail"
    assert checked(two_runs(0.99), "wall<=+3%").outcome == "pass"


def test_one_process_a_run_says_that_how_processes_differ_is_assumed():
    one = checked(two_runs(1.08), "wall<=+3%")
    assert one.because.startswith("all of its interval says so; ±2 % of a call are assumed")
    assert "--repeat-process" in one.because
    assert one.low is not None and one.high is not None
    assert one.low < 0.08 - 0.02 and one.high > 0.08 + 0.02


def apart(factor: float, *waiting: str) -> Comparison:
    """Runs of two processes, those named with a GPU that waits for the host a third of the time."""
    sides = [
        replace(
            make_side(name, make_analysis(COMPILED if name in waiting else BUSY), make_form("compiled", scaled(by))),
            path=f"traces/{name}/compiled.json.gz",
        )
        for name, by in (("base", 1.0), ("new", factor))
    ]
    return compare(*sides)


@pytest.mark.parametrize(
    ("waiting", "share", "told"),
    [
        ((), 0.024, "±2 % of a call are assumed"),
        (("new",), 0.135, "±14.6 % is assumed"),
        (("base", "new"), 0.191, "±20.6 % is assumed"),
    ],
)
def test_a_form_that_waits_for_the_host_is_assumed_to_differ_by_more(waiting: tuple[str, ...], share: float, told: str):
    one = checked(apart(1.08, *waiting), "wall<=+3%")
    assert one.outcome == ("inconclusive" if waiting else "fail")
    assert one.low is not None and one.high is not None
    assert (one.high - one.low) / 2 == pytest.approx(share * 1.08, abs=0.006)
    assert told in one.because


def test_what_a_waiting_form_takes_by_itself_is_assumed_to_differ_by_its_own():
    one = checked(apart(1.0, "new"), "wall<=1.05ms")
    assert (one.outcome, checked(apart(1.0, "base"), "wall<=1.05ms").outcome) == ("inconclusive", "pass")
    assert checked(apart(1.0, "new"), "wall<=1.2ms").outcome == "pass"
    assert one.low is not None and one.high is not None
    assert (one.high - one.low) / 2 == pytest.approx(135, abs=4)
    assert "±14 % of a call are assumed" in checked(apart(1.0, "new"), "wall<=1.2ms").because


def test_processes_of_both_runs_that_agree_decide_what_one_of_each_cannot():
    alike = (1.0, 1.001, 0.999, 1.0005)
    one = checked(two_runs_of(alike, tuple(1.045 * by for by in alike)), "wall<=+3%")
    assert (one.outcome, one.because) == ("fail", "all of its interval says so")
    assert one.low is not None and one.high is not None
    assert 0.035 < one.low < 0.045 < one.high < 0.055
    assert checked(two_runs_of(alike, alike), "wall<=+1%").outcome == "pass"


def test_processes_of_a_run_that_differ_widen_the_interval_beyond_what_was_assumed():
    apart = (0.95, 1.0, 1.05, 1.0)
    one = checked(two_runs_of(apart, tuple(1.08 * by for by in apart)), "wall<=+3%")
    assert (one.outcome, one.because) == (
        "inconclusive",
        "its interval holds the limit: ±7.6 % is how processes differ (more of them narrow that: --repeat-process)",
    )
    assert one.low is not None and one.high is not None
    assert one.high - one.low > 2 * (0.02 + 0.03)


def test_the_runs_own_process_is_one_among_the_others():
    """An own process that happened to be slow does not make the run slow."""
    alike = (1.0, 1.001, 0.999, 1.0005, 1.0)
    one = checked(two_runs_of(alike, (1.05, 1.0, 1.001, 0.999, 1.0)), "wall<=+3%")
    assert one.new == pytest.approx(1010, rel=2e-3)
    assert one.base == pytest.approx(1000, rel=2e-3)
    assert one.outcome == "inconclusive"
    assert checked(two_runs(1.05), "wall<=+3%").new == pytest.approx(1050, rel=2e-3)


def test_a_run_of_one_process_beside_one_of_several_borrows_their_spread_and_says_so():
    spread = (0.97, 1.0, 1.03, 1.0, 1.0)
    one = checked(two_runs_of(spread, (1.05,)), "wall<=+3%")
    assert one.outcome == "inconclusive"
    assert one.because.endswith(
        "new was timed in one process, which is assumed to differ from others as the processes of base do"
    )
    other = checked(two_runs_of((1.0,), spread), "wall<=+3%")
    assert "base was timed in one process" in other.because
    assert one.low is not None and one.high is not None
    # Student's t of four degrees of freedom, one process against the mean of five.
    width = math.log((1 + one.high) / (1 + one.low)) / 2
    assert width == pytest.approx(2.776 * 0.0212 * math.sqrt(1 + 1 / 5), rel=0.02)


def test_two_forms_of_one_process_say_that_other_processes_are_not_in_it():
    assert "what differs from process to process is not in it" in checked(one_run(1.05), "wall<=+3%").because


def test_a_limit_of_the_new_sides_own_time_asks_nothing_of_the_base():
    # The base's processes are all over the place; the new ones are not.
    wild, alike = (0.5, 1.0, 2.0, 1.0), (1.0, 1.001, 0.999, 1.0005)
    comparison = two_runs_of(wild, alike)
    assert checked(comparison, "wall<=+20%").outcome == "inconclusive"
    assert checked(comparison, "wall<=1.01ms").outcome == "pass"
    assert checked(comparison, "wall<=0.99ms").outcome == "fail"
    one = checked(two_runs_of(wild, (1.0,)), "wall<=1.01ms")
    assert one.outcome == "inconclusive"
    assert "assumed" in one.because


def test_times_that_hold_compilation_are_not_judged():
    late = replace(one_run(1.0), b=replace(one_run(1.0).b, form=make_form("compiled", scaled(1.0), during_timing=1)))
    one = checked(late, "wall<=+3%")
    assert one.outcome == "inconclusive"
    assert "compiled inside timed calls" in one.because
    assert checked(late, "recompiles<=0").outcome == "fail"


def test_compilations_of_repeats_count_too():
    side = replace(make_side("new", make_analysis(BUSY), repeated(1.0, (1.0, 1.0), 1)), path="traces/new/x.json.gz")
    comparison = compare(two_runs(1.0).a, side)
    assert checked(comparison, "recompiles<=1").outcome == "fail"
    assert checked(comparison, "recompiles<=2").outcome == "pass"
    assert checked(comparison, "wall<=+3%").outcome == "inconclusive"


def test_recordings_that_happen_to_agree_are_not_taken_for_exact():
    analysis = make_analysis(BUSY)
    sides = (replace(each, rich=analysis) for each in (one_run(1.0).a, one_run(1.0, analysis=analysis).b))
    one = checked(compare(*sides, ORDER), "busy<=+1.5%")
    assert one.low is not None and one.high is not None
    assert one.high == pytest.approx(0.01)
    assert one.low == pytest.approx(-0.01)


def test_a_time_beyond_its_limit_by_next_to_nothing_passes():
    # 5 us of 1000 are the floor.
    one = checked(one_run(1.004), "wall<=+0%")
    assert one.outcome in ("pass", "inconclusive")
    assert checked(one_run(1.03), "wall<=1.029ms").outcome != "fail"


def test_counts_are_exact():
    fewer = {name: each for name, each in BUSY.items() if name != "triton_poi_fused_add_0"}
    comparison = one_run(1.0, analysis=make_analysis(fewer))
    one = checked(comparison, "kernels<=+0")
    assert (one.outcome, one.base, one.new, one.low, one.high) == ("pass", 22, 17, -5, -5)
    assert checked(comparison, "kernels<=16").outcome == "fail"
    assert checked(comparison, "kernels<=17").outcome == "pass"
    assert checked(comparison, "kernels<=-20%").outcome == "pass"
    assert checked(comparison, "kernels<=-23%").outcome == "fail"


def test_memory_is_a_size():
    assert checked(one_run(1.0), "memory<=3GiB").outcome == "pass"
    assert checked(one_run(1.0), "memory<=2.9GiB").outcome == "fail"
    assert checked(one_run(1.0), "memory<=+0MiB").outcome == "pass"
    assert checked(one_run(1.0), "memory<=+0").outcome == "pass"


def test_gpu_time_that_differs_by_less_than_recordings_do_is_inconclusive():
    slower = {**BUSY, "gemm_128x64": ("gemm", 20, 1640.0)}
    comparison = one_run(1.0, analysis=make_analysis(slower))
    assert checked(comparison, "busy<=+1%").outcome == "inconclusive"
    much = {**BUSY, "gemm_128x64": ("gemm", 20, 2640.0)}
    assert checked(one_run(1.0, analysis=make_analysis(much)), "busy<=+1%").outcome == "fail"


def test_idle_time_is_no_more_certain_than_wall_and_gpu_time():
    one = checked(one_run(1.0), "idle<=+5%")
    assert one.outcome == "inconclusive"
    assert checked(one_run(2.0), "idle<=+5%").outcome == "fail"


def test_what_was_not_measured_is_inconclusive_and_says_so():
    one = checked(one_run(1.0), "recompiles<=+0")
    # The eager form compiles nothing, so it has no number to change from.
    assert one.outcome == "inconclusive"
    assert one.because == "it was not measured on both sides"
    assert checked(one_run(1.0), "recompiles<=0").outcome == "pass"
    assert checked(two_runs(1.0), "recompiles<=0").outcome == "pass"
    assert checked(two_runs(1.0), "breaks<=+0").outcome == "pass"


def test_several_conditions_fail_together_pass_together():
    comparison = one_run(1.06)
    assert check(comparison, parse_conditions("wall<=+3%, kernels<=+0")).outcome == "fail"
    assert check(comparison, parse_conditions("wall<=+10%,kernels<=+0")).outcome == "pass"
    assert check(comparison, parse_conditions("wall<=+10%,recompiles<=+0")).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no condition"),
        ("wall", 'write METRIC<=LIMIT, like "wall<=+3%"'),
        ("speed<=3", "metrics are wall, busy"),
        ("wall<=3", "the unit of wall is one of us"),
        ("wall<=3GiB", "the unit of wall is one of us"),
        ("kernels<=3ms", "the unit of kernels is none"),
        ("wall<3ms", "is no condition"),
    ],
)
def test_what_is_no_condition_is_told_with_how_it_is_written(text: str, told: str):
    with pytest.raises(TracekitError, match=told.replace("+", r"\+")):
        parse_conditions(text)


def test_a_long_call_may_exceed_its_limit_by_half_a_percent():
    def long(factor: float) -> Checked:
        side = replace(make_side("new", make_analysis(BUSY)), path="traces/new/x.json.gz")
        calls = tuple(100 * us for us in STEADY)
        slower = tuple(factor * us for us in calls)
        repeats = tuple(ProcessTimes(slower, None, (), "asked number", 1.0) for _ in range(3))
        form = replace(make_form("compiled", slower), timing=FormTiming("asked number", None, None, 1.0, (), repeats))
        return checked(
            compare(make_side("base", form=make_form("eager", calls)), replace(side, form=form)), "wall<=0.1s"
        )

    slight = long(1.0045)
    assert (slight.outcome, slight.because.partition(";")[0]) == (
        "pass",
        "the limit is exceeded by less than is held against anybody (docs/gate.md)",
    )
    assert long(1.0065).outcome == "fail"


def test_a_limit_of_its_own_gpu_time_asks_nothing_of_the_bases_recordings():
    # A was recorded once, which is 5 % of doubt; B's two recordings agree.
    analysis = make_analysis(BUSY)
    comparison = compare(one_run(1.0).a, replace(one_run(1.0, analysis=analysis).b, rich=analysis), ORDER)
    comparison = replace(comparison, b=replace(comparison.b, rich=analysis))
    own, change = checked(comparison, "busy<=1ms"), checked(comparison, "busy<=+1us")
    assert own.low is not None and own.high is not None and own.new is not None
    assert own.high - own.low == pytest.approx(2 * 0.005 * own.new)
    assert change.low is not None and change.high is not None
    assert change.high - change.low == pytest.approx(2 * 0.055 * own.new)


def test_a_limit_of_its_own_idle_time_knows_how_certain_wall_and_gpu_time_are():
    comparison = two_runs(1.0)
    wall, busy, idle = (checked(comparison, f"{metric}<=1s") for metric in ("wall", "busy", "idle"))
    assert None not in (wall.low, wall.high, wall.new, busy.high, busy.new, idle.high, idle.new)
    above = (wall.high - wall.new) + (busy.high - busy.new)  # type: ignore[operator]
    assert idle.high - idle.new == pytest.approx(above)  # type: ignore[operator]
    assert "assumed" in idle.because


def test_more_calls_are_advised_only_where_they_narrow_the_interval():
    one = checked(two_runs(1.03), "wall<=+3%")
    assert one.outcome == "inconclusive"
    told = one.because.removeprefix("its interval holds the limit: ").split("; ")
    # Calls that differ by a few tenths of a percent: what is assumed is nearly all of the width.
    assert told[0] == (
        "±2.5 % is assumed for what differs from process to process (no number of calls narrows that, "
        "--repeat-process 4 on both sides measures it)"
    )
    assert told[1].endswith("% is how calls differ (more calls narrow that: --iterations)")
    assert "assumed" not in told[1] and len(told) == 2


def test_calls_that_differ_by_more_than_is_assumed_come_first_in_the_advice():
    wild = tuple(1000.0 + (150 if at % 4 < 2 else -150) + 7 * at for at in range(10))
    sides = two_runs(1.0)
    noisy = compare(*(replace(side, form=make_form("compiled", wild)) for side in (sides.a, sides.b)))
    one = checked(noisy, "wall<=1ms")
    assert one.outcome == "inconclusive"
    assert one.because.startswith("its interval holds the limit: ±")
    first, second = one.because.split("; ")
    assert "is how calls differ (more calls narrow that: --iterations)" in first
    assert "no number of calls" not in first and "--repeat-process 4" in second


def test_where_a_form_differs_from_itself_by_more_than_is_assumed_that_is_what_is_said():
    by_turns = tuple(1000.0 * (1.3 if at % 2 else 1.0) for at in range(20))
    sides = two_runs(1.0)
    noisy = compare(*(replace(side, form=make_form("compiled", by_turns)) for side in (sides.a, sides.b)))
    assert noisy.verdict.noise_floor is not None and noisy.verdict.noise_floor > 0.02
    one = checked(noisy, "wall<=+100%")
    assert "±2 %" not in one.because
    assert "by which a form differs from itself, are taken for what differs from process to process" in one.because
    assert "narrow that to what is assumed of others at best" in checked(noisy, "wall<=+1%").because


def test_noise_below_what_is_assumed_of_waiting_forms_does_not_stand_in_for_it():
    by_turns = tuple(1000.0 * (1.05 if at % 2 else 1.0) for at in range(20))
    sides = apart(1.0, "base", "new")
    noisy = compare(*(replace(side, form=make_form("compiled", by_turns)) for side in (sides.a, sides.b)))
    assert noisy.verdict.noise_floor is not None and 0.03 < noisy.verdict.noise_floor < 0.1
    assert "±19 % of a call are assumed" in checked(noisy, "wall<=+100%").because


def test_gpu_time_that_no_number_of_calls_makes_more_certain_says_so():
    analysis = make_analysis(BUSY)
    twice = compare(*(replace(each, rich=analysis) for each in (one_run(1.0).a, one_run(1.0, analysis=analysis).b)))
    told = checked(twice, "busy<=+0.5%").because
    assert told == (
        "its interval holds the limit: ±1.0 % is how GPU time differs from recording to recording "
        "(no number of calls narrows that; allow more, or limit kernels and launches, which are exact)"
    )
    once = checked(one_run(1.0), "busy<=+0.5%").because
    assert "±10.0 % is assumed for GPU time that was recorded once" in once


def test_two_forms_of_one_run_have_the_interval_of_their_verdict():
    comparison = one_run(1.1)
    assert comparison.verdict.ci95 is not None
    one = checked(comparison, "wall<=+3%")
    # Both ends of the speed-up's interval, turned around.
    assert one.base is not None and one.low is not None and one.high is not None
    assert (1 + one.high, 1 + one.low) == pytest.approx(tuple(1 / each for each in comparison.verdict.ci95))


def test_a_limit_that_is_nearer_than_a_form_differs_from_itself_decides_nothing():
    comparison = one_run(1.1)
    noisy = replace(comparison, verdict=replace(comparison.verdict, noise_floor=0.05))
    assert (checked(comparison, "wall<=+13%").outcome, checked(comparison, "wall<=+7%").outcome) == ("pass", "fail")
    for condition in ("wall<=+13%", "wall<=+7%"):
        one = checked(noisy, condition)
        assert one.outcome == "inconclusive"
        assert one.because.startswith("the limit is no further from the figure than ±5.5 % is how far a form differs")
    assert checked(noisy, "wall<=+20%").outcome == "pass"
    assert checked(noisy, "wall<=+3%").outcome == "fail"


def lost_in(repeats: float, kind: str, window: str) -> Comparison:
    """A comparison of sides read like this, with one group of that kind that is there so often."""
    member = GroupMember("kernel", 1.0, 10.0)
    group = KernelGroup(kind, "attention", "anchors", (member,), (member,), 1.0, 0.0, (), repeats=repeats)  # type: ignore[arg-type]
    comparison = one_run(1.0)
    analysis = comparison.b.analysis
    other = replace(comparison.b, analysis=replace(analysis, window=replace(analysis.window, kind=window)))  # type: ignore[arg-type]
    return replace(comparison, b=other, groups=(group,))


def test_places_that_need_more_kernels_are_counted_in_a_step_with_their_repeats():
    one = checked(lost_in(12, "defused", "steps"), "groups_lost<=+0")
    assert (one.outcome, one.new, one.low, one.high) == ("fail", 12, 12, 12)
    assert checked(lost_in(12, "fused", "steps"), "groups_lost<=+0").outcome == "pass"


def windows(a: str, b: str) -> Comparison:
    """Bare traces of the same kernels, read over such windows."""
    sides = (make_side(label, make_analysis(window=kind)) for label, kind in (("base", a), ("new", b)))
    base, new = (replace(side, path=f"traces/{side.label}/x.json.gz") for side in sides)
    return compare(base, new)


@pytest.mark.parametrize("metric", ["busy", "idle", "kernels", "launches", "groups_lost"])
@pytest.mark.parametrize(("a", "b"), [("whole", "steps"), ("steps", "whole")])
def test_a_whole_recording_is_not_held_against_steps(metric: str, a: str, b: str):
    one = checked(windows(a, b), f"{metric}<=+0%")
    assert (one.outcome, one.low, one.high) == ("inconclusive", None, None)
    assert "which do not mean the same (--window)" in one.because


@pytest.mark.parametrize("metric", ["busy", "idle", "kernels", "launches", "groups_lost"])
def test_whole_recordings_may_hold_any_number_of_steps_each(metric: str):
    """8 kernels a step in 2 steps are fewer than 5 in 10, and no gain."""
    base, new = (make_analysis({"a": ("gemm", n, 10.0 * n)}, window="whole") for n in (50, 16))
    one = checked(compare(make_side("base", base), make_side("new", new)), f"{metric}<=+0")
    assert (one.outcome, one.low, one.high) == ("inconclusive", None, None)
    assert "mark no steps" in one.because and "--window" in one.because


def test_what_was_not_recorded_is_judged_whatever_the_windows():
    whole = make_analysis(BUSY, window="whole")
    comparison = two_runs(1.0)
    comparison = compare(comparison.a, replace(comparison.b, analysis=whole))
    assert checked(comparison, "kernels<=+0").outcome == "inconclusive"
    for condition in ("memory<=+0", "recompiles<=+0", "breaks<=+0", "wall<=+10%"):
        assert checked(comparison, condition).outcome == "pass", condition


def test_a_limit_of_all_that_one_recording_holds_is_said_to_be_that():
    comparison = windows("steps", "whole")
    one = checked(comparison, "kernels<=74")
    assert (one.outcome, one.because) == (
        "pass",
        "the figure is exact; the recording marks no steps, so that this is of all of it",
    )
    assert checked(comparison, "kernels<=73").outcome == "fail"
    assert checked(windows("whole", "steps"), "kernels<=37").because == "the figure is exact"


def test_nothing_is_lost_for_sure_where_nothing_was_matched():
    attention = make_analysis({"cudnn_attention": ("attention", 20, 1000.0)})
    apart = make_analysis({"softmax": ("reduction", 20, 1000.0), "gemm": ("gemm", 40, 1000.0)})
    comparison = compare(make_side("base", attention), make_side("new", apart))
    one = checked(comparison, "groups_lost<=0")
    # 30 kernels a step of which nobody knows what they were: 15 places at most.
    assert (one.outcome, one.low, one.high) == ("inconclusive", 0, 15)
    assert one.because == (
        "its interval holds the limit; nobody knows what became of 100.0 % of the GPU time, and places may hide there"
    )
    assert checked(comparison, "groups_lost<=14").outcome == "inconclusive"


def test_a_fusion_that_fell_apart_unmatched_is_not_said_to_be_none():
    gemm = {"gemm": ("gemm", 20, 1000.0)}
    fused = make_analysis({**gemm, "triton_poi_fused_add_norm_0": ("triton", 10, 100.0)})
    two = make_analysis(
        {**gemm, "triton_poi_fused_add_0": ("triton", 10, 100.0), "triton_poi_fused_norm_1": ("triton", 10, 100.0)}
    )
    one = checked(compare(make_side("base", fused), make_side("new", two)), "groups_lost<=0")
    assert one.outcome == "inconclusive"
    assert "exact" not in one.because


def lost_beside(unmatched_us: float, kind: str = "unmatched", how: str = "unmatched") -> Comparison:
    """A place that fell apart 3 times a step in 900 us, and so much that is not known, in one kernel of B."""
    known, unknown = GroupMember("a", 6.0, 900.0), GroupMember("b", 1.0, unmatched_us)
    groups = (
        KernelGroup("defused", "attention", "anchors", (known,), (known,), 3.0, 0.0, (), repeats=3),
        KernelGroup(kind, "rest", how, (), (unknown,), 1.0, 0.0, ()),  # type: ignore[arg-type]
    )
    return replace(one_run(1.0), groups=groups)


def test_what_fell_apart_for_sure_fails_and_what_may_have_is_open():
    much = lost_beside(100.0)
    outcomes = [checked(much, f"groups_lost<={limit}").outcome for limit in (2, 3, 4)]
    # Exactly at the limit the seen ones keep to it; one that is hidden would not.
    assert outcomes == ["fail", "inconclusive", "pass"]
    assert [checked(lost_beside(100.0, "substituted", "names"), "groups_lost<=3").outcome] == ["inconclusive"]
    assert [checked(lost_beside(100.0, "unchanged", "names"), "groups_lost<=3").outcome] == ["pass"]


def test_little_that_was_not_matched_hides_nothing_and_is_told():
    one = checked(lost_beside(45.0), "groups_lost<=3")
    assert (one.outcome, one.low, one.high) == ("pass", 3, 3)
    assert one.because == "all but 4.8 % of the GPU time was matched"
    assert checked(lost_beside(50.0), "groups_lost<=3").outcome == "inconclusive"


def test_a_gate_does_not_fail_what_the_verdict_of_the_run_leaves_open():
    comparison = one_run(1.012)
    assert comparison.verdict.result == "inconclusive"
    one = checked(comparison, "wall<=+0.5%")
    assert one.outcome == "inconclusive"
    assert "±2.0 % is the least that the verdict calls a change" in one.because
    slower = one_run(1.03)
    assert (slower.verdict.result, checked(slower, "wall<=+0.5%").outcome) == ("slower", "fail")


def test_more_than_nothing_has_no_share():
    analysis = make_analysis(BUSY)
    assert analysis.kernels is not None
    none = replace(analysis, kernels=replace(analysis.kernels, count=0))
    comparison = one_run(1.0)
    some = replace(comparison, a=replace(comparison.a, analysis=none))
    one = checked(some, "kernels<=+5%")
    assert (one.outcome, one.base, one.new, one.low, one.high) == ("fail", 0, 22, None, None)
    assert one.because.startswith("A has 0, and anything is more than any share of that")
    neither = replace(some, b=replace(some.b, analysis=none))
    assert (checked(neither, "kernels<=+5%").outcome, checked(neither, "kernels<=+5%").low) == ("pass", 0)
    assert checked(some, "kernels<=+22").outcome == "pass"


def test_a_limit_of_b_alone_is_held_whatever_is_known_of_a():
    timed = two_runs(1.0)
    untimed = compare(replace(timed.a, form=None), timed.b)
    assert checked(untimed, "wall<=1.1ms").outcome == "pass"
    assert checked(untimed, "wall<=0.9ms").outcome == "fail"
    change = checked(untimed, "wall<=+3%")
    assert (change.outcome, change.because) == ("inconclusive", "base was not timed")
    other = compare(timed.a, replace(timed.b, form=None))
    assert checked(other, "wall<=5ms").because == "new was not timed"
    told = "base was not timed"
    assert checked(untimed, "idle<=+50us").because == told
    idle = replace(untimed, b=replace(untimed.b, rich=untimed.b.analysis))
    assert checked(idle, "idle<=1ms").outcome == checked(idle, "busy<=1.1ms").outcome == "pass"


def test_compilation_in_the_base_spoils_the_change_and_not_b():
    timed = two_runs(1.0)
    late = compare(replace(timed.a, form=make_form("compiled", STEADY, during_timing=1)), timed.b)
    change = checked(late, "wall<=+10%")
    assert change.outcome == "inconclusive" and "compiled inside timed calls" in change.because
    assert checked(late, "wall<=1.1ms").outcome == "pass"
    assert "compiled inside" not in checked(late, "idle<=1ms").because
    back = compare(timed.b, late.a)
    assert "compiled inside timed calls" in checked(back, "wall<=1.1ms").because


def test_too_few_calls_are_not_said_to_be_none():
    timed = two_runs(1.0)
    few = compare(timed.a, replace(timed.b, form=make_form("compiled", STEADY[:4])))
    for condition in ("wall<=+3%", "wall<=5ms"):
        one = checked(few, condition)
        assert one.outcome == "inconclusive"
        assert one.because == "fewer than 5 calls of new count, which say nothing of the next (--iterations)", condition
    assert checked(compare(few.b, timed.b), "wall<=1.1ms").outcome == "pass"


def test_a_form_that_differs_from_itself_widens_what_one_process_says_by_that():
    comparison = two_runs(1.0)
    ways = [replace(comparison, verdict=replace(comparison.verdict, noise_floor=floor)) for floor in (0.01, 0.08)]
    assumed, stands_in = (checked(way, "wall<=+50%") for way in ways)
    assert None not in (assumed.high, stands_in.high)
    assert assumed.high - stands_in.high == pytest.approx(0.024 - 0.08, abs=1e-9)  # type: ignore[operator]
    assert [checked(way, "wall<=+5%").outcome for way in ways] == ["pass", "inconclusive"]


def test_a_limit_of_b_alone_says_what_b_lacks_and_not_what_a_does():
    timed = two_runs(1.0)
    late = make_form("compiled", STEADY, during_timing=1)
    neither = compare(replace(timed.a, form=None), replace(timed.b, form=late))
    assert checked(neither, "wall<=+3%").because == "base was not timed"
    assert "compiled inside timed calls" in checked(neither, "wall<=1.1ms").because


def test_steps_are_not_held_against_spans():
    assert checked(windows("span", "steps"), "kernels<=+0").because == (
        "A was read over a named span and B over its marked steps, which do not mean the same (--window)"
    )
    assert checked(windows("span", "span"), "kernels<=+0").outcome == "pass"


def test_gpu_time_of_b_alone_is_held_to_where_a_has_none():
    comparison = two_runs(1.0)
    analysis = replace(comparison.a.analysis, gpu=None)
    none = replace(comparison, a=replace(comparison.a, analysis=analysis))
    change = checked(none, "busy<=+3%")
    assert (change.outcome, change.because) == ("inconclusive", "it was not measured on both sides")
    assert checked(none, "busy<=1s").outcome == "pass"
    idle = checked(none, "idle<=+1s")
    assert (idle.outcome, idle.because) == ("inconclusive", "it was not measured on both sides")
    assert checked(none, "idle<=1s").outcome == "pass"


def test_where_b_differs_from_itself_its_own_time_is_no_more_certain():
    by_turns = tuple(us * (1.3 if at % 2 else 1.0) for at, us in enumerate((*STEADY, *STEADY)))
    timed = two_runs(1.0)
    wild = compare(timed.a, replace(timed.b, form=make_form("compiled", by_turns)))
    one = checked(wild, "wall<=10ms")
    assert one.low is not None and one.high is not None and one.new is not None
    assert min(one.high - one.new, one.new - one.low) > 0.2 * one.new
    assert "by which a form differs from itself" in one.because
    # What A does changes nothing of that: A's own time is as certain as if B were steady.
    back = checked(compare(wild.b, timed.b), "wall<=10ms")
    assert (back.low, back.high) == (checked(timed, "wall<=10ms").low, checked(timed, "wall<=10ms").high)


def test_a_time_of_b_alone_beyond_its_limit_by_next_to_nothing_passes_without_a_base():
    alike = (1.0, 1.0, 1.0, 1.0)
    slow = tuple(100 * us for us in STEADY)
    repeats = tuple(ProcessTimes(slow, None, (), "asked number", 1.0) for _ in alike)
    form = replace(make_form("compiled", slow), timing=FormTiming("asked number", None, None, 1.0, (), repeats))
    untimed = compare(make_side("base"), replace(make_side("new", form=form), path="traces/new/x.json.gz"))
    # 0.4 and 0.6 % beyond.
    assert checked(untimed, "wall<=99.62ms").outcome == "pass"
    assert checked(untimed, "wall<=99.42ms").outcome == "fail"


def test_what_one_side_alone_left_unmatched_counts_whichever_it_is():
    group = KernelGroup("unmatched", "rest", "unmatched", (GroupMember("a", 2.0, 500.0),), (), -2.0, 0.0, ())
    known = GroupMember("b", 1.0, 500.0)
    same = KernelGroup("unchanged", "b", "anchors", (known,), (known,), 0.0, 0.0, ())
    one = checked(replace(one_run(1.0), groups=(group, same)), "groups_lost<=0")
    assert (one.outcome, one.low, one.high) == ("inconclusive", 0, 1)


def test_a_change_in_every_round_is_not_slight_because_the_medians_differ_by_less():
    base = (*(1000.0, 2000.0) * 10, 2000.0)
    new = (*(1100.0, 2200.0) * 10, 1100.0)
    sides = one_run(1.0).a, one_run(1.0).b
    forms = make_form("eager", base), make_form("compiled", new)
    found = compare(*(replace(side, form=form) for side, form in zip(sides, forms, strict=True)), ORDER)
    steady = replace(found, verdict=replace(found.verdict, noise_floor=0.01, least_change=0.02))
    one = checked(steady, "wall<=+3%")
    assert (one.base, one.new) == (2000.0, 1100.0)
    assert one.outcome == "fail"
