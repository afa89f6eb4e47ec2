"""What a side tells of its idle time from two recordings."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sides import make_analysis, make_form, make_side


def test_what_neither_recording_attributes_stays_so():
    light = make_analysis(causes={"device": 0.2, "unattributed": 0.8})
    rich = make_analysis(causes={"device": 0.19, "guards": 0.01, "unattributed": 0.8})
    side = replace(make_side("b", light, make_form()), rich=rich)
    shares = side.idle_by_cause()
    # 400 us a step: of the 320 that the light recording does not tell the rich one tells an eighty-first part.
    assert shares["guards"] == pytest.approx(320 / 81)
    assert shares["unattributed"] == pytest.approx(320 * 80 / 81)
    assert shares["device"] == pytest.approx(80)
    assert sum(shares.values()) == pytest.approx(side.recorded_idle_us)


def test_what_the_rich_recording_tells_divides_what_the_light_one_cannot():
    light = make_analysis(causes={"device": 0.2, "unattributed": 0.8})
    rich = make_analysis(causes={"device": 0.5, "op_dispatch": 0.3, "python": 0.1, "launch_call": 0.1})
    side = replace(make_side("b", light, make_form()), rich=rich)
    assert side.idle_by_cause() == pytest.approx({"device": 80, "op_dispatch": 240, "python": 80})
