import functools
import math
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import get_args

import pytest
from msgspec.structs import replace
from tests.sides import (
    BUSY,
    COMPILED,
    ORDER,
    STEADY,
    make_analysis,
    make_environment,
    make_form,
    make_settings,
    make_side,
    scaled,
    with_processes,
)

from tracekit import store
from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.comparison.judging.thresholds import MEMORY_SLACK
from tracekit.errors import TracekitError
from tracekit.model.analysis import Analysis, CommunicationUse
from tracekit.model.comparison import Comparison, GroupMember, KernelGroup, Side
from tracekit.model.estimate import Reason
from tracekit.model.gate import Checked, Metric, RankMetric
from tracekit.model.run import FormName, FormResult, RankForm, RankOfRun
from tracekit.reading.sides import load_side
from tracekit.reading.traces import Reading
from tracekit.statements import reasons

#: Processes that agree.
ALIKE = (1.0, 1.001, 0.999, 1.0005)


def side(name: str, form: FormResult, busy: bool = True) -> Side:
    """The GPU has work for nearly all of the call, or waits for the host a third of it."""
    return make_side(name, make_analysis(BUSY if busy else COMPILED), form)


def one_run(factor: float, **changes: object) -> Comparison:
    """Two forms of one process, timed in alternation: B takes `factor` times as long."""
    a, b = side("eager", make_form("eager", STEADY)), side("compiled", make_form("compiled", scaled(factor)))
    return compare(a, replace(b, **changes), ORDER)


def two_runs(factor: float, waiting: tuple[str, ...] = (), **changes: object) -> Comparison:
    """Runs of two processes, those named with a GPU that waits for the host."""
    a, b = (
        side(name, make_form("compiled", scaled(by)), name not in waiting)
        for name, by in (("base", 1.0), ("new", factor))
    )
    return compare(a, replace(b, **changes))


def two_runs_of(base: Sequence[float], new: Sequence[float], during_timing: int = 0) -> Comparison:
    """Runs whose processes took these times as long as `STEADY`, the run's own first; B's repeats compiled so much."""
    own, other = (
        with_processes(make_form("compiled", scaled(first)), *map(scaled, others), during_timing=compiled)
        for (first, *others), compiled in ((base, 0), (new, during_timing))
    )
    return compare(side("base", own), side("new", other))


def with_forms(comparison: Comparison, a_us: Sequence[float], b_us: Sequence[float], order: tuple[str, ...] = ()):
    """The same sides with other calls."""
    forms = make_form("eager" if order else "compiled", a_us), make_form("compiled", b_us)
    return compare(replace(comparison.a, form=forms[0]), replace(comparison.b, form=forms[1]), order)


def checked(comparison: Comparison, text: str) -> Checked:
    (one,) = check(comparison, parse_conditions(text)).checked
    return one


def outcomes(comparison: Comparison, *conditions: str) -> list[str]:
    return [checked(comparison, each).outcome for each in conditions]


def codes(one: Checked) -> list[str]:
    return [each.code for each in one.reasons]


def doubts(one: Checked) -> dict[str, float]:
    """What makes the interval hold the limit, and by how much."""
    (reason,) = [each for each in one.reasons if isinstance(each, reasons.HoldsLimit)]
    return {each.code: each.by_us if each.by_share is None else each.by_share for each in reason.doubts}


def half_width(one: Checked) -> float:
    return (one.high - one.low) / 2


def test_a_time_passes_within_its_limit_fails_beyond_it_and_is_open_where_the_interval_holds_it():
    one = checked(one_run(1.005), "wall<=+3%")
    assert one.outcome == "pass" and one.low == pytest.approx(one.high) == pytest.approx(0.005)
    conditions = "wall<=+3%", "wall<=+20ms", "wall<=1.02ms", "wall<=+35us"
    assert outcomes(one_run(1.06), *conditions) == ["fail", "pass", "fail", "fail"]
    assert outcomes(one_run(1.03), "wall<=+3%") == ["inconclusive"]


