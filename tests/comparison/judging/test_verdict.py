import math
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace
from tests.sides import (
    ORDER,
    STEADY,
    make_cpu_analysis,
    make_form,
    make_pair,
    make_settings,
    make_side,
    scaled,
    with_processes,
)

from tracekit.comparison.judging.break_even import find_break_even
from tracekit.comparison.judging.processes import process_medians
from tracekit.comparison.judging.thresholds import LEAST_IN_ONE_PROCESS
from tracekit.comparison.judging.verdict import Judged, Pairs, find_noise_floor, judge
from tracekit.model.comparison import Side, Verdict
from tracekit.model.compilation import CompilingCall, Diagnostics
from tracekit.model.note import Note
from tracekit.model.run import CompileFacts, FormName, FormResult, UserModel
from tracekit.model.timing import ControlCall, FormTiming, ProcessTimes, Startup
from tracekit.statements.notes.timing import (
    CoarseClock,
    CompiledWhileTimed,
    FewStretches,
    NotAlternated,
    NotTimed,
    TooFewCalls,
    UnevenCalls,
    Warming,
)


def about(notes: tuple[Note, ...]) -> list[tuple[str, str | None]]:
    return [(each.code, getattr(each, "subject", None)) for each in notes]


def too_few_calls(calls: int, repeats: int = 0) -> Note:
    return TooFewCalls(calls, 5, repeats)


def test_a_form_that_takes_less_time_is_faster_and_one_that_takes_more_slower():
    slower, _ = judge(*make_pair(STEADY, scaled(1.2)), ORDER)
    assert (slower.result, slower.speedup) == ("slower", pytest.approx(1 / 1.2))
    assert judge(*make_pair(STEADY, STEADY[::-1]), ORDER)[0].result == "inconclusive"
    verdict, notes = judge(*make_pair(STEADY, scaled(2 / 3)), ORDER)
    assert (verdict.result, verdict.speedup) == ("faster", pytest.approx(1.5))
    assert about(notes) == [] and verdict.next_process95[0] < verdict.ci95[0]
    assert verdict.ci95[0] <= 1.5 <= verdict.ci95[1]
    assert (verdict.n, verdict.processes, verdict.basis) == (10, 1, "rounds")


def test_a_change_below_the_noise_floor_is_inconclusive_though_every_pair_agrees():
    by_turns = [1000.0, 1200.0] * 5
    verdict, _ = judge(*make_pair(by_turns, [us / 1.05 for us in by_turns]), ORDER)
    assert verdict.noise_floor > 0.05 and verdict.result == "inconclusive"


def test_drift_that_meets_both_forms_alike_does_not_widen_the_paired_interval():
    drift = np.linspace(1000, 2000, 20)
    verdict, notes = judge(*make_pair(drift, drift / 1.1), ORDER * 2)
    assert verdict.ci95 == pytest.approx((1.1, 1.1))
    assert ("drifted", "eager") in about(notes)
    separate, _ = judge(*make_pair(drift, drift / 1.1), ())
    assert separate.ci95[1] - separate.ci95[0] > 0.2


def test_traces_alone_and_one_timed_side_give_no_verdict():
    assert judge(make_side("a", form=make_form()), make_side("b"), ())[0].result == "not_timed"
    verdict, notes = judge(make_side("a"), make_side("b"), ())
    assert (verdict.result, notes) == ("not_timed", (NotTimed(),))
    assert (verdict.speedup, verdict.ci95, verdict.noise_floor, verdict.a_wall_us, verdict.b_wall_us) == (None,) * 5


def test_four_calls_are_too_few():
    verdict, notes = judge(*make_pair((1000.0,) * 4, (500.0,) * 4), ORDER[:8])
    assert (verdict.result, verdict.speedup, verdict.ci95, verdict.noise_floor) == ("inconclusive", 2, None, None)
    assert too_few_calls(4) in notes
    assert too_few_calls(1) in judge(*make_pair(STEADY[:1], STEADY[:1]), ORDER)[1]
    forms = [with_processes(make_form(name, STEADY[:4]), STEADY, STEADY) for name in ("eager", "compiled")]
    assert too_few_calls(4, 2) in judge(*(make_side(form.name, form=form) for form in forms), ORDER[:8])[1]


