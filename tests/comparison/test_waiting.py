from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sides import make_analysis, make_form, make_side, scaled

from tracekit.comparison.waiting import idle_saving


def test_idle_time_that_recording_lengthened_saves_what_the_call_has_of_it():
    # 400 us of idle time a step were recorded, the unprofiled call of 1000.25 us holds 863 us of work.
    side = make_side("b", make_analysis(), make_form("compiled", scaled(1.0)))
    assert side.unprofiled_idle_us == pytest.approx(137, abs=0.5)
    assert idle_saving(side, 200.0) == pytest.approx(200 * 137 / 400, rel=1e-2)
    assert idle_saving(side, 4000.0) == side.unprofiled_idle_us


def test_where_the_call_has_more_it_saves_what_was_recorded():
    side = make_side("b", make_analysis(), make_form("compiled", scaled(2.0)))
    assert idle_saving(side, 200.0) == 200


def test_of_several_gpus_it_is_that_of_one_and_never_more_than_the_window():
    side = make_side("b", make_analysis(devices=2))
    assert idle_saving(side, 300.0) == 150
    assert idle_saving(side, 1e9) == side.span_us


def test_a_trace_without_times_saves_what_it_shows():
    side = make_side("b", make_analysis())
    assert idle_saving(replace(side, form=None), 300.0) == 300