def test_two_processes_differ_by_more_than_the_interval_of_one_tells():
    found = [checked(two_runs(factor), "wall<=+3%").outcome for factor in (1.045, 1.08, 0.99)]
    assert found == ["inconclusive", "fail", "pass"]
    one = checked(two_runs_of(ALIKE, [1.045 * by for by in ALIKE]), "wall<=+3%")
    assert (one.outcome, codes(one)) == ("fail", ["interval"])
    assert 0.035 < one.low < 0.045 < one.high < 0.055
    assert outcomes(two_runs_of(ALIKE, ALIKE), "wall<=+1%") == ["pass"]


@pytest.mark.parametrize(("waiting", "share"), [((), 0.024), (("new",), 0.135), (("base", "new"), 0.191)])
def test_what_other_processes_differ_by_is_assumed_of_one_and_more_of_what_waits(waiting, share):
    one = checked(two_runs(1.08, waiting), "wall<=+3%")
    assert half_width(one) == pytest.approx(share * 1.08, abs=0.006)
    if waiting:
        assert doubts(one)["other_processes"] == pytest.approx(share * 1.08, abs=0.0005)
        assert codes(one)[0] == "holds_limit"
    else:
        assert (one.outcome, codes(one)) == ("fail", ["interval", "process_spread_assumed"])
        assert one.reasons[1] == reasons.ProcessSpreadAssumed(share)


def enough(one: Checked) -> int | None:
    """How many processes a side would decide it; 0 where none would, None where that is not told."""
    told = [each for each in one.reasons if isinstance(each, (reasons.ProcessesWouldDo, reasons.NoProcessesWouldDo))]
    return getattr(told[0], "processes", 0) if told else None


def test_where_one_process_of_a_side_decides_nothing_it_is_told_how_many_would() -> None:
    # t * s * sqrt(2 / k) below the 3 % that are between the change and its limit.
    found = []
    for waiting in ((), ("new",), ("base", "new")):
        one = checked(two_runs(1.045 if not waiting else 1.06, waiting), "wall<=+3%")
        assert one.outcome == "inconclusive"
        found.append(enough(one))
    assert found == [5, 24, 46]
    # Nearer to the limit not even fifty would do; nothing is told of what is decided.
    assert enough(checked(two_runs(1.04, ("base", "new")), "wall<=+3%")) == 0
    assert enough(checked(two_runs(1.08), "wall<=+3%")) is None
    # Of B's own time there is no other side.
    assert enough(checked(two_runs(1.06, ("new",)), "wall<=1.03ms")) == 25


def test_processes_that_would_do_are_those_by_which_a_gate_decides() -> None:
    # Processes that wait for the host, and differ as is assumed of them: a change of 6 % as it was measured.
    draw = random.Random(0)
    for processes, outcome in ((46, "fail"), (40, "inconclusive")):
        of_a, of_b = ([draw.gauss(0, 1) for _ in range(processes)] for _ in range(2))
        a, b = ([math.exp(0.069 * (each - fmean(side)) / stdev(side)) for each in side] for side in (of_a, of_b))
        assert outcomes(two_runs_of(a, [1.06 * each for each in b]), "wall<=+3%") == [outcome]


def test_of_several_processes_their_own_spread_tells_how_many_would_do() -> None:
    spread = (0.97, 1.0, 1.03, 1.0)
    one = checked(two_runs_of(spread, [1.06 * by for by in spread]), "wall<=+3%")
    more = enough(one)
    assert one.outcome == "inconclusive" and more is not None and more > 4
    decided = two_runs_of(spread * 3, [1.06 * by for by in spread * 3])
    assert outcomes(decided, "wall<=+3%") == ["fail"] and more <= 12
    # One process of a side is taken to differ as those of the other do.
    assert enough(checked(two_runs_of(spread, (1.06,)), "wall<=+3%")) == more