def test_sides_of_different_runs_have_no_verdict_and_an_interrupted_round_does_not_count():
    verdict, notes = judge(*make_pair(STEADY, scaled(0.5)), ())
    assert (verdict.result, notes) == ("inconclusive", (NotAlternated(),))
    _, notes = judge(*make_pair(STEADY, scaled(0.5)[:9]), ORDER[:19])
    assert UnevenCalls(9) in notes


def test_the_noise_floor_is_that_of_the_form_that_repeats_itself_less_well():
    walls = np.full(40, 1000.0)
    noisy = tuple(ControlCall(round_, 1030.0, None) for round_ in range(1, 40, 4))
    quiet = tuple(ControlCall(round_, 1001.0, None) for round_ in range(40))
    for controls in ((noisy[:6], ()), ((), noisy[:6]), (noisy, quiet), (quiet, noisy)):
        assert find_noise_floor([Pairs(walls, walls, *controls)]) == pytest.approx(0.03)
    assert find_noise_floor([Pairs(walls, walls)]) == 0
    assert find_noise_floor([Pairs(walls, walls, noisy[:4])]) == 0, "four pairs are too few"
    few = find_noise_floor([Pairs(walls, walls, noisy[:8], quiet)])
    assert few < 0.03, "a form with too few pairs has no floor of its own"
    halves = [Pairs(walls, walls, noisy[:5], quiet), Pairs(walls, walls, noisy[5:], quiet)]
    assert find_noise_floor(halves) == pytest.approx(0.03), "its pairs of all processes are enough"


def repeated(name: FormName, own: float, others: Sequence[float]) -> FormResult:
    return with_processes(make_form(name, scaled(own)), *map(scaled, others))


def judge_repeats(second: tuple[dict[str, object], ...], first: str = "asked number") -> Judged:
    """Of three processes; what is otherwise in both repeats of the compiled form, which takes half the time."""
    eager, compiled = repeated("eager", 1.0, (1.0, 1.0)), repeated("compiled", 0.5, (0.5, 0.5))
    both = zip(compiled.timing.processes, second, strict=True)
    repeats = tuple(replace(each, **changes) for each, changes in both)
    timing = replace(compiled.timing, stopped=first, processes=repeats)
    return judge(make_side("eager", form=eager), make_side("compiled", form=replace(compiled, timing=timing)), ORDER)


def judge_processes(*compiled: float) -> tuple[Verdict, tuple[str, ...]]:
    eager = make_side("eager", form=repeated("eager", 1.0, (1.0,) * (len(compiled) - 1)))
    return judge(eager, make_side("compiled", form=repeated("compiled", compiled[0], compiled[1:])), ORDER)


def test_processes_that_disagree_widen_the_interval_beyond_each_ones_own():
    for factor in (1.0, -1.0):
        verdict, _ = judge_processes(*((1 + change) ** -factor for change in (0.05, 0.01, 0.08)))
        assert verdict.ci95[0] < 1 < verdict.ci95[1] and abs(np.log(verdict.speedup)) > LEAST_IN_ONE_PROCESS
        assert (verdict.result, verdict.basis, verdict.processes, verdict.n) == ("inconclusive", "processes", 3, 30)


def test_processes_that_agree_establish_a_change_too_small_for_one_of_them():
    assert judge_processes(1 / 1.015)[0].result == "inconclusive"
    verdict, _ = judge_processes(1 / 1.015, 1 / 1.0155, 1 / 1.0145, 1 / 1.015)
    assert (verdict.result, verdict.speedup) == ("faster", pytest.approx(1.015, rel=1e-3))
    assert [judge_processes(*(0.5,) * number)[0].least_change for number in (1, 2, 3, 4)] == [0.02, 0.02, 0.01, 0.01]


