from __future__ import annotations

from dataclasses import replace

import pytest

from tracekit.comparison import compare
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.model.apart import ApartChange
from tracekit.model.comparison import Comparison

from ...sides import BUSY, STEADY, make_analysis, make_environment, make_form, make_settings, make_side, scaled


def two_runs(factor: float, **changes: object) -> Comparison:
    """Runs of two processes; calls of the second take `factor` times as long."""
    a, b = (
        replace(make_side(name, make_analysis(BUSY), make_form("compiled", us)), path=f"traces/{name}/x.json.gz")
        for name, us in (("base", STEADY), ("new", scaled(factor)))
    )
    return compare(a, replace(b, **changes))  # type: ignore[arg-type]


def apart(factor: float, **changes: object) -> ApartChange | None:
    return two_runs(factor, **changes).verdict.apart


def test_the_range_is_what_a_gate_holds_the_change_to():
    comparison = two_runs(1.2)
    change = comparison.verdict.apart
    (gate,) = check(comparison, parse_conditions("wall<=+3%")).checked
    assert change is not None and gate.low is not None and gate.high is not None
    assert (change.low, change.high) == pytest.approx((1 + gate.low, 1 + gate.high))
    assert change.ratio == pytest.approx(1.2, rel=1e-3)
    assert change.assumed is not None and "±2 %" in change.assumed


@pytest.mark.parametrize(("factor", "beyond"), [(1.01, False), (0.99, False), (1.1, True), (0.9, True)])
def test_a_change_counts_beyond_what_processes_are_assumed_to_differ_by(factor: float, beyond: bool):
    change = apart(factor)
    assert change is not None
    assert change.beyond is beyond


def test_a_few_microseconds_are_held_against_nobody():
    # 30 % of 10 us, clear of the interval and under the least that a gate counts.
    short = tuple(us / 100 for us in STEADY)
    a, b = two_runs(1.0).a, two_runs(1.0).b
    forms = (make_form("compiled", short), make_form("compiled", tuple(1.3 * us for us in short)))
    sides = (replace(side, form=form) for side, form in zip((a, b), forms, strict=True))
    change = compare(*sides).verdict.apart
    assert change is not None
    assert change.low > 1
    assert not change.beyond


def test_of_other_work_another_gpu_and_times_that_hold_compilation_nothing_is_said():
    assert apart(1.5, settings=make_settings(batch_size=4)) is None
    assert apart(1.5, environment=make_environment(gpu="NVIDIA A100")) is None
    assert apart(1.5, form=make_form("compiled", scaled(1.5), during_timing=1)) is None


def test_forms_of_one_process_have_a_verdict_in_its_place():
    a = replace(two_runs(1.5).a, form=make_form("eager", STEADY))
    verdict = compare(a, two_runs(1.5).b, ("eager", "compiled") * 10).verdict
    assert (verdict.result, verdict.apart) == ("slower", None)
    assert verdict.established