def test_where_the_verdict_is_of_one_run_or_of_ranks_no_processes_are_told() -> None:
    assert enough(checked(one_run(1.03), "wall<=+3%")) is None
    ranks = tuple(RankOfRun(rank, "host", None, None, ()) for rank in (0, 1))
    of_ranks = replace(two_runs(1.045), a=replace(two_runs(1.045).a, ranks=ranks))
    assert outcomes(of_ranks, "wall<=+3%") == ["inconclusive"]
    assert enough(checked(of_ranks, "wall<=+3%")) is None


def test_memory_may_exceed_its_limit_by_the_allocators_slack_and_says_so() -> None:
    same = one_run(1.0)
    form = same.b.form
    assert form is not None and form.peak_memory_bytes is not None

    def more(more_bytes: int) -> Comparison:
        base = replace(same.a.form, peak_memory_bytes=form.peak_memory_bytes)
        new = replace(form, peak_memory_bytes=form.peak_memory_bytes + more_bytes)
        return replace(same, a=replace(same.a, form=base), b=replace(same.b, form=new))

    for condition in ("memory<=+0", "memory<=+0%", f"memory<={form.peak_memory_bytes}B"):
        for more_bytes, outcome, code in (
            (0, "pass", "exact"),
            (1024, "pass", "allocator_slack"),
            (MEMORY_SLACK, "pass", "allocator_slack"),
            (MEMORY_SLACK + 512, "fail", "exact"),
        ):
            one = checked(more(more_bytes), condition)
            assert (one.outcome, codes(one)) == (outcome, [code]), (condition, more_bytes)


def test_the_runs_own_process_is_one_among_the_others_and_makes_the_run_no_slower():
    one = checked(two_runs_of((*ALIKE, 1.0), (1.05, 1.0, 1.001, 0.999, 1.0)), "wall<=+3%")
    assert (one.new, one.base) == pytest.approx((1010, 1000), rel=2e-3)
    assert one.outcome == "inconclusive"


def test_a_run_of_one_process_beside_one_of_several_borrows_their_spread_and_says_so():
    spread = (0.97, 1.0, 1.03, 1.0, 1.0)
    one = checked(two_runs_of(spread, (1.05,)), "wall<=+3%")
    last = reasons.OneProcessOfASide(side="new", other="base")
    assert (one.outcome, one.reasons[-1]) == ("inconclusive", last)
    other = checked(two_runs_of((1.0,), spread), "wall<=+3%")
    assert other.reasons[-1] == reasons.OneProcessOfASide(side="base", other="new")
    # Student's t of four degrees of freedom, one process against the mean of five.
    half = math.log((1 + one.high) / (1 + one.low)) / 2
    assert half == pytest.approx(2.776 * 0.0212 * math.sqrt(1 + 1 / 5), rel=0.02)


def test_a_limit_of_the_new_sides_own_time_asks_nothing_of_a_base_that_is_all_over_the_place():
    wild = (0.5, 1.0, 2.0, 1.0)
    conditions = "wall<=+20%", "wall<=1.01ms", "wall<=0.99ms"
    assert outcomes(two_runs_of(wild, ALIKE), *conditions) == ["inconclusive", "pass", "fail"]
    one = checked(two_runs_of(wild, (1.0,)), "wall<=1.01ms")
    assert (one.outcome, next(iter(doubts(one)))) == ("inconclusive", "other_processes")


def test_compilation_in_a_repeat_counts_and_its_times_are_not_judged():
    repeats = two_runs_of((1.0,), (1.0, 1.0, 1.0), during_timing=1)
    assert outcomes(repeats, "recompiles<=1", "recompiles<=2", "wall<=+3%") == ["fail", "pass", "inconclusive"]


