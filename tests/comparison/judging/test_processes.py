"""How far processes differ; and that the margins assumed for that are what they were measured to differ by."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from tests.sides import ORDER, STEADY, make_analysis, make_cpu_analysis, make_form, make_side, scaled, with_processes

from benchmarks.processes import busy, deviation, groups, share_within, waiting
from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.alternatives import with_verified
from tracekit.comparison.judging.processes import (
    find_process_spread,
    find_process_spread_of_advice,
    find_unrepeated,
    waits_for_host,
)
from tracekit.comparison.judging.thresholds import (
    BUSY_DIFFERS,
    PROCESS_FLOOR,
    PROCESS_FLOOR_WAITING,
    WAITING_DIFFERS,
)
from tracekit.comparison.judging.timed import TimedForm
from tracekit.comparison.judging.verdict import judge
from tracekit.model.advice import VerifiedAdvice
from tracekit.model.comparison import Side, Verdict
from tracekit.model.note import Note, Severity
from tracekit.model.run import FormName

SMALL_CHANGE = Note("one_process_small_change")


def notes_on(a: float | None, b: float | None, speedup: float | None, processes=1, result="faster"):
    """On forms of which no more is known than for how much of a call the GPU was idle."""
    eager = SimpleNamespace(label="eager", idle_share=a, form=None)
    compiled = SimpleNamespace(label="compiled", idle_share=b, form=None)
    return find_unrepeated(eager, compiled, Verdict(result, speedup, processes=processes))


@pytest.mark.parametrize(
    ("a", "b", "name", "share"), [(0.82, 0.3, "eager", 0.82), (0.1, 0.2, "compiled", 0.2), (None, 0.5, "compiled", 0.5)]
)
@pytest.mark.parametrize("result", ["faster", "inconclusive"])
def test_a_form_that_waits_for_the_host_is_not_believed_up_to_a_third(a, b, name, share, result) -> None:
    def told(code: str, severity: Severity, speedup: float) -> tuple[Note]:
        ends = [speedup / (1 + WAITING_DIFFERS), speedup * (1 + WAITING_DIFFERS)]
        facts = {"idle_share": share, "seen_apart": WAITING_DIFFERS, "result": result, "speedups": ends}
        return (Note(code, severity, name, facts),)

    for speedup in (0.77, 0.989, 1.142, 1.31):
        assert notes_on(a, b, speedup, result=result) == told("one_process_waits_for_host", "warning", speedup)
    sure = (
        ("one_process_waits_for_host", "warning") if result == "inconclusive" else ("one_process_large_change", "info")
    )
    for speedup in (0.75, 1.33, 6.75):
        assert notes_on(a, b, speedup, result=result) == told(*sure, speedup)


@pytest.mark.parametrize(("a", "b"), [(0.19, 0.02), (None, None), (None, 0.1), (0.142, 0.12)])
def test_forms_that_keep_the_gpu_busy_or_of_which_nobody_knows_are_believed_from_ten_percent_on(a, b) -> None:
    assert notes_on(a, b, 1.09) == notes_on(a, b, 1 / 1.09, result="slower") == (SMALL_CHANGE,)
    for speedup, result in ((1.11, "faster"), (1 / 1.11, "slower")):
        ends = [speedup / (1 + BUSY_DIFFERS), speedup * (1 + BUSY_DIFFERS)]
        facts = {"seen_apart": BUSY_DIFFERS, "result": result, "speedups": ends}
        enough = () if a is b else (Note("one_process_gpu_bound", "info", facts=facts),)
        assert notes_on(a, b, speedup, result=result) == enough
    assert notes_on(a, b, 1.01, result="inconclusive") == ()


def test_several_processes_have_measured_it_and_two_tell_little() -> None:
    expected = {5: (), 3: (), 2: (Note("two_processes"),), None: ()}
    assert {processes: notes_on(0.8, 0.8, 1.1, processes) for processes in expected} == expected
    assert notes_on(0.8, 0.8, None) == ()


def of_run(wall_us: tuple[float, ...], name: FormName, busy_us: float, during_timing: int = 0) -> Side:
    """One step that kept the GPU busy for so long."""
    analysis = make_analysis({"gemm": ("gemm", 10, busy_us)}, steps=1, idle_us=1.0)
    return make_side(name, analysis, make_form(name, wall_us, during_timing=during_timing))


@pytest.mark.parametrize(("busy_us", "warned"), [(200.0, True), (850.0, False)])
def test_a_run_that_was_recorded_knows_how_long_its_gpu_waits(busy_us: float, warned: bool) -> None:
    sides = of_run(STEADY, "eager", busy_us), of_run(scaled(1 / 1.142), "compiled", busy_us)
    assert [waits_for_host(side) for side in sides] == [warned, warned]
    comparison = compare(*sides, ORDER)
    assert comparison.verdict.result == "faster", "the verdict stays"
    assert any(each.code == "one_process_waits_for_host" for each in comparison.notes) == warned


def test_a_form_that_was_never_recorded_is_held_to_ten_percent() -> None:
    for factor, notes in ((1.09, (SMALL_CHANGE,)), (1.142, ())):
        forms = (make_form("eager", STEADY), make_form("compiled", scaled(1 / factor)))
        assert judge(*(TimedForm(form.name, form) for form in forms), ORDER)[1] == notes


def test_of_a_verdict_that_is_withheld_nothing_is_said_of_processes() -> None:
    sides = of_run(STEADY, "eager", 200.0), of_run(scaled(1 / 1.142), "compiled", 200.0, during_timing=1)
    found, notes = judge(*sides, ORDER)
    assert found.result == "inconclusive"
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
    near = {"fastest_us": pytest.approx(3309, rel=0.01), "slowest_us": pytest.approx(4253, rel=0.01)}
    for idle in (False, True):
        found = find_process_spread(side(4.253, 3.586, 3.596, 3.437, 3.542, 3.309, idle=idle))
        assert found == (Note("process_spread", subject="eager", facts={**near, "waits_for_host": idle}),)
    for each in (side(4.0), side(4.0, 4.02, 3.99, 4.04), make_side("trace")):
        assert find_process_spread(each) == ()


def test_eager_in_the_process_that_tried_the_advice_is_compared_with_the_runs_own() -> None:
    for idle in (False, True):
        facts = {"own_us": pytest.approx(4560, rel=0.01), "advised_us": 3800.0, "waits_for_host": idle}
        found = find_process_spread_of_advice(side(4.56, idle=idle), tried(3.80))
        assert found == (Note("advice_process_spread", subject="eager", facts=facts),)
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
