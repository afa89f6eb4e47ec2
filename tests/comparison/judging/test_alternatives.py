from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from tests.sides import ORDER, STEADY, make_environment, make_form, make_pair, make_settings, make_side, scaled

from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.alternatives import (
    find_differences,
    find_fastest,
    judge_advice,
    name_ways,
    set_beside,
    top_advice,
    with_verified,
)
from tracekit.model.comparison import Comparison, Finding, Verdict
from tracekit.model.run import RankOfRun
from tracekit.report.sections.findings import finding_notes
from tracekit.statements.advice import RunAgain
from tracekit.statements.notes.work import PackageDiffers

PATHS = ("one", "other")


def found(eager: float, compiled: float) -> Comparison:
    return compare(*make_pair(scaled(eager), scaled(compiled)), ORDER)


def judged(speedup: float, low: float, high: float, least: float = 0.0, result: str = "faster") -> Comparison:
    verdict = Verdict(result, speedup, (low, high), 0.01, 1000.0, 1000.0 / speedup, least_change=least)
    return replace(found(1.0, 1 / speedup), verdict=verdict)


@pytest.mark.parametrize(
    ("ways", "names"),
    [
        ([{"mode": "default"}, {"mode": "reduce-overhead"}], ("default", "reduce-overhead")),
        ([{"scope": "all"}, {"scope": "vae", "fullgraph": False}], ("all, fullgraph on", "vae, fullgraph off")),
        ([{"dynamic": None}, {"dynamic": True}], ("dynamic not set", "dynamic on")),
        # Runs that differ in nothing are named by their folders.
        ([{}, {}], PATHS),
    ],
)
def test_runs_are_named_by_what_they_differ_in(ways: list[dict[str, object]], names: tuple[str, ...]) -> None:
    assert name_ways([make_settings(**way) for way in ways], PATHS) == names


def test_other_software_is_told() -> None:
    one = make_side("eager", form=make_form())
    newer = replace(one, environment=make_environment(packages={"torch": "2.14.0", "triton": "3.7.0"}))
    notes = find_differences([one, newer], PATHS)
    assert notes == (PackageDiffers("torch", "2.13.0", "2.14.0", a_name="one", b_name="other"),)
    beside = set_beside([found(1.5, 1), found(1.5, 1)], PATHS, notes)
    assert (beside.alike, len(beside.sides), beside.notes[0]) == (False, 4, notes[0])


def test_the_fastest_is_the_largest_speed_up_over_its_own_eager_form_beyond_what_processes_differ_by() -> None:
    assert find_fastest([found(1.5, 1.0), found(1.5, 0.5), found(1.5, 1.2)]) == (1,)
    assert find_fastest([found(1.0, 1.0), found(1.0, 1.5)]) == ()
    # 2.0 and 2.1 times as fast; intervals are narrow.
    assert find_fastest([found(1.0, 0.5), found(1.0, 1 / 2.1)]) == (1,)
    # The same speed-ups, but eager code took 10 % longer in one process.
    assert find_fastest([found(1.0, 0.5), found(1.1, 1.1 / 2.1)]) == (0, 1)


@pytest.mark.parametrize(
    ("best", "other", "fastest"),
    [
        # From 1.8 down to 1.7 is room, from 2.0 down to 1.7 more: the interval's low end decides.
        ((2.0, 1.8, 2.2), (1.75, 1.7, 1.79), (0, 1)),
        ((2.0, 1.8, 2.2), (1.75, 1.7, 1.76), (0,)),
        # Processes are taken to differ by two percent at least.
        ((2.0, 2.0, 2.0), (1.965, 1.965, 1.965), (0, 1)),
        ((2.0, 2.0, 2.0), (1.955, 1.955, 1.955), (0,)),
        # What a run says a change must exceed is no difference either.
        ((2.0, 2.0, 2.0), (1.9, 1.9, 1.9, 0.03), (0,)),
        ((2.0, 2.0, 2.0), (1.9, 1.9, 1.9, 0.06), (0, 1)),
    ],
)
def test_two_differ_where_there_is_room_between_their_intervals(best, other, fastest) -> None:
    assert find_fastest([judged(*best), judged(*other)]) == fastest


def test_an_undecided_form_whose_interval_reaches_the_leader_cannot_be_told_from_it() -> None:
    wide, narrow = judged(1.061, 0.96, 1.12, result="inconclusive"), judged(1.042, 1.04, 1.044)
    beside = set_beside([wide, narrow], PATHS, ())
    assert (beside.fastest, beside.leader, beside.not_judged) == ((0, 1), 1, ())
    assert find_fastest([judged(1.0, 0.99, 1.01, result="inconclusive"), judged(1.5, 1.49, 1.51)]) == (1,)
    # Nobody leads where nothing is certain.
    assert find_fastest([wide, wide]) == ()