def test_a_long_call_may_exceed_its_limit_by_half_a_percent_with_a_base_or_without():
    slow = tuple(100 * us for us in STEADY)
    new = side("new", with_processes(make_form("compiled", slow), *[slow] * 4))
    for form in (make_form("eager", slow), None):
        timed = compare(make_side("base", form=form), new)
        slight = checked(timed, "wall<=99.62ms")
        assert (slight.outcome, codes(slight)[0]) == ("pass", "slight")
        assert outcomes(timed, "wall<=99.42ms") == ["fail"]


def test_counts_are_exact():
    fewer = {name: each for name, each in BUSY.items() if name != "triton_poi_fused_add_0"}
    comparison = one_run(1.0, analysis=make_analysis(fewer))
    one = checked(comparison, "kernels<=+0")
    assert (one.outcome, one.base, one.new, one.low, one.high, codes(one)) == ("pass", 22, 17, -5, -5, ["exact"])
    limits = "kernels<=16", "kernels<=17", "kernels<=-20%", "kernels<=-23%"
    assert outcomes(comparison, *limits) == ["fail", "pass", "pass", "fail"]
    sizes = "memory<=3GiB", "memory<=2.9GiB", "memory<=+0MiB", "memory<=+0"
    assert outcomes(comparison, *sizes) == ["pass", "fail", "pass", "pass"]


def test_gpu_time_is_no_more_certain_than_recordings_and_idle_time_than_wall_and_gpu_time():
    slower, much = ({**BUSY, "gemm_128x64": ("gemm", 20, us)} for us in (1640.0, 2640.0))
    assert outcomes(one_run(1.0, analysis=make_analysis(slower)), "busy<=+1%") == ["inconclusive"]
    assert outcomes(one_run(1.0, analysis=make_analysis(much)), "busy<=+1%") == ["fail"]
    assert outcomes(one_run(1.0), "idle<=+5%") == ["inconclusive"]
    assert outcomes(one_run(2.0), "idle<=+5%") == ["fail"]
    # What no number of calls makes more certain says so.
    twice = compare(*(replace(each, rich=make_analysis(BUSY)) for each in (one_run(1.0).a, one_run(1.0).b)))
    assert doubts(checked(twice, "busy<=+0.5%")) == {"recordings": pytest.approx(0.01)}
    assert doubts(checked(one_run(1.0), "busy<=+0.5%")) == {"one_recording": pytest.approx(0.1)}


def test_waiting_for_other_ranks_is_no_busy_time_that_a_gate_judges():
    def rank(analysis: Analysis, waiting_us: float) -> Analysis:
        assert analysis.gpu is not None
        busy_us = analysis.gpu.busy_us
        told = CommunicationUse(1, waiting_us, busy_us, waiting_us, rank=0, world_size=2)
        return replace(analysis, communication=told, gpu=replace(analysis.gpu, busy_us=busy_us + waiting_us))

    comparison = one_run(1.0)
    a, b = (replace(each, analysis=rank(each.analysis, us)) for each, us in ((comparison.a, 0), (comparison.b, 1e6)))
    found = checked(compare(a, b, ORDER), "busy<=+12%")
    assert found.outcome == "pass" and found.base == a.compute_us and found.new == b.compute_us
    assert "compute_alone" in codes(found)
    assert "compute_alone" not in codes(checked(comparison, "busy<=+12%"))


def test_several_conditions_fail_together_pass_together():
    ends = {"wall<=+3%, kernels<=+0": "fail", "wall<=+10%,kernels<=+0": "pass", "wall<=+10%,breaks<=+0": "inconclusive"}
    assert {text: check(one_run(1.06), parse_conditions(text)).outcome for text in ends} == ends


def test_what_is_no_condition_is_refused_with_how_it_is_written():
    named = {"": r"wall<=\+3%", "wall": r"wall<=\+3%", "speed<=3": "wall, busy", "wall<3ms": "METRIC<=LIMIT"}
    for text, words in {**named, "wall<=3": "us, ", "wall<=3GiB": "us, ", "kernels<=3ms": "kernels"}.items():
        with pytest.raises(TracekitError, match=words):
            parse_conditions(text)


