"""A cell's change beside what eager of its own work differs by from process to process."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sweeps import compiled_cell, eager_cell, make_failure, make_result

from tracekit.comparison.sweeping import read_sweep
from tracekit.model.sweep_figures import CellFigures, Sweep
from tracekit.workloads.suites import VISION


def sweep_of(eager_us: float, compiled_us: float, *, alone_us: float = 10_000.0) -> Sweep:
    """Eager took `alone_us` in the process of its own, `eager_us` beside the compiled form."""
    cells = (
        make_result(eager_cell(), alone_us, share=0.0),
        make_result(compiled_cell(), eager_us, compiled_us, share=0.0),
    )
    return read_sweep("vit", None, cells, VISION, 1000)


def compiled(sweep: Sweep) -> CellFigures:
    (cell,) = [cell for cell in sweep.cells if cell.cell.form == "compiled"]
    return cell


@pytest.mark.parametrize("speedup", [1.05, 1.19, 1 / 1.19, 1.001])
def test_a_gain_or_loss_no_larger_than_eager_processes_are_apart_is_told_as_such(speedup: float) -> None:
    assert compiled(sweep_of(12_000.0, 12_000.0 / speedup)).within_eager_spread is True


@pytest.mark.parametrize("speedup", [1.21, 1 / 1.21, 3.0])
def test_a_larger_one_is_not(speedup: float) -> None:
    assert compiled(sweep_of(12_000.0, 12_000.0 / speedup)).within_eager_spread is False


def test_gain_and_loss_are_measured_alike() -> None:
    # 20 % apart: a gain of 1.2 and a loss of 1 / 1.2 are as far from 1, and 0.81 is farther.
    assert compiled(sweep_of(12_000.0, 12_000.0 / 0.84)).within_eager_spread is True
    assert compiled(sweep_of(12_000.0, 12_000.0 / 0.81)).within_eager_spread is False


def test_of_one_process_nobody_knows() -> None:
    (work,) = read_sweep("vit", None, (make_result(compiled_cell(), 10_000.0, 9_900.0),), None, 1000).works
    assert work.cells[0].within_eager_spread is None


def test_eager_and_failed_cells_have_no_change() -> None:
    cells = (make_result(eager_cell()), make_failure(compiled_cell()), make_result(compiled_cell(mode="max-autotune")))
    found = read_sweep("vit", None, cells, None, 1000).cells
    assert [cell.within_eager_spread for cell in found] == [None, None, False]


def test_the_spread_is_of_the_cells_own_work() -> None:
    small = {"batch_size": 16}
    cells = (
        make_result(eager_cell(), 10_000.0, share=0.0),
        make_result(compiled_cell(), 13_000.0, 12_000.0, share=0.0),
        make_result(eager_cell(**small), 10_000.0, share=0.0),
        make_result(compiled_cell(**small), 10_100.0, 9_350.0, share=0.0),
    )
    works = read_sweep("vit", None, cells, None, 1000).works
    assert [work.cells[1].within_eager_spread for work in works] == [True, False]


def test_beside_published_figures_it_is_the_compiled_cells() -> None:
    for us, within in ((11_900.0, True), (6_000.0, False)):
        (beside,) = sweep_of(12_000.0, us).published
        assert beside.within_eager_spread is within


def test_no_change_is_within_a_spread_of_nothing() -> None:
    cell = make_result(compiled_cell(), 10_000.0, 10_000.0, seed=1, share=0.0)
    (work,) = read_sweep("vit", None, (make_result(eager_cell(), 10_000.0, share=0.0), cell), None, 1000).works
    assert work.eager is not None and work.eager.spread == 0
    assert work.cells[1].within_eager_spread is True


def test_of_another_size_nothing_is_said_beside_published_figures() -> None:
    cells = (
        make_result(eager_cell(), 10_000.0, share=0.0),
        make_result(compiled_cell(), 12_000.0, 11_900.0, share=0.0),
    )
    small = [
        replace(each, run=replace(each.run, settings=replace(each.run.settings, size="small")))
        for each in cells
        if each.run is not None
    ]
    (beside,) = read_sweep("vit", None, small, VISION, 1000).published
    assert (beside.speedup, beside.within_eager_spread) == (None, None)


def test_a_verdict_does_not_hear_of_it() -> None:
    cell = compiled(sweep_of(12_000.0, 11_000.0))
    assert cell.within_eager_spread is True
    assert cell.verdict is not None and cell.verdict.result == "faster"
