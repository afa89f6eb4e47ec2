"""How far processes differ; and that the margins assumed for that are what they were measured to differ by."""

import itertools
import math
from collections.abc import Iterable
from types import SimpleNamespace

import numpy as np
import pytest
from tests.sides import ORDER, STEADY, make_analysis, make_cpu_analysis, make_form, make_side, scaled, with_processes

from benchmarks.processes import busy, deviation, groups, kept, share_within, waiting
from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.alternatives import with_verified
from tracekit.comparison.judging.processes import (
    find_process_spread,
    find_process_spread_of_advice,
    find_two_kinds,
    next_process95,
    next_speedup95,
    waits_for_host,
)
from tracekit.comparison.judging.thresholds import (
    NEXT_BUSY,
    NEXT_WAITING,
    PROCESS_FLOOR,
    PROCESS_FLOOR_WAITING,
    WAITING_SHARE,
)
from tracekit.comparison.judging.timed import TimedForm
from tracekit.comparison.judging.verdict import judge
from tracekit.model.advice import VerifiedAdvice
from tracekit.model.comparison import Side, Verdict
from tracekit.model.run import FormName
from tracekit.statements.notes.speeds import AdviceProcessSpread, ProcessSpread
from tracekit.statistics.interval import t_quantile


def of_next(a: float | None, b: float | None, verdict: Verdict) -> tuple[float, float] | None:
    """Of forms of which no more is known than for how much of a call the GPU was idle."""
    eager = SimpleNamespace(label="eager", idle_share=a, form=None)
    compiled = SimpleNamespace(label="compiled", idle_share=b, form=None)
    return next_process95(eager, compiled, verdict)


def reach(low: float, high: float) -> float:
    return math.sqrt(high / low) - 1


@pytest.mark.parametrize(
    ("a", "b", "one", "four"),
    [
        (0.82, 0.3, 0.178, 0.138),
        (0.1, 0.2, 0.178, 0.138),
        (None, 0.5, 0.178, 0.138),
        (None, None, 0.178, 0.138),
        (0.19, 0.02, 0.062, 0.049),
        (None, 0.1, 0.178, 0.138),
    ],
)
def test_the_next_process_lies_where_those_of_earlier_works_did(a, b, one: float, four: float) -> None:
    for processes, expected in ((1, one), (4, four)):
        found = of_next(a, b, Verdict("faster", 1.5, (1.49, 1.51), processes=processes))
        assert found is not None and reach(*found) == pytest.approx(expected, abs=1e-3)
        assert math.sqrt(found[0] * found[1]) == pytest.approx(1.5)
    wide = of_next(a, b, Verdict("faster", 1.5, (1.0, 2.0), processes=1))
    assert wide == (1.0, 2.0)


def test_of_no_interval_of_a_cpu_and_of_jobs_nobody_knows_of_the_next() -> None:
    on_cpu = (make_side(name, make_cpu_analysis(), make_form(name, STEADY)) for name in ("eager", "compiled"))
    assert next_process95(*on_cpu, Verdict("faster", 1.5, (1.49, 1.51), processes=1)) is None
    of_job = [SimpleNamespace(idle_share=0.5, form=SimpleNamespace(own_wall_us=(1.0,))) for _ in range(2)]
    assert next_process95(*of_job, Verdict("faster", 1.5, (1.49, 1.51), processes=1)) is None
    assert of_next(0.5, 0.5, Verdict("inconclusive", 1.5, processes=1)) is None
    assert of_next(0.5, 0.5, Verdict("not_timed")) is None


def settings() -> dict[bool, dict[str, list[float]]]:
    """Logarithms of speed-ups of settings by whether they wait for the host, and by work and setting."""
    found: dict[bool, dict[str, list[float]]] = {True: {}, False: {}}
    for each in kept()["settings"]:
        waits = max(each["idle_shares"]) >= WAITING_SHARE
        found[waits][each["name"]] = [math.log(ratio) for ratio in each["speedups"] if ratio]
    return found


def pooled(some: Iterable[list[float]]) -> tuple[float, int]:
    groups = [np.array(each) for each in some]
    freedom = sum(len(each) - 1 for each in groups)
    return math.sqrt(sum(((each - each.mean()) ** 2).sum() for each in groups) / freedom), freedom


@pytest.mark.parametrize(("waits", "expected", "number"), [(True, NEXT_WAITING, 16), (False, NEXT_BUSY, 2)])
def test_how_far_processes_differ_is_what_was_measured(waits: bool, expected, number: int) -> None:
    some = settings()[waits]
    deviation, freedom = pooled(some.values())
    assert (len(some), freedom) == (number, expected[1])
    assert deviation == pytest.approx(expected[0], abs=5e-5)