def test_a_compilation_in_a_repeat_withholds_the_verdict_and_a_repeat_of_a_few_calls_does_not_count():
    verdict, notes = judge_repeats(({}, {"during_timing": 1}))
    told = CompiledWhileTimed("compiled", 1)
    assert (verdict.result, told in notes) == ("inconclusive", True)
    verdict, _ = judge_repeats(({}, {"wall_us": scaled(0.9)[:4]}))
    assert (verdict.processes, verdict.n, verdict.speedup) == (2, 20, pytest.approx(2.0))


def test_a_process_that_did_not_reach_its_target_is_why_timing_stopped():
    reached, spent = {"stopped": "target reached"}, {"stopped": "budget spent"}
    assert judge_repeats((reached, spent), "target reached")[0].stopped == "budget spent"
    assert judge_repeats((reached, reached), "target reached")[0].stopped == "target reached"


SWITCHING = tuple(np.repeat([1000.0, 1080.0, 1000.0, 1080.0], 10) * np.tile(STEADY, 4) / 1000)


def test_a_form_that_switches_speeds_by_itself_cannot_be_told_from_a_change_as_large():
    verdict, notes = judge(*make_pair(SWITCHING, np.tile(STEADY, 4) / 1.03), ORDER * 4)
    assert verdict.result == "inconclusive"
    assert ("two_speeds", "eager") in about(notes)
    assert judge(*make_pair(SWITCHING, np.tile(STEADY, 4) / 2), ORDER * 4)[0].result == "faster"


def test_controls_of_rounds_that_are_left_out_are_left_out_with_them():
    """The second calls of the first two rounds took twice as long, those of the others 3 % longer."""
    walls = tuple(np.random.default_rng(0).permutation(np.linspace(1000.0, 1001.0, 42)))
    controls = tuple(ControlCall(at, walls[at] * (2.0 if at < 2 else 1.03), None) for at in range(42))
    timing = FormTiming("asked number", None, None, 1.0, controls)
    eager = make_side("eager", form=replace(make_form("eager", walls), timing=timing))
    told = Diagnostics(calls=tuple(CompilingCall("timed", number, 1, 0, 1e6) for number in (1, 2)))
    compiling = replace(make_form("compiled", walls, during_timing=2, diagnostics=told), timing=timing)
    warming = replace(make_form("compiled", walls), timing=replace(timing, unsteady=2))
    for form in (compiling, warming):
        verdict, _ = judge(eager, make_side("compiled", form=form), ORDER)
        assert (verdict.n, verdict.noise_floor) == (40, pytest.approx(0.03, abs=1e-4))


def test_rounds_before_a_form_had_settled_do_not_count_in_any_process():
    rising = tuple(np.exp(np.random.default_rng(0).normal(0, 0.01, 60)) * 1000.0)
    warming = (*(us * 1.3 for us in rising[:20]), *rising[20:])
    timing = FormTiming("asked number", None, None, 1.0, unsteady=20)
    eager = make_side("eager", form=replace(make_form("eager", rising), timing=timing))
    compiled = make_side("compiled", form=replace(make_form("compiled", warming), timing=timing))
    verdict, notes = judge(eager, compiled, ORDER)
    assert (verdict.n, verdict.speedup, verdict.result) == (40, pytest.approx(1.0), "inconclusive")
    assert verdict.b_wall_us == compiled.wall_us == pytest.approx(np.median(rising[20:]))
    assert Warming("compiled", 20, 60) in notes
    repeat = ProcessTimes(warming, None, (), "asked number", 1.0, unsteady=20)
    several = replace(timing, processes=(repeat, repeat))
    eager, compiled = (replace(side, form=replace(side.form, timing=several)) for side in (compiled, compiled))
    verdict, notes = judge(eager, compiled, ORDER)
    assert verdict.n == 120 and Warming("compiled", 60, 180) in notes
    # Timed apart they do not count either.
    verdict, notes = judge(eager, compiled, ())
    assert verdict.n == 120 and [each.code for each in notes].count("warming") == 2
    assert [math.exp(each.middle) for each in process_medians(compiled)] == pytest.approx([np.median(rising[20:])] * 3)


