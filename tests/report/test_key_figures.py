from __future__ import annotations

from dataclasses import replace

from tracekit.report.sections.figures import key_figures

from .conftest import timed_comparison


def test_times_beside_a_speed_up_of_several_processes_are_said_to_be_of_the_recorded_one() -> None:
    one = timed_comparison()
    assert "Wall time" in [label for label, _, _ in key_figures(one)]
    several = replace(one, verdict=replace(one.verdict, processes=5))
    assert "Wall time, recorded process" in [label for label, _, _ in key_figures(several)]