def test_a_form_that_compiled_inside_its_timed_calls_is_not_judged() -> None:
    a, b = make_pair(scaled(1.0), scaled(0.4))
    compiled = compare(a, replace(b, form=make_form("compiled", scaled(0.4), during_timing=1)), ORDER)
    beside = set_beside([found(1.0, 0.5), compiled], PATHS, ())
    assert (beside.fastest, beside.leader, beside.not_judged) == ((0,), 0, (1,))
    few = compare(*make_pair(scaled(1.0)[:3], scaled(0.4)[:3]), ORDER[:6])
    assert set_beside([found(1.0, 0.5), few], PATHS, ()).not_judged == (1,)


def test_eager_code_is_held_to_five_percent_also_where_labels_are_the_same() -> None:
    for factor, notes in ((1.04, 0), (1.07, 1), (1.4, 1)):
        assert len(set_beside([found(1.0, 0.5), found(factor, 0.5)], PATHS, ()).notes) == notes
    both = zip((found(1.0, 0.5), found(1.2, 0.5)), ("default", "regional"), strict=True)
    (note,) = set_beside([replace(each, b=replace(each.b, label=name)) for each, name in both], PATHS, ()).notes
    assert note.code == "eager_differs_between_runs"
    ranks = tuple(RankOfRun(rank, "host", None, None, ()) for rank in (0, 1))
    of_ranks = [replace(each, b=replace(each.b, ranks=ranks)) for each in (found(1.0, 0.5), found(1.0, 0.6))]
    assert [each.code for each in set_beside(of_ranks, PATHS, ()).notes] == ["first_rank_alone"]
    assert note.facts == {"slowest": "regional", "fastest": "default", "ratio": pytest.approx(1.2)}


def finding(code: str, saving_us: float | None, **changes: str) -> Finding:
    return Finding(SimpleNamespace(code=code), saving_us, RunAgain(f"try {code}"), changes=changes)


def advised(*findings: Finding) -> Comparison:
    return replace(found(1.0, 0.9), findings=findings)


GRAPHS = finding("launch_bound", 300.0, mode="reduce-overhead")
SCOPE = finding("uncompiled_component", 500.0, scope="all")


def test_what_was_measured_stands_beside_what_was_predicted_at_the_finding_that_gave_the_advice() -> None:
    comparison = advised(GRAPHS, SCOPE)
    # That which promises most is tried, if it is another run.
    assert top_advice(comparison) is SCOPE
    assert top_advice(advised(finding("lines", 900.0), finding("again", None, dynamic="True"))) is None
    verified = judge_advice(comparison, SCOPE, STEADY, scaled(0.5), 12.5)
    assert verified.during_timing == 0
    assert (verified.predicted_us, verified.measured_us) == (pytest.approx(400.225), pytest.approx(500.125))
    assert verified.speedup == pytest.approx(2.0)
    assert verified.ci95 is not None and verified.ci95[0] <= verified.speedup <= verified.ci95[1]
    assert (verified.rounds, verified.command, verified.compile_seconds) == (10, "try uncompiled_component", 12.5)
    findings = with_verified(comparison, verified).findings
    assert [(each.verified, len(finding_notes(each))) for each in findings] == [(None, 0), (verified, 1)]
    # The least that was estimated, beside what was measured.
    assert "400.2 µs" in finding_notes(findings[1])[0]
    assert with_verified(comparison, None) is comparison


def test_advice_that_was_tried_in_few_rounds_has_no_interval_and_what_compiled_meanwhile_is_kept() -> None:
    for rounds in (1, 4, 5):
        verified = judge_advice(advised(GRAPHS), GRAPHS, STEADY[:rounds], scaled(0.5)[:rounds], None, 3)
        assert (verified.speedup, verified.rounds, verified.during_timing) == (pytest.approx(2.0), rounds, 3)
        assert (verified.ci95 is None) == (rounds < 5)


def test_what_was_predicted_and_what_was_measured_are_both_speed_ups_over_eager() -> None:
    # The process that tried it ran everything a fifth faster: its times say nothing beside the run's own.
    comparison = advised(SCOPE)
    verified = judge_advice(comparison, SCOPE, scaled(0.8), scaled(0.4), None)
    assert verified.measured_us < verified.predicted_us + 1
    speedup, wall_us = comparison.verdict.speedup, comparison.verdict.b_wall_us
    assert verified.predicted_speedup == pytest.approx(speedup * wall_us / (wall_us - SCOPE.saving_us))
    assert verified.speedup == pytest.approx(2.0)
    old = replace(verified, predicted_speedup=None)
    (told,) = (each.verified for each in with_verified(comparison, old).findings)
    assert told.predicted_speedup == verified.predicted_speedup
    # By another rule than the finding's own, before it was mended.
    other = replace(verified, predicted_us=1.0, predicted_speedup=999.0)
    assert [each.verified for each in with_verified(comparison, other).findings] == [verified]