def test_of_few_independent_rounds_only_what_exceeds_the_spread_of_processes_counts():
    # Two speeds, each kept for half of the rounds: no more than two stretches of one speed.
    halves = tuple(np.repeat([1000.0, 1080.0], 20) * np.tile(STEADY, 4) / 1000)
    for factor, result in ((1.1, "inconclusive"), (2.0, "faster"), (0.5, "slower")):
        verdict, notes = judge(*make_pair(halves, np.tile(STEADY, 4) / factor), ORDER * 4)
        assert verdict.stretches < 10 and verdict.result == result
        (told,) = [each for each in notes if each.code == "few_stretches"]
        assert told == FewStretches(40, verdict.stretches, 10)
    # No command repeats a program in other processes.
    a, b = make_pair(halves, np.tile(STEADY, 4))
    settings = make_settings(own=UserModel(in_program=True, as_script=True))
    verdict, notes = judge(a, replace(b, settings=settings), ORDER * 4)
    assert FewStretches(40, verdict.stretches, 10, of_program=True) in notes
    # On a CPU nobody measured what processes differ by: as much as of a GPU that waits for the host is asked.
    for factor, result in ((1.1, "inconclusive"), (3.0, "faster")):
        sides = (
            make_side(name, make_cpu_analysis(), make_form(name, walls[:8]))
            for name, walls in (("eager", STEADY), ("compiled", scaled(1 / factor)))
        )
        verdict, _ = judge(*sides, ORDER)
        assert (verdict.result, verdict.next_process95) == (result, None)
        assert verdict.decided95[0] == pytest.approx(factor / 1.178, abs=2e-3)
    # Eight rounds are eight at most; as many independent ones as rounds tell of themselves.
    few, _ = judge(*make_pair(STEADY[:8], scaled(1 / 1.1)[:8]), ORDER)
    assert (few.stretches, few.result) == (8, "inconclusive")
    enough, notes = judge(*make_pair(STEADY, scaled(1 / 1.1)), ORDER)
    assert (enough.stretches, enough.result, notes) == (10, "faster", ())


def test_many_outliers_are_told_with_the_speed_up_that_they_make():
    a = np.exp(np.random.default_rng(0).normal(0, 0.01, 100)) * 1000
    b = np.exp(np.random.default_rng(1).normal(0, 0.01, 100)) * 1000
    for every, told in ((50, False), (5, True)):
        slow = b * np.where(np.arange(100) % every == 0, 1.5, 1.0)
        verdict, notes = judge(*make_pair(a, slow), ORDER * 10)
        found = [each.facts for each in notes if each.code == "outliers"]
        assert verdict.speedup == pytest.approx(1.0, abs=0.005) and bool(found) is told
    (facts,) = found
    assert (facts["rounds"], facts["of_rounds"]) == (20, 100)
    assert facts["speedup"] == pytest.approx(1 / 1.5**0.2, rel=0.01)


def test_a_side_with_one_call_more_leaves_the_same_rounds_out():
    walls = tuple(np.exp(np.random.default_rng(0).normal(0, 0.01, 101)) * 1000.0)
    warming = (*(us * 1.3 for us in walls[:50]), *walls[50:])
    timing = FormTiming("interrupted", None, None, 1.0, unsteady=50)
    eager, compiled = (
        make_side(name, form=replace(make_form(name, us), timing=timing))
        for name, us in (("eager", walls), ("compiled", warming[:100]))
    )
    assert judge(eager, compiled, ORDER * 10)[0].n == 50
    # Of a run that says more than it timed everything counts, and no note says otherwise.
    sides = [replace(each, form=replace(each.form, timing=replace(timing, unsteady=500))) for each in (eager, compiled)]
    verdict, notes = judge(*sides, ORDER * 10)
    assert verdict.n == 100 and "warming" not in [each.code for each in notes]