def test_nine_of_ten_next_processes_lie_where_the_others_say_one_work_left_out() -> None:
    held = total = 0
    for some in settings().values():
        for name, own in some.items():
            others = [each for other, each in some.items() if other.split()[0] != name.split()[0]]
            deviation, freedom = pooled(others)
            half = t_quantile(freedom) * deviation * math.sqrt(2)
            apart = [abs(one - other) for one, other in itertools.combinations(own, 2)]
            held, total = held + sum(each <= half for each in apart), total + len(apart)
    assert total == 88 and held / total >= 0.9


def test_the_own_spread_of_four_processes_is_the_next_one_s_where_they_are_too_far_apart() -> None:
    # Student's t of their logarithms, for the mean and for one more.
    logs = np.log([1.522, 1.983, 2.076, 1.768])
    half = 3.182 * logs.std(ddof=1)
    mean = (math.exp(logs.mean() - half / 2), math.exp(logs.mean() + half / 2))
    more = (math.exp(logs.mean() - half * math.sqrt(1.25)), math.exp(logs.mean() + half * math.sqrt(1.25)))
    shares, apart = (0.25, 0.19), (1.522, 2.076)
    assert next_speedup95(math.exp(logs.mean()), mean, 4, shares, apart) == pytest.approx(more, rel=1e-3)
    assert next_speedup95(math.exp(logs.mean()), mean, 3, shares, apart)[1] < more[1]
    # Not where the rule says as much of two of them.
    assert next_speedup95(math.exp(logs.mean()), mean, 4, shares, (1.7, 1.9))[1] < more[1]


def test_so_many_next_processes_of_settings_measured_later_lie_where_the_rule_says() -> None:
    held = total = 0
    for each in kept()["checked"]:
        for one, other in itertools.combinations(each["speedups"], 2):
            low, high = next_speedup95(one, (one, one), 1, each["idle_shares"])
            held, total = held + (low <= other <= high), total + 1
    assert (held, total) == (32, 36)


def test_thirds_of_one_process_are_not_held_against_the_interval_of_several() -> None:
    drifting = tuple(
        us * factor for us, factor in zip(walls(1.0, 1), np.linspace(1.0, 1.2, len(walls(1.0, 1))), strict=True)
    )
    for repeats in (0, 3):
        eager = with_processes(make_form("eager", walls(2.0, 0)), *(walls(2.0, 2 + at) for at in range(repeats)))
        compiled = with_processes(make_form("compiled", drifting), *(walls(1.0, 9 + at) for at in range(repeats)))
        sides = (make_side(form.name, form=form) for form in (eager, compiled))
        codes = [each.code for each in judge(*sides, ORDER * 2)[1]]
        assert "drifted" in codes and ("speedup_by_thirds" in codes) == (repeats == 0)


def test_two_kinds_of_process_are_named_and_one_kind_seldom_looks_like_two() -> None:
    kinds = (1.84, 2.06, 1.85, 2.04, 2.05, 1.84)
    (told,) = find_two_kinds(kinds)
    assert [each["processes"] for each in told.facts["kinds"]] == [3, 3]
    assert [each["speedup"] for each in told.facts["kinds"]] == pytest.approx([1.843, 2.05], abs=1e-3)
    eager = with_processes(make_form("eager", walls(2.0, 0)), *(walls(2.0, at) for at in range(1, 6)))
    times = [walls(2.0 / each, 50 + at) for at, each in enumerate(kinds)]
    compiled = with_processes(make_form("compiled", times[0]), *times[1:])
    _, notes = judge(*(make_side(form.name, form=form) for form in (eager, compiled)), ORDER * 2)
    assert "two_kinds" in [each.code for each in notes]
    for number, most in ((3, 0.0), (4, 0.06), (6, 0.01)):
        drawn = np.exp(np.random.default_rng(0).normal(0, 0.05, (1000, number)))
        assert sum(bool([*find_two_kinds(each)]) for each in drawn) <= most * 1000
    # Processes that differ by less than 2 % are of one kind.
    assert not [*find_two_kinds((1.0, 1.001, 1.01, 1.011))]


def test_of_few_processes_their_range_is_told_and_of_many_an_interval() -> None:
    for others in (0, 1, 3, 7):
        eager = with_processes(make_form("eager", walls(2.0, 0)), *(walls(2.0, at) for at in range(1, others + 1)))
        times = [walls(1.0 + at / 100, 50 + at) for at in range(others + 1)]
        compiled = with_processes(make_form("compiled", times[0]), *times[1:])
        verdict, notes = judge(*(make_side(form.name, form=form) for form in (eager, compiled)), ORDER * 2)
        assert verdict.processes == others + 1 and not [each for each in notes if "two" in each.code]
        if not others:
            assert verdict.process_range is None and verdict.told_range == verdict.ci95
            continue
        assert verdict.process_range == pytest.approx((2.0 / (1 + others / 100), 2.0), rel=0.01)
        assert (verdict.told_range == verdict.ci95) == (others == 7)