def test_a_limit_of_its_own_gpu_or_idle_time_knows_how_certain_its_parts_are():
    # A was recorded once, which is 5 % of doubt; B's two recordings agree.
    comparison = one_run(1.0)
    comparison = replace(comparison, b=replace(comparison.b, rich=comparison.b.analysis))
    own, change = checked(comparison, "busy<=1ms"), checked(comparison, "busy<=+1us")
    assert (half_width(own), half_width(change)) == pytest.approx((0.005 * own.new, 0.055 * own.new))
    wall, busy, idle = (checked(two_runs(1.0), f"{metric}<=1s") for metric in ("wall", "busy", "idle"))
    above = [each.high - each.new for each in (wall, busy, idle)]
    assert above[2] == pytest.approx(above[0] + above[1])
    assert "process_spread_assumed" in codes(idle)


def test_a_form_that_differs_from_itself_by_more_than_is_assumed_stands_in_for_it():
    # Noise below what is assumed of waiting forms does not.
    for waiting, turns, code, doubt in (
        ((), 1.3, "noise_for_process_spread", "noise_for_other_processes"),
        (("base", "new"), 1.05, "process_spread_assumed", "other_processes"),
    ):
        by_turns = (1000.0, 1000.0 * turns) * 10
        noisy = with_forms(two_runs(1.0, waiting), by_turns, by_turns)
        assert noisy.verdict.noise_floor > 0.03
        assert codes(checked(noisy, "wall<=+100%"))[-1] == code
        assert doubt in doubts(checked(noisy, "wall<=+1%"))


def test_two_forms_of_one_run_have_the_interval_of_their_verdict():
    comparison = with_forms(one_run(1.0), STEADY, scaled(1.1)[::-1], ORDER)
    one = checked(comparison, "wall<=+3%")
    assert codes(one) == ["interval", "one_process"]
    # Both ends of the speed-up's interval, turned around.
    assert (1 + one.high, 1 + one.low) == pytest.approx(tuple(1 / each for each in comparison.verdict.ci95))


def test_a_limit_that_is_nearer_than_a_form_differs_from_itself_decides_nothing():
    comparison = one_run(1.1)
    noisy = replace(comparison, verdict=replace(comparison.verdict, noise_floor=0.05))
    assert outcomes(comparison, "wall<=+13%", "wall<=+7%") == ["pass", "fail"]
    floor = reasons.DoubtOfLimit("noise", by_share=pytest.approx(0.055, abs=5e-4))
    for condition in ("wall<=+13%", "wall<=+7%"):
        one = checked(noisy, condition)
        assert (one.outcome, one.reasons[0]) == ("inconclusive", reasons.WithinFloor(floor))
    assert outcomes(noisy, "wall<=+20%", "wall<=+3%") == ["pass", "fail"]


def test_a_gate_does_not_fail_what_the_verdict_of_the_run_leaves_open():
    comparison = one_run(1.012)
    assert comparison.verdict.result == "inconclusive"
    reason = checked(comparison, "wall<=+0.5%").reasons[0]
    assert reason == reasons.WithinFloor(reasons.DoubtOfLimit("least_change", by_share=pytest.approx(0.0202, abs=5e-4)))
    assert outcomes(comparison, "wall<=+0.5%") == ["inconclusive"]
    slower = one_run(1.03)
    assert (slower.verdict.result, outcomes(slower, "wall<=+0.5%")) == ("slower", ["fail"])


def test_a_gate_does_not_fail_what_too_few_independent_rounds_leave_open():
    few = with_forms(one_run(1.0), STEADY[:8], scaled(1.05)[:8], ORDER)
    assert few.verdict.result == "inconclusive"
    assert outcomes(few, "wall<=+0.5%", "wall<=+3%", "wall<=+30%") == ["inconclusive", "inconclusive", "pass"]