def test_a_clock_with_coarse_steps_is_told_and_widens_the_interval():
    random = np.random.default_rng(0)
    for tick, coarse in ((5.0, False), (50.0, True)):
        a, b = (np.round(1000.0 * np.exp(random.normal(0, 0.03, 60)) / tick) * tick for _ in range(2))
        verdict, notes = judge(*make_pair(a, b), ORDER * 6)
        assert any(each.code == "coarse_clock" for each in notes) is coarse
        assert (verdict.ci95[0] < 1 / 1.05 and verdict.ci95[1] > 1.05) is coarse
    # Where every call took the same, nobody knows of a step but that it is no longer than a call.
    verdict, notes = judge(*make_pair((30.0,) * 20, (30.0,) * 20), ORDER * 2)
    assert verdict.ci95 == pytest.approx((0.5, 2.0))
    assert CoarseClock(1.0) in notes


def test_calls_that_remember_widen_the_interval_between_runs():
    """Sides of two runs are resampled in blocks as rounds are."""
    slow = tuple(np.repeat(STEADY, 10) * np.tile((1.0, 1.0001), 50))
    shuffled = tuple(np.random.default_rng(0).permutation(slow))
    ends = [judge(*make_pair(walls, walls), ())[0].ci95 for walls in (slow, shuffled)]
    assert ends[0][1] - ends[0][0] > 2 * (ends[1][1] - ends[1][0])


def test_a_call_that_compiled_is_left_out_of_what_runs_say_apart():
    facts = Diagnostics(calls=tuple(CompilingCall("timed", number, 1, 0, 1e6) for number in range(1, 6)))
    form = make_form("compiled", (1e6,) * 5 + STEADY, during_timing=5, diagnostics=facts)
    verdict, notes = judge(make_side("a", form=make_form("eager", STEADY)), make_side("b", form=form), ())
    assert (verdict.speedup, verdict.n) == (pytest.approx(1.0), 10)
    assert CompiledWhileTimed("b", 5) in notes


def test_the_times_of_several_processes_are_of_all_of_them_as_the_ratio_is():
    verdict, _ = judge_processes(0.5, 0.6, 0.7)
    assert verdict.a_wall_us == pytest.approx(float(np.median(STEADY)), rel=1e-3)
    assert verdict.a_wall_us / verdict.b_wall_us == pytest.approx(verdict.speedup)


def sides_with_starts(factor: float, *, hits: int = 0, fresh: bool = False) -> tuple[Side, Side]:
    """Eager calls of 1 ms; the first took 101 ms, the compiled form's 10 s."""
    facts = CompileFacts(2, 0, 10.0, hits, 0)
    eager = replace(make_form("eager", STEADY), warmup_us=(101_000.0, 1000.0))
    steady = 1000.0 * factor
    warmup_us = (10e6 + steady, steady, steady)
    compiled = replace(make_form("compiled", scaled(factor)), warmup_us=warmup_us, compilation=facts)
    if fresh:
        eager = replace(eager, startups=(Startup("eager", 3.0, (201_000.0, 1000.0), None, None),))
        cold = Startup("compiled_no_cache", 3.0, (20e6 + steady, steady), 2, 0)
        warm = Startup("compiled_warm_cache", 3.0, (2e6 + steady, 1e6 + steady), 2, 2)
        compiled = replace(compiled, startups=(cold, warm))
    return make_side("eager", form=eager), make_side("compiled", form=compiled)


def found_break_even(factor: float, **how: object):
    return break_even_of(*sides_with_starts(factor, **how))


def break_even_of(a: Side, b: Side):
    return find_break_even(a, b, judge(a, b, ORDER)[0])


