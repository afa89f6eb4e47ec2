from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.report.showing import comparison_markdown, comparison_page, printed

from tracekit.comparison import compare
from tracekit.comparison.findings.cold_start import find_cold_start
from tracekit.model.comparison import Comparison
from tracekit.model.timing import BreakEven
from tracekit.report.composition.summaries import comparison_summary

from ...advised import command_of
from ...sides import STEADY, make_pair, make_settings, scaled

COLD = BreakEven("compiled_no_cache", "fresh_process", 6e7, 6e7, 1e6, 5000.0, (4500.0, 6000.0))
WARM = BreakEven("compiled_warm_cache", "fresh_process", 2e7, 2e7, 1e6, 1500.0, (1400.0, 1700.0), 3, 3)


def started(*starts: BreakEven, scope: str = "transformer") -> Comparison:
    comparison = compare(*make_pair(STEADY, scaled(0.8)), ("eager", "compiled") * 10)
    side = replace(comparison.b, settings=make_settings(scope=scope))
    return replace(comparison, b=side, break_even=starts)


def test_a_dear_start_is_told_with_the_calls_it_takes_and_what_a_cache_makes_of_it():
    finding = find_cold_start(started(COLD, WARM))
    assert (finding.facts["calls"], finding.facts["startup_us"]) == (5000.0, 6e7)
    assert finding.facts["call_saving_us"] == pytest.approx(200, abs=0.1)
    assert (finding.facts["warm"]["startup_us"], finding.facts["warm"]["calls"]) == (2e7, 1500.0)
    assert finding.saving_us is None, "it is no saving of a call"
    assert finding.start_saving_us == pytest.approx(4e7)
    assert finding.facts["warm_was_measured"]
    assert "--scope regional" in command_of(finding)


def test_a_smaller_scope_is_advised_where_the_model_has_one():
    comparison = started(COLD)
    side = replace(comparison.b, settings=make_settings(workload="causal-lm", scope="model"))
    finding = find_cold_start(replace(comparison, b=side))
    assert "--scope regional" in command_of(finding) and finding.facts["can_be_regional"]
    for other in (started(COLD, scope="regional"), replace(comparison, b=replace(side, repeated_parts=()))):
        finding = find_cold_start(other)
        assert (finding.action, finding.facts["can_be_regional"]) == (None, False)


@pytest.mark.parametrize(
    "start",
    [
        replace(COLD, calls=99.0),
        replace(COLD, startup_us=9e6),
        replace(COLD, calls=math.inf),
        replace(COLD, calls=None),
        replace(WARM, calls=5000.0, startup_us=6e7),
    ],
)
def test_a_start_that_pays_soon_or_is_short_or_never_pays_or_is_warm_is_not_told(start: BreakEven):
    assert find_cold_start(started(start)) is None


@pytest.mark.parametrize(
    "starts",
    [
        (COLD,),
        (replace(COLD, source="warm_up"), WARM),
        (COLD, replace(WARM, cache_hits=0)),
        (replace(COLD, kind=None),),
    ],
)
def test_what_a_warm_cache_saves_is_withheld_where_it_was_not_measured(starts: tuple[BreakEven, ...]):
    finding = find_cold_start(started(*starts))
    assert finding.start_saving_us is None
    assert not finding.facts["warm_was_measured"]


def test_a_warm_cache_that_is_no_faster_saves_nothing():
    finding = find_cold_start(started(COLD, replace(WARM, startup_us=7e7)))
    assert finding.start_saving_us == 0


def test_a_saving_of_a_start_is_told_as_one():
    finding = find_cold_start(started(COLD, WARM))
    comparison = replace(started(), findings=(finding,))
    assert "(a warm cache saves 40.0 s of a start)" in comparison_markdown(comparison, None, "tracekit compare")
    shown = printed(comparison_summary(comparison, ()), 200)
    assert "Compiling pays after 5,000 calls (a warm cache saves 40.0 s of a start)" in shown
    assert "A warm cache saved 40.0 s of a start." in comparison_page(comparison, None, "tracekit compare")


def test_each_call_saves_what_the_ratio_within_rounds_says():
    """Medians of a form that switches between two speeds need not differ by the same."""
    comparison = started(COLD, WARM)
    odd = replace(comparison, verdict=replace(comparison.verdict, b_wall_us=1100.0))
    finding = find_cold_start(odd)
    assert finding.facts["call_saving_us"] == pytest.approx(200, abs=0.1)
    assert finding.facts["medians_apart_us"] != pytest.approx(200, abs=10)