def test_a_change_in_every_round_is_not_slight_because_the_medians_differ_by_less():
    base = [*(1000.0, 2000.0) * 10, 2000.0]
    new = [us * factor for us, factor in zip(base, (*(1.099, 1.101) * 10, 0.55), strict=True)]
    found = with_forms(one_run(1.0), base, new, ORDER)
    steady = replace(found, verdict=replace(found.verdict, noise_floor=0.01, least_change=0.02))
    one = checked(steady, "wall<=+3%")
    assert (one.base, one.new, one.outcome) == (2000.0, 1100.0, "fail")


def windows(a: str, b: str) -> Comparison:
    """Bare traces of the same kernels, read over such windows."""
    return compare(*(make_side(label, make_analysis(window=kind)) for label, kind in (("base", a), ("new", b))))


@pytest.mark.parametrize("metric", ["busy", "idle", "kernels", "launches", "groups_lost"])
def test_recordings_that_mark_no_steps_are_held_against_nothing(metric: str):
    for a, b in (("whole", "steps"), ("steps", "whole")):
        one = checked(windows(a, b), f"{metric}<=+0%")
        assert (one.outcome, one.low, one.high) == ("inconclusive", None, None)
        assert one.reasons == (reasons.WindowsDiffer(a, b),)
    # 8 kernels a step in 2 steps are fewer than 5 in 10, and no gain.
    base, new = (make_analysis({"a": ("gemm", n, 10.0 * n)}, window="whole") for n in (50, 16))
    one = checked(compare(make_side("base", base), make_side("new", new)), f"{metric}<=+0")
    assert (one.outcome, one.low, one.high, codes(one)) == ("inconclusive", None, None, ["whole_recordings"])


def test_a_limit_of_all_that_one_recording_holds_is_said_to_be_that():
    whole = windows("steps", "whole")
    assert codes(checked(whole, "kernels<=74")) == ["exact", "whole_recording"]
    assert outcomes(whole, "kernels<=74", "kernels<=73") == ["pass", "fail"]
    assert codes(checked(windows("whole", "steps"), "kernels<=37")) == ["exact"]


def test_nothing_is_lost_for_sure_where_nothing_was_matched():
    attention = make_analysis({"cudnn_attention": ("attention", 20, 1000.0)})
    other = make_analysis({"softmax": ("reduction", 20, 1000.0), "gemm": ("gemm", 40, 1000.0)})
    comparison = compare(make_side("base", attention), make_side("new", other))
    one = checked(comparison, "groups_lost<=0")
    # 30 kernels a step of which nobody knows what they were: 15 places at most.
    assert (one.outcome, one.low, one.high) == ("inconclusive", 0, 15)
    assert one.reasons == (reasons.HoldsLimit([]), reasons.Unmatched(1.0))
    assert outcomes(comparison, "groups_lost<=14") == ["inconclusive"]


def lost_beside(unmatched_us: float, kind: str = "unmatched", how: str = "unmatched") -> Comparison:
    """A place that fell apart 3 times a step in 900 us, and so much that is not known, in one kernel of B."""
    known, unknown = (GroupMember("a", 6.0, 900.0),), (GroupMember("b", 1.0, unmatched_us),)
    fell_apart = KernelGroup("defused", "rest", "anchors", known, known, 1.0, 0.0, (), repeats=3)
    return replace(one_run(1.0), groups=(fell_apart, KernelGroup(kind, "rest", how, (), unknown, 1.0, 0.0, ())))


