from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tracekit.comparison.judging.process_spread import find_other_speed_of_advice, find_other_speeds
from tracekit.model.advice import VerifiedAdvice
from tracekit.model.comparison import Side
from tracekit.model.timing import FormTiming, ProcessTimes

from ...sides import make_analysis, make_cpu_analysis, make_form, make_side


def walls(median_ms: float, seed: int) -> tuple[float, ...]:
    return tuple(np.random.default_rng(seed).normal(median_ms * 1e3, median_ms * 10, 40))


def side(own_ms: float, *others_ms: float, idle: bool = False) -> Side:
    """The GPU is idle for most of the call, or nobody knows."""
    processes = tuple(
        ProcessTimes(walls(ms, seed), None, (), "target reached", 1.0) for seed, ms in enumerate(others_ms, 1)
    )
    timing = FormTiming("target reached", None, None, 1.0, (), processes)
    analysis = make_analysis() if idle else make_cpu_analysis()
    return make_side("eager", analysis, form=replace(make_form("eager", walls(own_ms, 0)), timing=timing))


def tried(eager_ms: float) -> VerifiedAdvice:
    return VerifiedAdvice("code", "try it", 1.0, 1.0, eager_ms * 1e3, 1.2, None, 20, None)


def test_processes_of_other_speeds_are_said_with_what_holds_all_the_same() -> None:
    (told,) = find_other_speeds(side(4.253, 3.586, 3.596, 3.437, 3.542, 3.309))
    assert (told.code, told.subject, told.facts["waits_for_host"]) == ("process_spread", "eager", False)
    assert told.facts["fastest_us"] == pytest.approx(3309, rel=0.01)
    assert told.facts["slowest_us"] == pytest.approx(4253, rel=0.01)


def test_of_a_form_that_waits_for_the_host_ratios_do_not_hold_either() -> None:
    (told,) = find_other_speeds(side(4.253, 3.586, idle=True))
    (tried_told,) = find_other_speed_of_advice(side(4.56, idle=True), tried(3.80))
    assert (told.code, tried_told.code) == ("process_spread", "advice_process_spread")
    assert told.facts["waits_for_host"] and tried_told.facts["waits_for_host"]


def test_processes_that_agree_or_of_which_there_is_one_are_not_mentioned() -> None:
    assert find_other_speeds(side(4.0)) == ()
    assert find_other_speeds(side(4.0, 4.02, 3.99, 4.04)) == ()
    assert find_other_speeds(make_side("trace")) == ()


def test_eager_in_the_process_that_tried_the_advice_is_compared_with_the_runs_own() -> None:
    (told,) = find_other_speed_of_advice(side(4.56), tried(3.80))
    assert (told.code, told.subject) == ("advice_process_spread", "eager")
    assert told.facts["own_us"] == pytest.approx(4560, rel=0.01)
    assert told.facts["advised_us"] == 3800.0
    assert find_other_speed_of_advice(side(4.56), tried(4.52)) == ()


@pytest.mark.parametrize(("eager_ms", "said"), [(3.80, True), (4.56, False)])
def test_that_stands_among_the_comparisons_warnings(eager_ms: float, said: bool) -> None:
    from tracekit.comparison import compare
    from tracekit.comparison.judging.advice import with_verified

    eager, compiled = side(4.56), make_side("compiled", form=make_form("compiled", walls(3.8, 7)))
    comparison = compare(eager, compiled, ("eager", "compiled") * 40)
    notes = with_verified(comparison, tried(eager_ms)).notes
    assert any(each.code == "advice_process_spread" for each in notes) == said
