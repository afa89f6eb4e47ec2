import pytest
from msgspec.structs import replace
from tests.sides import COMPILED, ORDER, make_analysis, make_cpu_analysis, make_form, make_pair, make_side, scaled

from tracekit.comparison.comparing import compare
from tracekit.comparison.waiting import idle_saving
from tracekit.model.comparison import Deltas
from tracekit.numbers import MISSING
from tracekit.report.sections.figures import comparison_figures
from tracekit.statements.health import Truncated
from tracekit.statements.notes.recordings import DamagedRecording, NoRichRecording


def test_deltas_are_per_step_and_idle_is_unprofiled():
    comparison = compare(*make_pair(scaled(1.5), scaled(1.0)), ORDER)
    deltas = comparison.deltas
    assert (deltas.kernels, deltas.launches) == (22 - 37, 22 - 37)
    assert deltas.idle_us == pytest.approx((1000.25 - 709) - (1500.375 - 863))


def test_a_cpu_run_has_a_verdict_and_no_gpu_figures():
    a = make_side("eager", make_cpu_analysis(), make_form("eager", scaled(20)))
    b = make_side("compiled", make_cpu_analysis(fused=12), make_form("compiled", scaled(15)))
    comparison = compare(a, b, ORDER)
    assert comparison.verdict.result == "faster"
    assert (comparison.groups, comparison.waterfall, comparison.coverage) == ((), None, None)
    assert comparison.deltas == Deltas()
    assert [finding.code for finding in comparison.findings] == ["profiler_distortion"]
    assert not comparison.findings[0].statement.on_gpu


def test_damage_of_a_rich_recording_is_said_of_its_side():
    damage = Truncated(1)
    a, b = make_pair(scaled(1.5), scaled(1.1))
    sides = replace(a, rich=make_analysis(health=[damage])), replace(b, rich=make_analysis())
    assert sides[0].health == (Truncated(1, recording="rich"),)
    assert DamagedRecording("eager", Truncated(1, recording="rich")) in compare(*sides).notes


def test_a_rich_recording_of_one_side_alone_divides_neither():
    light = make_analysis(causes={"device": 0.5, "unattributed": 0.5})
    a, b = make_side("eager", light, make_form()), make_side("compiled", light, make_form("compiled"))
    found = compare(replace(a, rich=make_analysis(causes={"python": 1.0})), b)
    assert all(part.delta_us == 0 for part in found.waterfall.parts)
    assert NoRichRecording("compiled") in found.notes


def test_nothing_is_claimed_of_a_step_against_a_whole_recording():
    found = compare(make_side("a", make_analysis(window="whole")), make_side("b", make_analysis(COMPILED)))
    assert (found.groups, found.coverage, found.findings, found.waterfall) == ((), None, (), None)
    assert {row[3] for row in comparison_figures(found).rows} == {MISSING}


def test_idle_time_that_recording_lengthened_saves_what_the_call_has_of_it():
    # 400 us of idle time a step were recorded, the unprofiled call of 1000.25 us holds 863 us of work.
    side = make_side("b", make_analysis(), make_form("compiled", scaled(1.0)))
    assert side.unprofiled_idle_us == pytest.approx(137, abs=0.5)
    assert idle_saving(side, 200.0) == pytest.approx(200 * 137 / 400, rel=1e-2)
    assert idle_saving(side, 4000.0) == side.unprofiled_idle_us
    # Where the call has more, or its time is not known, it saves what was recorded.
    for form in (make_form("compiled", scaled(2.0)), None):
        assert idle_saving(make_side("b", make_analysis(), form), 200.0) == 200
    # Of several GPUs it is that of one, and never more than the window.
    side = make_side("b", make_analysis(devices=2))
    assert (idle_saving(side, 300.0), idle_saving(side, 1e9)) == (150, side.span_us)
