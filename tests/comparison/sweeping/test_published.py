"""Other people's figures beside the works that they are of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sweeps import compiled_cell, eager_cell, make_result

from tracekit.comparison.sweeping import read_sweep
from tracekit.model.sweep import CellResult
from tracekit.model.sweep_figures import PublishedBeside
from tracekit.workloads.suites import VISION


def beside(*results: CellResult) -> tuple[PublishedBeside, ...]:
    return read_sweep("vision", None, results, VISION, 1000).published


def changed(result: CellResult, **settings: object) -> CellResult:
    """The cell as if it had been measured with other settings."""
    assert result.run is not None
    return replace(result, run=replace(result.run, settings=replace(result.run.settings, **settings)))  # type: ignore[arg-type]


def test_published_figures_stand_beside_the_batch_size_they_are_of() -> None:
    results = [
        make_result(cell, 8_000.0 * cell.request.batch_size, 4_000.0 * cell.request.batch_size, share=0.0001)
        for batch in (1, 4)
        for cell in (eager_cell(batch_size=batch), compiled_cell(batch_size=batch))
    ]
    results.append(make_result(compiled_cell(mode="reduce-overhead"), 8_000.0, 1_000.0))
    sweep = read_sweep("vision", None, results, VISION, 1000)
    (row,) = sweep.published
    assert (row.published.eager_ms, row.published.compiled_ms) == (9.325, 7.584)
    assert (row.speedup, row.result) == (pytest.approx(2.0, rel=0.01), "faster")
    assert row.ci95 is not None and row.ci95[0] < 2.0 < row.ci95[1]
    assert (row.dtype, row.machine, row.size) == ("bfloat16", "NVIDIA H200", "full")
    # The default mode's, not the fastest's.
    assert (row.eager_ms, row.compiled_ms) == (pytest.approx(8.0, rel=0.01), pytest.approx(4.0, rel=0.01))
    assert {each.code: each.facts for each in sweep.differences} == {
        "machine": {"here": ["NVIDIA H200"]},
        "torch": {"here": ["2.11.0"]},
        "dtype": {"here": ["bfloat16"]},
        "random_weights": {},
        "calls": {"least": 40, "most": 40},
        "what_a_call_contains": {},
    }


def test_published_figures_get_a_row_for_each_type_size_and_machine_and_a_gain_at_full_size_alone() -> None:
    rows = beside(
        changed(make_result(compiled_cell("vit", dtype="float16"), 8_000.0, 2_000.0), dtype="float16"),
        make_result(compiled_cell("vit"), 8_000.0, 4_000.0),
        changed(make_result(compiled_cell("vit", size="tiny"), 800.0, 400.0), size="tiny"),
    )
    assert [(row.dtype, row.size) for row in rows] == [("float16", "full"), ("bfloat16", "full"), ("bfloat16", "tiny")]
    assert [row.speedup for row in rows] == [pytest.approx(4.0, rel=0.01), pytest.approx(2.0, rel=0.01), None]
    assert rows[2].ci95 is None and rows[2].result is None
    assert rows[2].eager_ms == pytest.approx(0.8, rel=0.01)


def test_eager_beside_published_figures_is_that_of_the_compiled_cells_process() -> None:
    results = make_result(eager_cell(), 16_000.0), make_result(compiled_cell(), 8_000.0, 4_000.0)
    (row,) = beside(*results)
    assert (row.eager_ms, row.eager_median_ms) == (pytest.approx(8.0, rel=0.01), pytest.approx(8.0, rel=0.01))
    (row,) = beside(results[0])
    assert (row.eager_ms, row.compiled_ms, row.speedup) == (pytest.approx(16.0, rel=0.01), None, None)


@pytest.mark.parametrize(("us", "within"), [(11_900.0, True), (6_000.0, False)])
def test_whether_it_is_within_what_eager_differs_by_is_the_compiled_cells_at_full_size(us: float, within: bool) -> None:
    results = (make_result(eager_cell(), share=0.0), make_result(compiled_cell(), 12_000.0, us, share=0.0))
    assert [row.within_eager_spread for row in beside(*results)] == [within]
    (small,) = beside(*(changed(each, size="small") for each in results))
    assert (small.speedup, small.within_eager_spread) == (None, None)
