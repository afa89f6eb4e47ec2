from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tracekit.comparison import compare
from tracekit.model.analysis import HealthFinding
from tracekit.model.note import Note
from tracekit.numbers import MISSING
from tracekit.report.sections.figures import overview_table

from ..sides import COMPILED, STEADY, make_analysis, make_cpu_analysis, make_form, make_pair, make_side, scaled


def test_group_changes_add_up_to_the_change_of_busy_time():
    comparison = compare(*make_pair(scaled(1.5), scaled(1.0)), ("eager", "compiled") * 10)
    assert comparison.deltas.busy_us == pytest.approx(math.fsum(group.delta_us for group in comparison.groups))
    overlap = next(part for part in comparison.waterfall.parts if part.label == "overlap_correction")
    assert overlap.delta_us == pytest.approx(0, abs=1e-9)


def test_deltas_are_per_step_and_idle_is_unprofiled():
    comparison = compare(*make_pair(scaled(1.5), scaled(1.0)), ("eager", "compiled") * 10)
    deltas = comparison.deltas
    assert (deltas.kernels, deltas.launches) == (22 - 37, 22 - 37)
    assert deltas.idle_us == pytest.approx((1000.25 - 709) - (1500.375 - 863))


def test_bare_traces_take_idle_time_as_recorded():
    b = make_side("b", make_analysis(COMPILED, idle_us=300))
    assert compare(make_side("a"), b).deltas.idle_us == pytest.approx((300 - 800) / 2)


def test_a_cpu_run_has_a_verdict_and_no_gpu_figures():
    a = make_side("eager", make_cpu_analysis(), make_form("eager", scaled(20)))
    b = make_side("compiled", make_cpu_analysis(fused=12), make_form("compiled", scaled(15)))
    comparison = compare(a, b, ("eager", "compiled") * 10)
    assert comparison.verdict.result == "faster"
    assert comparison.groups == ()
    assert comparison.waterfall is None
    assert comparison.coverage is None
    deltas = comparison.deltas
    assert (deltas.kernels, deltas.launches, deltas.busy_us, deltas.idle_us) == (None,) * 4
    assert [finding.code for finding in comparison.findings] == ["profiler_distortion"]
    assert not comparison.findings[0].facts["on_gpu"]


def test_a_side_compared_with_itself_changes_nothing():
    side = make_side("eager", form=make_form("eager", STEADY))
    comparison = compare(side, side)
    assert comparison.verdict.result == "inconclusive"
    assert {group.kind for group in comparison.groups} == {"unchanged"}
    assert all(group.delta_us == 0 for group in comparison.groups)


def test_damage_of_a_rich_recording_is_said_of_its_side():
    damage = HealthFinding("truncated", "error", 1)
    a, b = make_pair(scaled(1.5), scaled(1.1))
    sides = replace(a, rich=make_analysis(health=[damage])), replace(b, rich=make_analysis())
    assert sides[0].health == (HealthFinding("truncated", "error", 1, {"recording": "rich"}),)
    told = [(each.code, each.facts.get("health")) for each in compare(*sides).notes]
    assert ("damaged_recording", "truncated") in told


def test_a_rich_recording_of_one_side_alone_divides_neither():
    light = make_analysis(causes={"device": 0.5, "unattributed": 0.5})
    a, b = make_side("eager", light, make_form()), make_side("compiled", light, make_form("compiled"))
    found = compare(replace(a, rich=make_analysis(causes={"python": 1.0})), b)
    assert all(part.delta_us == 0 for part in found.waterfall.parts)
    assert Note("no_rich_recording", subject="compiled") in found.notes


def test_nothing_is_claimed_of_a_step_against_a_whole_recording():
    found = compare(make_side("a", make_analysis(window="whole")), make_side("b", make_analysis(COMPILED)))
    assert (found.groups, found.coverage, found.findings, found.waterfall) == ((), None, (), None)
    assert overview_changes(found) == {MISSING}


def overview_changes(comparison):
    return {row[3] for row in overview_table(comparison).rows}
