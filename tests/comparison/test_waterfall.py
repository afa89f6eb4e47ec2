from __future__ import annotations

import math

import pytest

from tracekit.comparison.matching.groups import group_kernels
from tracekit.comparison.waterfall import build_waterfall
from tracekit.model.comparison import Side, Waterfall
from tracekit.model.labels import GroupLabel, Label

from ..sides import (
    COMPILED,
    EAGER,
    STEADY,
    make_analysis,
    make_cpu_analysis,
    make_form,
    make_pair,
    make_side,
    scaled,
)


def waterfall_of(a: Side, b: Side) -> Waterfall:
    waterfall = build_waterfall(a, b, group_kernels(a, b))
    assert waterfall is not None
    return waterfall


def part(waterfall: Waterfall, label: Label) -> float:
    return next(each.delta_us for each in waterfall.parts if each.label == label)


def total(waterfall: Waterfall) -> float:
    return waterfall.a_us + math.fsum(each.delta_us for each in waterfall.parts) + waterfall.residual_us


def test_unprofiled_walls_are_the_ends_where_both_sides_have_them():
    waterfall = waterfall_of(*make_pair(scaled(1.5), scaled(1.1)))
    assert waterfall.basis == "unprofiled"
    assert waterfall.a_us == pytest.approx(1500.375)
    assert waterfall.b_us == pytest.approx(1100.275)
    assert total(waterfall) == pytest.approx(waterfall.b_us)


def test_idle_parts_are_without_what_recording_added_and_tell_what_was_recorded():
    # Both have 137 us of idle time in a call and 400 us in a recorded step.
    a = make_side("a", make_analysis(causes={"op_dispatch": 0.75, "device": 0.25}), make_form())
    b = make_side("b", make_analysis(causes={"op_dispatch": 0.9, "device": 0.1}), make_form())
    waterfall = waterfall_of(a, b)
    # The GPU's own idle time is as recorded, the host's takes the rest of the call's.
    assert part(waterfall, "device") == pytest.approx(400 * (0.1 - 0.25))
    assert part(waterfall, "op_dispatch") == pytest.approx(-part(waterfall, "device"))
    recorded = {each.label: each.recorded_delta_us for each in waterfall.parts if each.kind == "idle"}
    assert recorded == pytest.approx({"op_dispatch": 60, "device": -60})
    assert waterfall.residual_us == pytest.approx(0, abs=1e-6)


def test_the_profiler_s_own_idle_time_is_not_the_call_s():
    a = make_side("a", make_analysis(causes={"op_dispatch": 0.5, "launch_call": 0.3, "profiler": 0.2}), make_form())
    b = make_side("b", make_analysis(causes={"device": 1.0}), make_form())
    idle_us = 137.0
    assert (a.unprofiled_idle_us, b.unprofiled_idle_us) == (pytest.approx(idle_us), pytest.approx(idle_us))
    waterfall = waterfall_of(a, b)
    assert part(waterfall, "op_dispatch") == pytest.approx(-idle_us * 5 / 8)
    assert part(waterfall, "launch_call") == pytest.approx(-idle_us * 3 / 8)
    assert part(waterfall, "profiler") == 0
    assert part(waterfall, "device") == pytest.approx(idle_us)


def test_a_call_a_little_shorter_than_its_work_had_no_idle_time():
    a, b = make_pair(scaled(1.5), scaled(0.7))
    waterfall = waterfall_of(a, b)
    assert (waterfall.basis, b.unprofiled_idle_us) == ("unprofiled", 0)
    assert total(waterfall) == pytest.approx(waterfall.b_us)


def test_idle_time_that_the_recording_does_not_show_is_in_the_residual():
    a = make_side("a", make_analysis(idle_us=0, causes={}), make_form(wall_us=STEADY))
    waterfall = waterfall_of(a, make_side("b", make_analysis(), make_form()))
    assert part(waterfall, "op_dispatch") == pytest.approx(0.75 * 137)
    assert waterfall.residual_us == pytest.approx(-137.25)
    assert total(waterfall) == pytest.approx(waterfall.b_us)


def test_a_wall_shorter_than_the_busy_time_leaves_the_trace_s_own_basis():
    waterfall = waterfall_of(*make_pair(scaled(1.5), scaled(0.5)))
    assert waterfall.basis == "trace"
    assert total(waterfall) == pytest.approx(waterfall.b_us)


def test_work_launched_outside_the_steps_has_a_part_of_its_own():
    a, b = make_side("a", make_analysis()), make_side("b", make_analysis(outside_us=60))
    waterfall = waterfall_of(a, b)
    assert part(waterfall, "outside_steps") == pytest.approx(30)
    assert part(waterfall, "overlap_correction") == pytest.approx(0)
    assert total(waterfall) == pytest.approx(waterfall.b_us)


def test_bare_traces_are_compared_over_their_windows_with_idle_time_as_recorded():
    a, b = make_side("a", make_analysis(EAGER)), make_side("b", make_analysis(COMPILED, idle_us=300))
    waterfall = waterfall_of(a, b)
    assert waterfall.basis == "trace"
    assert (waterfall.a_us, waterfall.b_us) == (pytest.approx((1726 + 800) / 2), pytest.approx((1418 + 300) / 2))
    assert part(waterfall, "op_dispatch") == pytest.approx((300 - 800) / 2 * 0.75)
    assert waterfall.residual_us == pytest.approx(0, abs=1e-9)


def test_kernels_that_ran_side_by_side_are_corrected_for():
    a, b = make_side("a", make_analysis(EAGER)), make_side("b", make_analysis(EAGER, overlap_us=100))
    waterfall = waterfall_of(a, b)
    assert part(waterfall, "overlap_correction") == pytest.approx(-50)
    assert total(waterfall) == pytest.approx(waterfall.b_us)


def test_small_groups_share_a_part_and_unchanged_kernels_another():
    few = {"gemm": ("gemm", 1, 10_000.0), "Memset": ("memset", 9, 9.0), "p": ("pointwise", 10, 1000.0)}
    fewer = {"gemm": ("gemm", 1, 10_100.0), "p": ("pointwise", 2, 100.0)}
    waterfall = waterfall_of(make_side("a", make_analysis(few, steps=1)), make_side("b", make_analysis(fewer, steps=1)))
    assert part(waterfall, "other_gpu_work") == -9
    assert part(waterfall, "unchanged_kernels") == pytest.approx(100)
    assert part(waterfall, GroupLabel("fused", family="element_wise")) == -900


def test_cpu_runs_and_several_gpus_have_no_waterfall():
    cpu = make_side("a", make_cpu_analysis())
    assert build_waterfall(cpu, cpu, ()) is None
    several = make_side("a", make_analysis(devices=2))
    assert build_waterfall(several, several, group_kernels(several, several)) is None


def test_calls_are_not_set_against_recordings_that_were_not_read_by_steps():
    a = make_side("a", make_analysis(window="whole"), make_form())
    waterfall = waterfall_of(a, make_side("b", make_analysis(window="whole"), make_form()))
    assert waterfall.basis == "trace"
    assert waterfall.a_us == 1726 + 800
