"""From cells to figures: each cell by its own process, eager by all of them, one row for each work and machine."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean, median

import pytest
from tests.sweeps import (
    GIB,
    compiled_cell,
    eager_cell,
    make_asked,
    make_environment,
    make_failure,
    make_result,
)

from tracekit.comparison.sweeping import read_sweep
from tracekit.comparison.sweeping.cells import read_cell, until_done_us
from tracekit.comparison.sweeping.pooling import pool_eager
from tracekit.model.sweep import CellResult
from tracekit.model.sweep_figures import Sweep
from tracekit.workloads.suites import VISION


def test_the_speed_up_is_of_the_cells_own_process() -> None:
    # Another process's eager form was half as fast: that is no part of this one's speed-up.
    results = (make_result(eager_cell(), 20_000.0), make_result(compiled_cell(), 10_000.0, 5_000.0))
    (work,) = read_sweep("vit", None, results, None, 1000).works
    verdict = work.cells[1].verdict
    assert verdict is not None
    assert verdict.speedup == pytest.approx(2.0, rel=0.01)
    assert verdict.result == "faster"
    assert verdict.ci95 is not None
    assert verdict.ci95[0] < 2.0 < verdict.ci95[1]
    assert (verdict.n, work.cells[0].verdict) == (40, None)


def test_mean_and_median_come_with_their_intervals() -> None:
    result = make_result(compiled_cell(), seed=3)
    assert result.run is not None
    wall_us = result.run.forms[1].times.wall_us  # type: ignore[union-attr]
    found = read_cell(result, 1000).compiled
    assert found is not None
    assert (found.calls, found.mean_us, found.median_us) == (40, pytest.approx(fmean(wall_us)), median(wall_us))
    for middle, ends in ((found.mean_us, found.mean_ci95), (found.median_us, found.median_ci95)):
        assert ends is not None
        assert ends[0] < middle < ends[1]
        assert ends[1] - ends[0] < 0.01 * middle
    assert found.device_median_us == pytest.approx(0.9 * found.median_us)


def test_an_outlier_moves_the_mean_and_its_interval_and_not_the_median() -> None:
    result = make_result(eager_cell(), 1000.0)
    assert result.run is not None
    form = result.run.forms[0]
    assert form.times is not None
    calls = (*form.times.wall_us[:-1], 50_000.0)
    slow = replace(result, run=replace(result.run, forms=(replace(form, times=replace(form.times, wall_us=calls)),)))
    one, other = (read_cell(each, 1).eager for each in (result, slow))
    assert one is not None and other is not None
    assert one.mean_ci95 is not None and other.mean_ci95 is not None
    assert other.median_us == pytest.approx(one.median_us, rel=0.002)
    assert other.mean_us > 2 * one.mean_us
    assert other.mean_ci95[1] - other.mean_ci95[0] > 100 * (one.mean_ci95[1] - one.mean_ci95[0])


def test_eager_is_pooled_over_processes_which_count_alike() -> None:
    results = [
        make_result(eager_cell(), 9_000.0, seed=1),
        make_result(compiled_cell(), 10_000.0, seed=2),
        make_result(compiled_cell(mode="reduce-overhead"), 11_000.0, seed=3),
    ]
    pool = pool_eager(results, 1000)
    assert pool is not None
    assert (pool.processes, pool.calls) == (3, 120)
    assert pool.median_us == pytest.approx((9_000 * 10_000 * 11_000) ** (1 / 3), rel=0.005)
    assert pool.spread == pytest.approx(11 / 9 - 1, rel=0.02)
    assert pool.median_ci95 is not None
    # Student's t of three processes: 4.3 standard errors of the logarithms.
    logs = [math.log(us) for us in (9_000, 10_000, 11_000)]
    error = math.sqrt(sum((log - fmean(logs)) ** 2 for log in logs) / 2 / 3)
    assert math.log(pool.median_ci95[1] / pool.median_us) == pytest.approx(4.303 * error, rel=0.05)
    two = pool_eager(results[:2], 1000)
    assert two is not None and two.median_ci95 is None
    one = pool_eager(results[:1], 1000)
    assert one is not None and one.median_ci95 is not None
    assert one.median_ci95[1] - one.median_ci95[0] < 0.01 * one.median_us


def test_eager_memory_and_start_are_those_of_a_process_without_a_compiled_form() -> None:
    alone, beside = make_result(eager_cell()), make_result(compiled_cell())
    assert alone.run is not None and beside.run is not None
    form = alone.run.forms[0]
    assert form.memory is not None
    memory = replace(form.memory, steady=replace(form.memory.warmup, reserved_bytes=3 * GIB))
    alone = replace(alone, run=replace(alone.run, forms=(replace(form, memory=memory, warmup_us=(77.0, 1.0)),)))
    pool = pool_eager([beside, alone], 1000)
    assert pool is not None
    assert (pool.memory_bytes, pool.first_call_us) == (3 * GIB, 77.0)
    without = pool_eager([beside], 1000)
    assert without is not None
    assert (without.memory_bytes, without.first_call_us) == (2 * GIB, 5_000.0)


def test_a_cold_start_is_the_calls_that_were_made_and_then_steady_ones() -> None:
    result = make_result(compiled_cell(), compiled_us=1_000.0, compile_us=9e6, share=0.0)
    assert result.run is not None
    form = result.run.forms[1]
    assert until_done_us(form, 1) == 9e6
    assert until_done_us(form, 3) == 9e6 + 2_000
    assert until_done_us(form, 103) == pytest.approx(9e6 + 102_000)


def test_calls_that_compiled_withhold_the_verdict() -> None:
    (work,) = read_sweep("vit", None, (make_result(compiled_cell(), during_timing=2),), None, 1000).works
    cell = work.cells[0]
    assert cell.verdict is not None
    assert (cell.verdict.result, cell.during_timing) == ("inconclusive", 2)
    assert any("ran inside timed calls" in warning for warning in cell.warnings)
    assert all(each.key is None for best in work.best if best.goal == "latency" for each in best.candidates)


def test_break_even_is_compiling_by_saving() -> None:
    found = read_cell(make_result(compiled_cell(), 10_000.0, 5_000.0, compile_us=20e6, share=0.0001), 1000).break_even
    assert found is not None and found.calls is not None
    assert found.calls == pytest.approx(20e6 / 5_000, rel=0.01)
    never = read_cell(make_result(compiled_cell(), 5_000.0, 10_000.0), 1000).break_even
    assert never is not None and never.never


def test_works_are_told_apart_by_machine_torch_and_resolved_size() -> None:
    results = (
        make_result(eager_cell()),
        make_result(compiled_cell()),
        make_result(compiled_cell(mode="reduce-overhead"), environment=make_environment("NVIDIA A100")),
        make_failure(compiled_cell(mode="max-autotune"), "timed_out"),
    )
    sweep = read_sweep("vit", make_asked([each.cell for each in results]), results, None, 1000)
    assert [(work.machine, len(work.cells)) for work in sweep.works] == [("NVIDIA H200", 3), ("NVIDIA A100", 1)]
    assert sweep.works[0].eager is not None and sweep.works[0].eager.processes == 2
    assert any("several machines (NVIDIA H200, NVIDIA A100)" in warning for warning in sweep.warnings)
    assert sweep.missing == 0
    other = make_result(compiled_cell(batch_size=4), environment=make_environment(torch="2.12.0"))
    assert any("versions of torch (2.11.0, 2.12.0)" in each for each in _read(*results[:2], other).warnings)
    assert _read(*results[:2]).warnings == ()


def _read(*results: CellResult) -> Sweep:
    return read_sweep("vit", None, results, None, 1000)


def test_a_sweep_of_failures_alone_has_works_and_no_figures() -> None:
    sweep = read_sweep("vit", None, (make_failure(eager_cell()), make_failure(compiled_cell())), None, 1000)
    (work,) = sweep.works
    assert (work.eager, work.best, work.settings) == (None, (), None)
    assert [cell.outcome for cell in work.cells] == ["out_of_memory"] * 2


def test_published_figures_stand_beside_the_batch_size_they_are_of() -> None:
    results = [
        make_result(cell, 8_000.0 * cell.request.batch_size, 4_000.0 * cell.request.batch_size, share=0.0001)
        for batch in (1, 4)
        for cell in (eager_cell(batch_size=batch), compiled_cell(batch_size=batch))
    ]
    results.append(make_result(compiled_cell(mode="reduce-overhead"), 8_000.0, 1_000.0))
    sweep = read_sweep("vision", make_asked([each.cell for each in results], "vision"), results, VISION, 1000)
    (row,) = sweep.published
    assert (row.published.eager_ms, row.published.compiled_ms) == (9.325, 7.584)
    assert row.eager_ms == pytest.approx(8.0, rel=0.01)
    assert row.compiled_ms == pytest.approx(4.0, rel=0.01), "the default mode's, not the fastest's"
    told = " ".join(sweep.differs)
    assert "NVIDIA H200 here, one A100 there" in told
    assert "2.11.0 here, 2.0.1 there" in told
    assert "Weights: random here" in told
    assert "40 of each form" in told
