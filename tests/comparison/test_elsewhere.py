from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tracekit.comparison.elsewhere import find_other_speed_of_advice, find_other_speeds
from tracekit.model.advice import VerifiedAdvice
from tracekit.model.comparison import Side
from tracekit.model.timing import FormTiming, ProcessTimes

from ..sides import make_analysis, make_cpu_analysis, make_form, make_side


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
    assert told.startswith("eager took 3.3")
    assert "to 4.2" in told
    assert "28 % apart" in told or "29 % apart" in told
    assert "Ratios of calls in one process hold better" in told


def test_of_a_form_that_waits_for_the_host_ratios_do_not_hold_either() -> None:
    (told,) = find_other_speeds(side(4.253, 3.586, idle=True))
    (tried_told,) = find_other_speed_of_advice(side(4.56, idle=True), tried(3.80))
    for sentence in (told, tried_told):
        assert sentence.endswith("It waits for the host: speed-ups of such forms move from process to process too.")
        assert "hold better" not in sentence


def test_processes_that_agree_or_of_which_there_is_one_are_not_mentioned() -> None:
    assert find_other_speeds(side(4.0)) == ()
    assert find_other_speeds(side(4.0, 4.02, 3.99, 4.04)) == ()
    assert find_other_speeds(make_side("trace")) == ()


def test_eager_in_the_process_that_tried_the_advice_is_compared_with_the_runs_own() -> None:
    (told,) = find_other_speed_of_advice(side(4.56), tried(3.80))
    assert "in the run's own process and 3.80 ms in the one that tried the advice" in told
    assert "20 % apart" in told
    assert find_other_speed_of_advice(side(4.56), tried(4.52)) == ()


@pytest.mark.parametrize(("eager_ms", "said"), [(3.80, True), (4.56, False)])
def test_that_stands_among_the_comparisons_warnings(eager_ms: float, said: bool) -> None:
    from tracekit.comparison import compare
    from tracekit.comparison.advice import with_verified

    eager, compiled = side(4.56), make_side("compiled", form=make_form("compiled", walls(3.8, 7)))
    comparison = compare(eager, compiled, ("eager", "compiled") * 40)
    warnings = with_verified(comparison, tried(eager_ms)).warnings
    assert any("tried the advice" in each for each in warnings) == said