def test_what_fell_apart_for_sure_fails_and_what_may_have_is_open():
    limits = [f"groups_lost<={limit}" for limit in (2, 3, 4)]
    # Exactly at the limit the seen ones keep to it; one that is hidden would not.
    assert outcomes(lost_beside(100.0), *limits) == ["fail", "inconclusive", "pass"]
    assert outcomes(lost_beside(100.0, "substituted", "names"), limits[1]) == ["inconclusive"]
    assert outcomes(lost_beside(100.0, "unchanged", "names"), limits[1]) == ["pass"]
    # Little that was not matched hides nothing and is told.
    one = checked(lost_beside(45.0), "groups_lost<=3")
    assert (one.outcome, one.low, one.high, codes(one)) == ("pass", 3, 3, ["mostly_matched"])
    assert one.reasons[0] == reasons.MostlyMatched(pytest.approx(45 / 945))
    assert outcomes(lost_beside(50.0), "groups_lost<=3") == ["inconclusive"]


def test_more_than_nothing_has_no_share():
    comparison, analysis = one_run(1.0), make_analysis(BUSY)
    none = replace(analysis, kernels=replace(analysis.kernels, count=0))
    some = replace(comparison, a=replace(comparison.a, analysis=none))
    one = checked(some, "kernels<=+5%")
    assert (one.outcome, one.base, one.new, one.low, one.high) == ("fail", 0, 22, None, None)
    assert codes(one) == ["no_share_of_0"]
    one = checked(replace(some, b=replace(some.b, analysis=none)), "kernels<=+5%")
    assert (one.outcome, one.low) == ("pass", 0)
    assert outcomes(some, "kernels<=+22") == ["pass"]


def reason_of(comparison: Comparison, condition: str) -> Reason:
    assert outcomes(comparison, condition) == ["inconclusive"]
    (reason,) = checked(comparison, condition).reasons
    return reason


def test_a_limit_of_b_alone_is_held_whatever_is_known_of_a():
    timed = two_runs(1.0)
    untimed = compare(replace(timed.a, form=None), timed.b)
    assert outcomes(untimed, "wall<=1.1ms", "wall<=0.9ms") == ["pass", "fail"]
    for condition in ("wall<=+3%", "idle<=+50us"):
        assert reason_of(untimed, condition) == reasons.NotTimed("base")
    other = compare(timed.a, replace(timed.b, form=None))
    assert reason_of(other, "wall<=5ms") == reasons.NotTimed("new")
    idle = replace(untimed, b=replace(untimed.b, rich=untimed.b.analysis))
    assert outcomes(idle, "idle<=1ms", "busy<=1.1ms") == ["pass", "pass"]


def test_compilation_in_one_side_spoils_the_change_and_its_own_time():
    timed, compiled = two_runs(1.0), reasons.CompiledWhileTimed()
    late = compare(replace(timed.a, form=make_form("compiled", STEADY, during_timing=1)), timed.b)
    assert reason_of(late, "wall<=+10%") == compiled
    assert outcomes(late, "wall<=1.1ms", "recompiles<=0") == ["pass", "pass"]
    assert "compiled_while_timed" not in codes(checked(late, "idle<=1ms"))
    assert reason_of(compare(timed.b, late.a), "wall<=1.1ms") == compiled
    neither = compare(replace(timed.a, form=None), late.a)
    assert reason_of(neither, "wall<=+3%") == reasons.NotTimed("base")
    assert reason_of(neither, "wall<=1.1ms") == compiled
    # Too few calls are not said to be none.
    few = with_forms(timed, STEADY, STEADY[:4])
    for condition in ("wall<=+3%", "wall<=5ms"):
        assert reason_of(few, condition) == reasons.TooFewCalls("new", needed=5)
    assert outcomes(compare(few.b, timed.b), "wall<=1.1ms") == ["pass"]


def test_a_change_counts_beyond_what_processes_are_assumed_to_differ_by():
    changes = (two_runs(factor).verdict.apart for factor in (1.01, 0.99, 1.1, 0.9))
    assert [each.beyond for each in changes] == [False, False, True, True]