def test_a_warm_up_has_a_second_end_that_takes_nothing_of_eagers_start_off():
    (each,) = found_break_even(0.5)
    assert (each.startup_us, each.eager_startup_us) == pytest.approx((10e6, 100_000.0), rel=1e-3)
    assert (each.calls, each.calls_at_most) == pytest.approx(((10e6 - 100_000) / 500, 10e6 / 500), rel=1e-3)
    assert each.calls_ci95[0] <= each.calls < each.calls_at_most <= each.calls_ci95[1] * (1 + 1e-6)


def test_a_slower_form_never_pays_and_without_an_established_saving_nothing_is_said():
    (slower,), (same,) = found_break_even(1.5), found_break_even(1.0)
    assert (slower.calls, slower.calls_ci95, slower.never) == (math.inf, None, True)
    assert (same.calls, same.calls_at_most, same.never) == (None, None, False)


def test_each_fresh_start_has_an_answer_of_its_own_and_counts_every_call_until_quiet():
    cold, warm = found_break_even(0.5, fresh=True)
    assert (cold.kind, warm.kind) == ("compiled_no_cache", "compiled_warm_cache")
    assert cold.source == warm.source == "fresh_process" and cold.calls_at_most is warm.calls_at_most is None
    assert (cold.calls, warm.calls) == pytest.approx(((20e6 - 2e5) / 500, (3e6 - 2e5) / 500), rel=1e-3)


@pytest.mark.parametrize(
    ("hits", "empty", "kind"),
    # A cache without these graphs is none only if it was empty.
    [
        *((hits, None, kind) for hits, kind in enumerate(("compiled_no_cache", None, "compiled_warm_cache"))),
        *((0, True, "compiled_no_cache"), (0, False, None)),
    ],
)
def test_a_warm_up_is_called_by_what_the_cache_held(hits: int, empty: bool | None, kind: str | None):
    a, b = sides_with_starts(0.5, hits=hits)
    b = replace(b, form=replace(b.form, compilation=replace(b.form.compilation, cache_was_empty=empty)))
    (each,) = break_even_of(a, b)
    assert (each.kind, each.source) == (kind, "warm_up")


def test_a_start_that_costs_less_than_eagers_pays_at_once():
    a, b = sides_with_starts(0.5)
    (each,) = break_even_of(replace(a, form=replace(a.form, warmup_us=(20e6,))), b)
    # But perhaps not, if eager paid for both.
    assert (each.calls, each.calls_at_most) == (0, pytest.approx(10e6 / 500, rel=1e-3))


def test_two_eager_forms_or_bare_traces_have_no_break_even():
    a, b = sides_with_starts(0.5)
    assert find_break_even(a, a, judge(a, b, ORDER)[0]) == ()
    assert find_break_even(make_side("a"), make_side("b"), judge(a, b, ORDER)[0]) == ()


def test_a_warm_up_at_other_sizes_tells_nothing_of_a_start_but_fresh_processes_do():
    for fresh, answers in ((False, 0), (True, 2)):
        a, b = sides_with_starts(0.5, fresh=fresh)
        compilation = replace(b.form.compilation, diagnostics=Diagnostics(warmed_up_at={"batch_size": 1}))
        assert len(break_even_of(a, replace(b, form=replace(b.form, compilation=compilation)))) == answers


def test_the_range_holds_how_fast_eager_was_in_every_process():
    (single,) = found_break_even(0.5)
    sides = [
        replace(side, form=with_processes(side.form, *map(scaled, factors)))
        for side, factors in zip(sides_with_starts(0.5), ((0.8, 1.0), (0.4, 0.5)), strict=True)
    ]
    (each,) = break_even_of(*sides)
    assert each.calls_ci95 == pytest.approx((single.calls, single.calls_at_most / 0.8), rel=0.01)
    assert each.calls_ci95[0] < each.calls < each.calls_ci95[1]
