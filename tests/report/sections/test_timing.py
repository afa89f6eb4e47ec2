from msgspec.structs import replace
from tests.report.showing import rows_of
from tests.sides import STEADY, make_environment, make_form, make_pair, make_settings, make_side, scaled

from tracekit.comparison.comparing import compare
from tracekit.comparison.looking import look_at
from tracekit.model.comparison import Comparison
from tracekit.model.run import FormName, UserModel
from tracekit.model.timing import BreakEven, ControlCall, FormTiming, ProcessTimes
from tracekit.numbers import duration
from tracekit.report.composition.one_side import warnings
from tracekit.report.composition.overview import comparison_overview
from tracekit.report.method import how_measured
from tracekit.report.sections.timing import (
    certainty_table,
    pays_after,
    process_table,
    startup_table,
    timing_table,
)
from tracekit.report.words.common import _noise, both_sides, verdict_evidence, verdict_sentence

ORDER: tuple[FormName, ...] = ("eager", "compiled") * 10


def timed(*repeats: float) -> Comparison:
    """Twice as fast, stopped by its budget, repeated in processes with these factors."""
    forms = []
    for name, factor in (("eager", 1.0), ("compiled", 0.5)):
        processes = tuple(
            ProcessTimes(scaled(factor * (each if name == "compiled" else 1.0)), None, (), "budget spent", 2.0)
            for each in repeats
        )
        timing = FormTiming("budget spent", 0.01, 30.0, 31.0, (ControlCall(1, 1000.0, None),), processes)
        form = replace(make_form(name, scaled(factor)), timing=timing, warmup_us=(1e6 * (2 - factor), 1000.0 * factor))
        forms.append(make_side(name, form=form))
    return compare(*forms, ORDER)


def test_compilation_in_a_repeat_withholds_the_verdict_in_words_too():
    told = timed(1.0, 1.0)
    sides = []
    for side in (told.a, told.b):
        compiled = tuple(replace(each, during_timing=1) for each in side.form.timing.processes)
        sides.append(replace(side, form=replace(side.form, timing=replace(side.form.timing, processes=compiled))))
    one = compare(told.a, sides[1], ORDER)
    assert one.verdict.result == "inconclusive"
    assert verdict_sentence(one) == "Recompiles inside timed calls (compiled): no verdict."
    assert verdict_sentence(compare(*sides, ORDER)).startswith("Recompiles inside timed calls (eager and compiled)")
    assert "recompiled_during_timing" in {each.code for each in one.findings}
    # Of repeats nobody knows which rounds those were.
    assert "without the rounds" not in verdict_evidence(one)
    assert warnings(look_at(one.b))[0].startswith("compiled: 2 compilations inside 30 timed calls")


def test_the_table_tells_why_timing_stopped_and_what_was_aimed_at():
    told = rows_of(timing_table(both_sides(timed())))
    assert told["Stopped because"] == ("time budget reached",) * 2
    assert told["Target"] == ("±1 % within 30 s",) * 2
    assert told["Control calls"] == ("1", "1")
    assert told["Median by device events"] == ("—", "—")


def test_without_enough_controls_odd_calls_are_compared_with_even_ones():
    comparison = compare(*make_pair(STEADY, scaled(0.5)), ORDER)
    assert rows_of(certainty_table(comparison))["Rounds"] == ("10",)
    for each, how in ((comparison, "odd against even"), (timed(), "a second call of the same variant")):
        assert how in dict(how_measured(both_sides(each), (), None, each, drawn=False))["Speed-up"]


def test_the_verdicts_numbers_are_all_there_and_each_of_several_processes_has_a_row():
    told = rows_of(certainty_table(timed()))
    assert (told["Rounds"], told["Processes"]) == (("10",), ("1",))
    assert told["Smallest change that counts"] == ("2.00 %",)
    assert process_table(timed()) is None
    told = rows_of(process_table(timed(1.0, 1.25)))
    assert list(told) == ["recorded", "1", "2"]
    assert told["2"][-1] == "1.60×"


def test_the_evidence_says_how_many_rounds_and_why_no_more():
    one = verdict_evidence(timed())
    assert "10 interleaved rounds, profiler off" in one and "asked" not in one, "its interval is as asked"
    several = verdict_evidence(timed(1.02, 0.98))
    assert "3 processes" in several and "30 interleaved rounds in all, profiler off" in several
    assert "asked" not in several, "of few processes no interval is told"
    assert "target ±1 %" in verdict_evidence(timed(*(1.02, 0.98) * 4))
    assert "mean call of all" not in one


def test_of_several_processes_the_answer_has_the_calls_that_all_tables_have_and_the_evidence_the_mean() -> None:
    comparison = timed(1.2, 1.3)
    verdict, overview = comparison.verdict, comparison_overview(comparison)
    assert (verdict.a_wall_us, verdict.b_wall_us) != (comparison.a.wall_us, comparison.b.wall_us)
    assert overview.walls == "recorded process: 1.00 ms → 500.1 µs per call"
    mean = f"{duration(verdict.a_wall_us)} → {duration(verdict.b_wall_us)}"
    assert f"mean call of all: {mean}" in verdict_evidence(comparison)
    assert comparison_overview(timed()).walls == "1.00 ms → 500.1 µs per call"


def test_bare_traces_have_neither_table():
    bare = compare(make_side("a"), make_side("b"))
    assert timing_table(both_sides(bare)) is None
    assert [certainty_table(bare), process_table(bare), startup_table(bare)] == [None] * 3