def test_of_other_work_another_gpu_and_times_that_hold_compilation_nothing_is_said():
    work, gpu = {"settings": make_settings(batch_size=4)}, {"environment": make_environment(gpu="NVIDIA A100")}
    for changes in (work, gpu, {"form": make_form("compiled", scaled(1.5), during_timing=1)}):
        assert two_runs(1.5, **changes).verdict.apart is None
    # Forms of one process have a verdict in its place.
    verdict = one_run(1.5).verdict
    assert (verdict.result, verdict.apart, verdict.established) == ("slower", None, True)


RUNS = Path(__file__).parents[3] / "traces"


@functools.cache
def loaded(run: str, form: FormName = "compiled") -> Side:
    return load_side(RUNS / run, form=form, reading=Reading(shapes=True))


#: The metric, what is allowed, and what became of it: compiled beside eager, reduce-overhead beside default.
OUTCOMES = [
    ("wall", "+3%", "pass", "pass"),
    ("busy", "+5%", "fail", "pass"),
    ("idle", "+3%", "pass", "pass"),
    ("kernels", "+0", "fail", "fail"),
    ("launches", "+0", "fail", "pass"),
    ("memory", "+0", "pass", "pass"),
    ("recompiles", "+0", "inconclusive", "pass"),
    ("breaks", "+0", "inconclusive", "pass"),
    ("groups_lost", "+0", "fail", "pass"),
]


def test_each_metric_is_judged() -> None:
    forms = compare(loaded("h100-vit", "eager"), loaded("h100-vit"), store.load(RUNS / "h100-vit").order)
    modes = compare(loaded("h100-vit"), loaded("h100-vit-reduce-overhead"))
    assert [metric for metric, *_ in OUTCOMES] == [
        each for each in get_args(Metric) if each not in get_args(RankMetric)
    ]
    for metric, limit, *expected in OUTCOMES:
        found = [*outcomes(forms, f"{metric}<={limit}"), *outcomes(modes, f"{metric}<={limit}")]
        assert found == expected, metric
    # Twelve attention kernels fell apart.
    assert outcomes(forms, "groups_lost<=11", "groups_lost<=12") == ["fail", "pass"]


def test_what_differs_from_job_to_job_is_assumed_and_no_option_measures_it() -> None:
    ranks = tuple(RankOfRun(rank, "host", None, None, ()) for rank in (0, 1))
    of_ranks = replace(two_runs(1.01), a=replace(two_runs(1.01).a, ranks=ranks))
    assert "job_spread_assumed" in codes(checked(of_ranks, "wall<=+9%"))
    one = one_run(0.5)
    assert codes(checked(replace(one, a=replace(one.a, ranks=ranks)), "wall<=-20%")) == ["exact", "one_job"]


def test_breaks_are_those_of_the_rank_with_most() -> None:
    ranks = tuple(
        RankOfRun(rank, "host", None, None, (RankForm("compiled", 1000.0, 5, 1, breaks, None),))
        for rank, breaks in enumerate((0, 2))
    )
    run = one_run(0.5, ranks=ranks)
    assert outcomes(run, "breaks<=1", "breaks<=2") == ["fail", "pass"]
    # One process has nobody to wait for.
    assert outcomes(run, "waiting<=1s") == ["inconclusive"]


def test_a_regression_between_two_runs_is_told_and_explained_by_the_waterfall() -> None:
    back = compare(loaded("h100-vit-reduce-overhead"), loaded("h100-vit"))
    assert outcomes(back, "wall<=+3%", "idle<=+3%", "launches<=+3%") == ["fail"] * 3
    gate, change = checked(back, "wall<=+3%"), back.verdict.apart
    assert change.beyond
    # The headline's range is the gate's.
    assert (change.low - 1, change.high - 1) == pytest.approx((gate.low, gate.high))
    first = back.reason.shares[0]
    assert first.kind == "idle"
    # What recording added to these runs is assumed: a cause whose change may be none is not named.
    assert all(part.has_sign for part in first.parts)
    codes = ("matched_by_elimination", "provenance_unused")
    (note,) = [each for each in back.notes if each.code in codes]
    assert note.facts["no_provenance"] == "other_forms"