def of_run(wall_us: tuple[float, ...], name: FormName, busy_us: float, during_timing: int = 0) -> Side:
    """One step that kept the GPU busy for so long."""
    analysis = make_analysis({"gemm": ("gemm", 10, busy_us)}, steps=1, idle_us=1.0)
    return make_side(name, analysis, make_form(name, wall_us, during_timing=during_timing))


@pytest.mark.parametrize(("busy_us", "waits"), [(200.0, True), (850.0, False)])
def test_a_run_that_was_recorded_knows_how_long_its_gpu_waits(busy_us: float, waits: bool) -> None:
    sides = of_run(STEADY, "eager", busy_us), of_run(scaled(1 / 1.142), "compiled", busy_us)
    assert [waits_for_host(side) for side in sides] == [waits, waits]
    verdict = compare(*sides, ORDER).verdict
    # What this process found stays; the next one may find the opposite where the GPU waits.
    assert (verdict.result, verdict.in_this_process) == ("faster", waits)


def test_a_form_that_was_never_recorded_counts_as_waiting() -> None:
    for factor, open_ in ((1.142, True), (1.2, False)):
        forms = (make_form("eager", STEADY), make_form("compiled", scaled(1 / factor)))
        assert judge(*(TimedForm(form.name, form) for form in forms), ORDER)[0].in_this_process == open_


def test_of_a_verdict_that_is_withheld_nothing_is_said_of_processes() -> None:
    sides = of_run(STEADY, "eager", 200.0), of_run(scaled(1 / 1.142), "compiled", 200.0, during_timing=1)
    found, notes = judge(*sides, ORDER)
    assert (found.result, found.next_process95) == ("inconclusive", None)
    assert {each.code for each in notes} == {"compiled_while_timed"}


def walls(median_ms: float, seed: int) -> tuple[float, ...]:
    return tuple(np.random.default_rng(seed).normal(median_ms * 1e3, median_ms * 10, 40))


def side(own_ms: float, *others_ms: float, idle: bool = False) -> Side:
    """The GPU is idle for most of the call, or nobody knows."""
    others = (walls(ms, seed) for seed, ms in enumerate(others_ms, 1))
    analysis = make_analysis() if idle else make_cpu_analysis()
    return make_side("eager", analysis, with_processes(make_form("eager", walls(own_ms, 0)), *others))


def tried(eager_ms: float) -> VerifiedAdvice:
    return VerifiedAdvice("code", "try it", 1.0, 1.0, eager_ms * 1e3, 1.2, None, 20, None)


def test_processes_of_other_speeds_are_said_and_those_that_agree_or_one_alone_are_not() -> None:
    ends = pytest.approx(3309, rel=0.01), pytest.approx(4253, rel=0.01)
    for idle in (False, True):
        found = find_process_spread(side(4.253, 3.586, 3.596, 3.437, 3.542, 3.309, idle=idle))
        assert found == (ProcessSpread("eager", *ends, waits_for_host=idle),)
    for each in (side(4.0), side(4.0, 4.02, 3.99, 4.04), make_side("trace")):
        assert find_process_spread(each) == ()


def test_eager_in_the_process_that_tried_the_advice_is_compared_with_the_runs_own() -> None:
    for idle in (False, True):
        found = find_process_spread_of_advice(side(4.56, idle=idle), tried(3.80))
        assert found == (AdviceProcessSpread("eager", pytest.approx(4560, rel=0.01), 3800.0, waits_for_host=idle),)
        assert find_process_spread_of_advice(side(4.56, idle=idle), tried(4.52)) == ()


def test_that_stands_among_the_comparisons_notes() -> None:
    compiled = make_side("compiled", form=make_form("compiled", walls(3.8, 7)))
    comparison = compare(side(4.56), compiled, ("eager", "compiled") * 40)
    for eager_ms, said in ((3.80, True), (4.56, False)):
        notes = with_verified(comparison, tried(eager_ms)).notes
        assert any(each.code == "advice_process_spread" for each in notes) == said


@pytest.mark.parametrize(
    ("of", "number", "spread", "floor"),
    [(busy, 8, 0.0086, PROCESS_FLOOR), (waiting, 22, 0.069, math.sqrt(2) * PROCESS_FLOOR_WAITING)],
)
def test_processes_differ_as_is_assumed(of, number: int, spread: float, floor: float) -> None:
    works = list(of())
    assert (len(works), deviation(groups(works))) == (number, pytest.approx(spread, rel=0.007))
    assert 1.96 * math.sqrt(2) * deviation(groups(works)) == pytest.approx(floor, rel=0.015)
    assert share_within(works, floor) == pytest.approx(0.93, abs=0.005)