def test_an_estimate_from_the_warm_up_says_that_it_is_one():
    comparison = timed()
    table = startup_table(comparison)
    assert "--startup measures each start" in table.note
    assert "the speed-up's CI. " in table.note
    assert "eager's process spread" in startup_table(timed(1.02, 0.98)).note
    assert [row[0] for row in table.rows] == ["eager", "compiled, no cache"]


def test_of_a_program_no_start_in_a_new_process_is_advised_and_compiled_steps_came_first():
    comparison, own = timed(), UserModel(in_program=True, as_script=True)
    note = startup_table(replace(comparison, b=replace(comparison.b, settings=make_settings(own=own)))).note
    assert "--startup" not in note and "Compiled ones came first" in note and "eager ran first" not in note


def test_break_even_is_told_in_calls_never_or_not_at_all():
    each = BreakEven("compiled_no_cache", "fresh_process", 1e6, 1e6, 0.0, 1234.2, (1100.0, 1400.5))
    assert pays_after(each) == "1,100 to 1,410 calls"
    assert pays_after(replace(each, calls=float("inf"), calls_ci95=None)) == "never"
    assert pays_after(replace(each, calls=None, calls_ci95=None)) == "—"
    assert pays_after(replace(each, calls=0.0)) == "the first call"


def test_runs_of_several_processes_say_of_how_many_their_ratio_is():
    several, one = timed(0.5, 0.5).b, compare(*make_pair(STEADY, scaled(0.5)), ()).a
    comparison = compare(one, several)
    assert "medians of 1 and 3 processes" in verdict_evidence(comparison)
    told = rows_of(certainty_table(comparison))
    assert told["Processes, fewer side"] == ("1",)
    assert told["Calls, fewer side"] == ("10",)


def test_noise_is_said_with_one_figure():
    assert [_noise(each, 2.0, None) for each in (0.0945, 0.0218, 0.00001)] == [
        f"noise floor {told}" for told in ("9 %", "2 %", "below 0.01 %")
    ]


def test_a_high_noise_floor_is_no_figure_and_names_the_load():
    machine = make_environment(host_load=8.04, logical_cores=2)
    assert _noise(1.7, 1.2, machine) == "noise floor over 10 %: host load 8.0 on 2 cores"
    idle = make_environment(host_load=0.3, logical_cores=2)
    assert _noise(0.2, 1.2, None) == _noise(0.2, 1.2, idle) == "noise floor over 10 %: use a quieter machine"
    assert (_noise(0.031, 1.2, machine), _noise(0.031, 1.01, machine)) == (
        "noise floor 3 %",
        "noise floor 3 % (more than the change)",
    )


def test_a_tie_is_told_from_what_is_not_known():
    told = {}
    for name, ci95 in (("tie", (0.996, 1.009)), ("unknown", (0.002, 27.128)), ("below", (1.031, 1.034))):
        comparison = compare(*make_pair(STEADY, STEADY), ORDER)
        verdict = replace(comparison.verdict, ci95=ci95, speedup=1.0, result="inconclusive", noise_floor=0.04)
        comparison = replace(comparison, verdict=verdict)
        told[name] = (comparison_overview(comparison).headline, verdict_sentence(comparison))
    assert told["tie"] == (
        "no difference: within 1 % in this process",
        "Compiled ties with eager: any difference is within 1 % in this process.",
    )
    assert told["unknown"] == (
        "not enough to tell: 0.0020-27.2× as fast",
        "Not enough to tell eager from compiled: 0.0020-27.2× as fast.",
    )
    assert told["below"] == (
        "no difference beyond 4 %",
        "Compiled differs from eager by less than 4 %.",
    )
    # What a side differs by from itself, where that is not small, nobody can tell.
    louder = replace(comparison, verdict=replace(comparison.verdict, ci95=(1.08, 1.12), noise_floor=0.3))
    louder = replace(louder, verdict=replace(louder.verdict, speedup=1.1, result="inconclusive"))
    assert comparison_overview(louder).headline == "not enough to tell: 1.08-1.12× as fast"
    # What differs by more from itself ties with nothing.
    noisy = replace(comparison, verdict=replace(comparison.verdict, ci95=(0.99, 1.01), noise_floor=0.15))
    noisy = replace(noisy, verdict=replace(noisy.verdict, speedup=1.0, result="inconclusive"))
    assert comparison_overview(noisy).headline.startswith("not enough to tell: ")


def test_of_few_independent_rounds_nothing_small_is_told_and_the_interval_once():
    comparison = compare(*make_pair(STEADY, STEADY), ORDER)
    verdict = replace(comparison.verdict, ci95=(1.05, 1.08), result="inconclusive", next_process95=None)
    few = replace(verdict, stretches=6.3, decided95=(0.9, 1.25))
    told = comparison_overview(replace(comparison, verdict=few))
    assert (told.headline, told.spread) == ("not enough to tell: 0.90-1.25× as fast", "")
    assert verdict_sentence(replace(comparison, verdict=few)).endswith("0.90-1.25× as fast.")
    tie = comparison_overview(replace(comparison, verdict=replace(few, ci95=(0.996, 1.004))))
    assert tie.headline == told.headline


def test_the_ratio_of_the_medians_stands_beside_a_mean_that_differs_and_so_do_independent_rounds():
    comparison = compare(*make_pair(STEADY, scaled(0.5)), ORDER)
    assert "Mean ratio of 10 interleaved rounds, profiler off" in verdict_evidence(comparison)
    verdict = replace(comparison.verdict, speedup=1.9, n=98, stretches=20.9)
    told = verdict_evidence(replace(comparison, verdict=verdict))
    assert "Mean ratio of 98 interleaved rounds (20 independent; ratio of medians 2.00×), profiler off" in told
