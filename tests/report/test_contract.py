import json
import math

import pytest
from msgspec.structs import replace

from tracekit.comparison.comparing import compare
from tracekit.comparison.looking import look_at
from tracekit.model.analysis import Analysis, GpuUse
from tracekit.model.single_run import SingleRun
from tracekit.report.contract import analysis_json, comparison_json

from ..sides import make_analysis, make_cpu_analysis, make_form, make_side
from .conftest import cpu_comparison, timed_comparison


def of_a_trace(analysis: Analysis) -> SingleRun:
    return look_at(make_side(analysis=analysis))


def test_top_is_the_beginning_of_the_names():
    kernels = {f"kernel_{i}": ("pointwise", 1, 100.0 - i) for i in range(30)}
    told = json.loads(analysis_json(of_a_trace(make_analysis(kernels))))
    assert [each["name"] for each in told["kernels"]["top"]] == [f"kernel_{i}" for i in range(20)]
    assert len(json.loads(analysis_json(of_a_trace(make_analysis(kernels)), top=3))["kernels"]["top"]) == 3


def test_what_a_cpu_recording_cannot_show_is_null():
    told = json.loads(analysis_json(of_a_trace(make_cpu_analysis(fused=3))))
    assert [told[key] for key in ("gpu", "kernels", "copies", "launches", "idle")] == [None] * 5
    assert told["cpu"]["fused_count"] == 3


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_null(value):
    text = analysis_json(of_a_trace(replace(make_analysis(), gpu=GpuUse(1.0, 1.0, 0.0, value))))
    assert "NaN" not in text and "Infinity" not in text
    assert json.loads(text)["gpu"]["idle_fraction"] is None


def test_a_side_carries_what_holds_it_back():
    told = json.loads(comparison_json(timed_comparison()))
    assert (told["a"]["label"], told["a"]["settings"]["workload"]) == ("eager", "flux")
    assert sum(told["b"]["bound"]["parts_us"].values()) == pytest.approx(told["b"]["per_step"]["wall_us"])


def test_a_cpu_comparison_is_told_without_gpu_figures():
    told = json.loads(comparison_json(cpu_comparison()))
    assert (told["waterfall"], told["groups"], told["coverage"]) == (None, [], None)
    assert set(told["deltas"].values()) == {None} and told["verdict"]["speedup"] > 1


def test_figures_per_step_are_each_their_own():
    # Two steps: 1,726 us busy and 800 us idle in all, of which recording added some; a call takes 1,000 us without it.
    side = make_side(form=make_form(wall_us=(990.0, 1000.0, 1010.0)))
    whole = json.loads(comparison_json(compare(side, side)))["a"]
    assert whole["form"]["peak_memory_bytes"] == 3 * 2**30
    told = whole["per_step"]
    causes = told.pop("recorded_idle_by_cause_us"), told.pop("unprofiled_idle_by_cause_us")
    assert told.pop("unprofiled_idle_residual_us") == pytest.approx(0, abs=1e-9)
    assert told == {
        "wall_us": 1000.0,
        "recorded_wall_us": 1263.0,
        "busy_us": 863.0,
        "compute_us": 863.0,
        "exposed_communication_us": 0.0,
        "unprofiled_idle_us": 137.0,
        "recorded_idle_us": 400.0,
        "idle_share": 0.137,
        "recorded_idle_share": pytest.approx(800 / 2526),
        "slowdown": 1.263,
        "recorded_idle_by_cause_range_us": None,
        "unprofiled_idle_by_cause_range_us": None,
        "unprofiled_idle_after_sync_us": None,
    }
    assert causes[0] == pytest.approx({"op_dispatch": 300.0, "launch_call": 100.0})
    assert causes[1] == pytest.approx({"op_dispatch": 102.75, "launch_call": 34.25})
