from __future__ import annotations

from dataclasses import replace

import pytest

from tracekit.comparison import compare
from tracekit.comparison.judging.advice import judge_advice, top_advice, with_verified
from tracekit.model.action import Action
from tracekit.model.comparison import Comparison, Finding
from tracekit.report.sections.findings import finding_notes

from ...sides import STEADY, make_pair, scaled


def finding(code: str, saving_us: float | None, **changes: str) -> Finding:
    return Finding(code, "warning", {}, saving_us, Action("run_again", f"try {code}"), changes=changes)


def advised(*findings: Finding) -> Comparison:
    return replace(compare(*make_pair(STEADY, scaled(0.9)), ("eager", "compiled") * 10), findings=findings)


GRAPHS = finding("launch_bound", 300.0, mode="reduce-overhead")
SCOPE = finding("uncompiled_component", 500.0, scope="all")


def test_the_advice_that_promises_most_is_tried():
    assert top_advice(advised(GRAPHS, SCOPE)) is SCOPE


def test_advice_that_is_no_other_run_or_promises_nothing_is_not_tried():
    assert top_advice(advised(finding("lines", 900.0), finding("again", None, dynamic="True"))) is None


def test_what_was_measured_stands_beside_what_was_predicted():
    verified = judge_advice(advised(GRAPHS), GRAPHS, STEADY, scaled(0.5), 12.5)
    assert verified.predicted_us == pytest.approx(900.225 - 300)
    assert verified.measured_us == pytest.approx(500.125)
    assert verified.speedup == pytest.approx(2.0)
    assert verified.ci95[0] <= verified.speedup <= verified.ci95[1]
    assert (verified.rounds, verified.command, verified.compile_seconds) == (10, "try launch_bound", 12.5)


def test_it_is_told_at_the_finding_that_gave_the_advice():
    comparison = advised(GRAPHS, SCOPE)
    verified = judge_advice(comparison, SCOPE, STEADY, scaled(0.5), None)
    told = with_verified(comparison, verified)
    assert [each.verified for each in told.findings] == [None, verified]
    (note,) = finding_notes(told.findings[1])
    assert note.startswith("Tried in a fresh process: 2.00× as fast as eager there (95 % interval 2.000 to 2.000, 10")
    assert "), estimated up to 2.50×; 500.1 µs a call, eager 1.00 ms. Processes differ" in note
    assert not list(finding_notes(told.findings[0]))


def test_a_run_that_verified_nothing_leaves_its_findings_alone():
    comparison = advised(GRAPHS)
    assert with_verified(comparison, None) is comparison


def test_advice_that_was_tried_in_few_rounds_has_no_interval():
    for rounds in (1, 4):
        verified = judge_advice(advised(GRAPHS), GRAPHS, STEADY[:rounds], scaled(0.5)[:rounds], None)
        assert (verified.speedup, verified.ci95, verified.rounds) == (pytest.approx(2.0), None, rounds)
    (note,) = finding_notes(replace(GRAPHS, verified=verified))
    assert "2.00× as fast as eager there (too few for an interval, 4 rounds)" in note
    assert judge_advice(advised(GRAPHS), GRAPHS, STEADY[:5], scaled(0.5)[:5], None).ci95 is not None


def test_advice_that_compiled_while_it_was_timed_says_so():
    verified = judge_advice(advised(GRAPHS), GRAPHS, STEADY, scaled(0.5), None, 3)
    (note,) = finding_notes(replace(GRAPHS, verified=verified))
    assert note.endswith(" 3 compilations ran inside the timed calls: these times are not of compiled code alone.")


def test_what_was_predicted_and_what_was_measured_are_both_speed_ups_over_eager():
    # The process that tried it ran everything a fifth faster: its times say nothing beside the run's own.
    comparison = advised(SCOPE)
    verified = judge_advice(comparison, SCOPE, scaled(0.8), scaled(0.4), None)
    assert verified.measured_us < verified.predicted_us + 1
    speedup, wall_us = comparison.verdict.speedup, comparison.verdict.b_wall_us
    assert speedup is not None and wall_us is not None and SCOPE.saving_us is not None
    assert verified.predicted_speedup == pytest.approx(speedup * wall_us / (wall_us - SCOPE.saving_us))
    assert verified.speedup == pytest.approx(2.0)
    old = replace(verified, predicted_speedup=None)
    (told,) = (each.verified for each in with_verified(comparison, old).findings)
    assert told is not None and told.predicted_speedup == verified.predicted_speedup
