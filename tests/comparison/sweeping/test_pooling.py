"""Eager code by all processes that timed it, and a cell's change beside what those differ by."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean

import pytest
from tests.sweeps import GIB, compiled_cell, eager_cell, make_failure, make_result

from tracekit.comparison.sweeping import read_sweep
from tracekit.comparison.sweeping.pooling import pool_eager
from tracekit.model.sweep import Cell, CellResult
from tracekit.model.sweep_figures import CellFigures, EagerPool


def pooled(*results: CellResult, calls: int = 1000) -> EagerPool:
    pool = pool_eager(results, calls)
    assert pool is not None
    return pool


def test_eager_is_pooled_over_processes_which_count_alike() -> None:
    cells = eager_cell(), compiled_cell(), compiled_cell(mode="reduce-overhead")
    results = [
        make_result(cell, us, seed=at) for at, (cell, us) in enumerate(zip(cells, (9e3, 10e3, 11e3), strict=True))
    ]
    pool = pooled(*results)
    assert (pool.processes, pool.calls) == (3, 120)
    assert pool.median_us == pytest.approx((9e3 * 10e3 * 11e3) ** (1 / 3), rel=0.005)
    assert pool.spread == pytest.approx(11 / 9 - 1, rel=0.02)
    # Student's t of three processes: 4.3 standard errors of the logarithms.
    logs = [math.log(us) for us in (9e3, 10e3, 11e3)]
    error = math.sqrt(sum((log - fmean(logs)) ** 2 for log in logs) / 2 / 3)
    assert pool.median_ci95 is not None
    assert math.log(pool.median_ci95[1] / pool.median_us) == pytest.approx(4.303 * error, rel=0.05)
    assert pooled(*results[:2]).median_ci95 is None
    one = pooled(results[0])
    assert one.median_ci95 is not None and one.median_ci95[1] - one.median_ci95[0] < 0.01 * one.median_us


def started(first_us: float, cell: Cell, steady_bytes: int | None = None) -> CellResult:
    """A cell whose eager form's first call took so long, and whose steady calls held so much."""
    result = make_result(cell, share=0.0)
    assert result.run is not None
    first, *rest = result.run.forms
    memory = first.memory
    assert memory is not None
    if steady_bytes is not None:
        memory = replace(memory, steady=replace(memory.warmup, reserved_bytes=steady_bytes))
    first = replace(first, warmup_us=(first_us, 10_000.0), memory=memory)
    return replace(result, run=replace(result.run, forms=(first, *rest)))


def test_memory_is_that_of_a_process_without_a_compiled_form_and_the_start_the_middle_one_of_all() -> None:
    own, beside = started(77.0, eager_cell(), 3 * GIB), started(5_000.0, compiled_cell())
    pool, without = pooled(beside, own), pooled(beside)
    assert (pool.memory_bytes, pool.first_call_us) == (3 * GIB, (77.0 + 5_000.0) / 2)
    assert (without.memory_bytes, without.first_call_us) == (None, 5_000.0)
    assert (pool.warmup_memory_bytes, without.warmup_memory_bytes) == (2 * GIB, 2 * GIB)
    three = [started(us, eager_cell()) for us in (30_000.0, 20_000.0)] + [started(500_000.0, compiled_cell())]
    pool = pooled(*three, calls=3)
    assert (pool.first_call_us, pool.soon_us) == (30_000.0, pytest.approx(50_000.0))


def test_a_pooled_device_time_is_the_mean_of_processes() -> None:
    results = [make_result(eager_cell(), us, share=0.0) for us in (10_000.0, 10_000.0, 40_000.0)]
    assert pooled(*results).device_median_us == pytest.approx(0.9 * 20_000.0)


def test_eager_of_a_cell_that_did_not_end_is_not_pooled() -> None:
    half = replace(make_result(compiled_cell(), 99_000.0), outcome="killed")
    assert pooled(make_result(eager_cell()), half).processes == 1
    assert pool_eager([half], 1000) is None


def compiled(eager_us: float, compiled_us: float, own_us: float = 10_000.0, **asked: int) -> CellFigures:
    """Eager took `own_us` in the process of its own, `eager_us` beside the compiled form."""
    cells = (
        make_result(eager_cell(**asked), own_us, share=0.0),
        make_result(compiled_cell(**asked), eager_us, compiled_us, share=0.0),
    )
    (work,) = read_sweep("vit", None, cells, None, 1000).works
    return work.cells[1]


@pytest.mark.parametrize(
    ("speedup", "within"),
    [(1.05, True), (1.19, True), (1 / 1.19, True), (1.001, True), (1.21, False), (1 / 1.21, False), (3.0, False)],
)
def test_a_gain_or_loss_no_larger_than_eager_processes_differ_by_is_marked(speedup: float, within: bool) -> None:
    cell = compiled(12_000.0, 12_000.0 / speedup)
    assert cell.within_eager_spread is within
    # The verdict stays.
    assert cell.verdict is not None and (cell.verdict.result == "faster") == (speedup > 1.02)


def test_the_spread_is_of_the_cells_own_work_and_no_change_is_within_a_spread_of_nothing() -> None:
    assert compiled(13_000.0, 12_000.0).within_eager_spread is True
    assert compiled(10_100.0, 9_350.0, batch_size=16).within_eager_spread is False
    assert compiled(10_000.0, 10_000.0).within_eager_spread is True


def test_of_one_process_nobody_knows_and_eager_and_failed_cells_have_no_change() -> None:
    (work,) = read_sweep("vit", None, (make_result(compiled_cell(), 10_000.0, 9_900.0),), None, 1000).works
    assert work.cells[0].within_eager_spread is None
    cells = (make_result(eager_cell()), make_failure(compiled_cell()), make_result(compiled_cell(mode="max-autotune")))
    found = read_sweep("vit", None, cells, None, 1000).cells
    assert [cell.within_eager_spread for cell in found] == [None, None, False]
