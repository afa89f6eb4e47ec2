"""From cells to figures: each cell by its own process, eager by all of them, one row for each work and machine."""

from __future__ import annotations

import math
from collections.abc import Iterable
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
from tracekit.comparison.sweeping.cells import ends, read_cell, until_done_us
from tracekit.comparison.sweeping.pooling import pool_eager
from tracekit.model.note import Note
from tracekit.model.sweep import CellResult
from tracekit.model.sweep_figures import Sweep
from tracekit.statistics.interval import Interval
from tracekit.workloads.suites import VISION


def codes(notes: Iterable[Note]) -> list[str]:
    return [each.code for each in notes]


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
    for middle, interval in ((found.mean_us, found.mean_ci95), (found.median_us, found.median_ci95)):
        assert interval is not None
        assert interval[0] < middle < interval[1]
        assert interval[1] - interval[0] < 0.01 * middle
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


def test_eager_memory_is_that_of_a_process_without_a_compiled_form_and_its_start_of_all() -> None:
    alone, beside = make_result(eager_cell()), make_result(compiled_cell())
    assert alone.run is not None and beside.run is not None
    form = alone.run.forms[0]
    assert form.memory is not None
    memory = replace(form.memory, steady=replace(form.memory.warmup, reserved_bytes=3 * GIB))
    alone = replace(alone, run=replace(alone.run, forms=(replace(form, memory=memory, warmup_us=(77.0, 1.0)),)))
    pool = pool_eager([beside, alone], 1000)
    assert pool is not None
    assert (pool.memory_bytes, pool.first_call_us) == (3 * GIB, (77.0 + 5_000.0) / 2)
    without = pool_eager([beside], 1000)
    assert without is not None
    assert (without.memory_bytes, without.first_call_us) == (None, 5_000.0)
    assert (pool.warmup_memory_bytes, without.warmup_memory_bytes) == (2 * GIB, 2 * GIB)


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
    assert "compiled_while_timed" in codes(cell.notes)
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
    assert Note("several_machines", facts={"machines": ["NVIDIA H200", "NVIDIA A100"]}) in sweep.notes
    assert sweep.missing == 0
    other = make_result(compiled_cell(batch_size=4), environment=make_environment(torch="2.12.0"))
    told = Note("several_torches", facts={"versions": ["2.11.0", "2.12.0"]})
    assert told in _read(*results[:2], other).notes
    assert _read(*results[:2]).notes == ()


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
    assert (row.speedup, row.result) == (pytest.approx(2.0, rel=0.01), "faster")
    assert row.ci95 is not None and row.ci95[0] < 2.0 < row.ci95[1]
    assert (row.dtype, row.machine, row.size) == ("bfloat16", "NVIDIA H200", "full")
    assert row.eager_ms == pytest.approx(8.0, rel=0.01)
    assert row.compiled_ms == pytest.approx(4.0, rel=0.01), "the default mode's, not the fastest's"
    differences = {each.code: each.facts for each in sweep.differences}
    assert differences == {
        "machine": {"here": ["NVIDIA H200"]},
        "torch": {"here": ["2.11.0"]},
        "dtype": {"here": ["bfloat16"]},
        "random_weights": {},
        "calls": {"least": 40, "most": 40},
        "what_a_call_contains": {},
    }


def changed(result: CellResult, **settings: object) -> CellResult:
    """The cell as if it had been measured with other settings."""
    assert result.run is not None
    return replace(result, run=replace(result.run, settings=replace(result.run.settings, **settings)))  # type: ignore[arg-type]


def on(result: CellResult, packages: dict[str, str] | None = None, **environment: object) -> CellResult:
    """The cell as if it had been measured elsewhere."""
    assert result.run is not None
    there = replace(result.run.environment, **environment)  # type: ignore[arg-type]
    there = replace(there, packages={**there.packages, **(packages or {})})
    return replace(result, run=replace(result.run, environment=there))


def test_published_figures_get_a_row_for_each_type_size_and_machine_and_a_gain_at_full_size_alone() -> None:
    results = (
        changed(make_result(compiled_cell("vit", dtype="float16"), 8_000.0, 2_000.0), dtype="float16"),
        make_result(compiled_cell("vit"), 8_000.0, 4_000.0),
        changed(make_result(compiled_cell("vit", size="tiny"), 800.0, 400.0), size="tiny"),
    )
    rows = read_sweep("vision", None, results, VISION, 1000).published
    assert [(row.dtype, row.size) for row in rows] == [("float16", "full"), ("bfloat16", "full"), ("bfloat16", "tiny")]
    assert [row.speedup for row in rows] == [pytest.approx(4.0, rel=0.01), pytest.approx(2.0, rel=0.01), None]
    assert rows[2].ci95 is None and rows[2].result is None
    assert rows[2].eager_ms == pytest.approx(0.8, rel=0.01)


def test_eager_beside_published_figures_is_that_of_the_compiled_cells_process() -> None:
    results = (make_result(eager_cell(), 16_000.0), make_result(compiled_cell(), 8_000.0, 4_000.0))
    (row,) = read_sweep("vision", None, results, VISION, 1000).published
    assert (row.eager_ms, row.eager_median_ms) == (pytest.approx(8.0, rel=0.01), pytest.approx(8.0, rel=0.01))
    (alone,) = read_sweep("vision", None, results[:1], VISION, 1000).published
    assert (alone.eager_ms, alone.compiled_ms, alone.speedup) == (pytest.approx(16.0, rel=0.01), None, None)


@pytest.mark.parametrize("settings", [{"dtype": "float16"}, {"size": "tiny"}])
def test_cells_of_other_size_or_type_are_another_work(settings: dict[str, str]) -> None:
    results = (make_result(eager_cell()), changed(make_result(compiled_cell()), **settings))
    sweep = _read(*results)
    assert [len(work.cells) for work in sweep.works] == [1, 1]
    assert [work.eager.processes for work in sweep.works if work.eager] == [1, 1]


def test_cells_that_were_steered_otherwise_are_told_apart() -> None:
    one, other = make_result(eager_cell()), make_result(compiled_cell())
    assert other.run is not None
    settings = replace(other.run.settings, variables={"TORCHINDUCTOR_GRAPH_PARTITION": "0"})
    sweep = _read(one, replace(other, run=replace(other.run, settings=settings)))
    (work,) = sweep.works
    assert work.differs == ("variables: none, TORCHINDUCTOR_GRAPH_PARTITION=0",)
    assert work.cells[1].command.startswith("TORCHINDUCTOR_GRAPH_PARTITION=0 tracekit profile ")


@pytest.mark.parametrize(
    ("there", "told"),
    [
        ({"cpu": "another CPU"}, "CPU: a CPU, another CPU"),
        ({"packages": {"transformers": "5.2"}}, "transformers: 5.1, 5.2"),
        ({"packages": {"triton": "3.7"}}, "triton: 3.6, 3.7"),
        ({"packages": {"diffusers": "0.43"}}, "diffusers: 0.42, 0.43"),
        ({"driver": "590.1"}, "driver: 580.1, 590.1"),
    ],
)
def test_machines_that_differ_in_what_matters_are_said_where_their_cells_share_a_row(
    there: dict[str, object], told: str
) -> None:
    here = {"transformers": "5.1", "triton": "3.6", "diffusers": "0.42", "numpy": "2.0"}
    one = on(make_result(eager_cell()), here, driver="580.1")
    alike = on(make_result(compiled_cell()), {**here, "numpy": "2.1"}, driver="580.1")
    assert _read(one, alike).notes == ()
    sweep = _read(one, on(alike, **there))  # type: ignore[arg-type]
    (work,) = sweep.works
    assert work.differs == (told,)
    facts = {"differences": [told], "works": 1, "of_works": 1}
    assert sweep.notes == (Note("machines_of_a_work_differ", facts=facts),)


def test_other_rules_and_other_versions_of_tracekit_are_said() -> None:
    one, two = make_result(eager_cell()), make_result(compiled_cell())
    assert two.run is not None
    longer = replace(two, run=replace(two.run, rule=replace(two.run.rule, rounds=300)))
    assert "several_timing_rules" in codes(_read(one, longer).notes)
    sought = replace(two, run=replace(two.run, rule=replace(two.run.rule, rounds=None)))
    wider = replace(two, run=replace(two.run, rule=replace(two.run.rule, rounds=None, target=0.02)))
    assert "several_timing_rules" in codes(_read(sought, wider).notes)
    later = replace(two, tracekit="0.2.0")
    assert Note("several_tracekits", facts={"versions": ["0.1.0", "0.2.0"]}) in _read(one, later).notes


def test_two_files_of_one_cell_are_told_and_the_later_one_counts() -> None:
    late = replace(make_result(compiled_cell(), 10_000.0, 2_000.0), started="2026-11-22T00:00:00+00:00")
    early = make_result(compiled_cell(), 10_000.0, 5_000.0)
    for pair in ((late, early), (early, late)):
        sweep = _read(make_result(eager_cell()), *pair)
        (work,) = sweep.works
        assert [cell.cell.form for cell in work.cells] == ["eager", "compiled"]
        assert work.cells[1].started == late.started
        assert work.eager is not None and work.eager.processes == 2
        assert sweep.notes == (Note("same_cell_in_files", facts={"key": early.cell.key, "files": 2}),)
    elsewhere = replace(late, run=make_result(compiled_cell(), environment=make_environment("NVIDIA A100")).run)
    assert "same_cell_in_files" not in codes(_read(early, elsewhere).notes), "rows of their own"


def test_eager_of_a_cell_that_did_not_end_is_not_pooled() -> None:
    half = replace(make_result(compiled_cell(), 99_000.0), outcome="killed")
    pool = pool_eager([make_result(eager_cell()), half], 1000)
    assert pool is not None and pool.processes == 1
    assert pool_eager([half], 1000) is None


def _started(us: float, *, cell: object = None) -> CellResult:
    """An eager cell, or another, whose first call took so long."""
    result = make_result(cell or eager_cell(), share=0.0)  # type: ignore[arg-type]
    assert result.run is not None
    first, *rest = result.run.forms
    return replace(result, run=replace(result.run, forms=(replace(first, warmup_us=(us, 10_000.0)), *rest)))


def test_a_pooled_start_is_the_middle_one_of_all_processes() -> None:
    results = [_started(us) for us in (30_000.0, 20_000.0)] + [_started(500_000.0, cell=compiled_cell())]
    pool = pool_eager(results, 3)
    assert pool is not None
    assert (pool.first_call_us, pool.soon_us) == (30_000.0, pytest.approx(50_000.0))


def test_a_pooled_device_time_is_the_mean_of_processes() -> None:
    results = [make_result(eager_cell(), us, share=0.0) for us in (10_000.0, 10_000.0, 40_000.0)]
    pool = pool_eager(results, 1000)
    assert pool is not None and pool.device_median_us == pytest.approx(0.9 * 20_000.0)


def test_eager_memory_beside_a_compiled_form_is_known_of_its_warm_up_alone() -> None:
    beside, alone = (read_cell(make_result(cell), 1000).eager for cell in (compiled_cell(), eager_cell()))
    assert beside is not None and alone is not None
    assert (beside.memory_bytes, beside.warmup_memory_bytes) == (None, 2 * GIB)
    assert (alone.memory_bytes, alone.warmup_memory_bytes) == (2 * GIB, 2 * GIB)


def test_a_warm_up_that_held_more_is_told_besides() -> None:
    result = make_result(compiled_cell(), reserved=2.0)
    assert result.run is not None
    eager, compiled = result.run.forms
    assert compiled.memory is not None
    heavy = replace(compiled, memory=replace(compiled.memory, warmup=replace(compiled.memory.warmup, reserved_bytes=9)))
    found = read_cell(replace(result, run=replace(result.run, forms=(eager, heavy))), 1000).compiled
    assert found is not None
    assert (found.memory_bytes, found.warmup_memory_bytes) == (2 * GIB, 9)


def test_a_compiled_cell_that_failed_before_it_was_warm_has_no_start_of_its_own() -> None:
    result = make_result(compiled_cell())
    assert result.run is not None
    half = replace(result, outcome="failed", run=replace(result.run, forms=result.run.forms[:1]))
    found = read_cell(half, 1000)
    assert (found.first_call_us, found.soon_us, found.conditions.sm_clock_mhz) == (None, None, None)


def test_an_interval_without_an_end_is_none() -> None:
    assert ends(Interval(5.0, 0.0, math.inf, 5)) is None
    assert ends(Interval(5.0, 4.0, 6.0, 1)) == (4.0, 6.0)


def test_five_calls_far_apart_have_intervals_above_nothing_and_are_pooled() -> None:
    def scattered_cell(cell: object, factor: float) -> CellResult:
        result = make_result(cell, share=0.0)  # type: ignore[arg-type]
        assert result.run is not None
        first, *rest = result.run.forms
        assert first.times is not None
        wall_us = tuple(factor * us for us in (10.0, 11.0, 200.0, 900.0, 500.0))
        times = replace(first.times, wall_us=wall_us, device_us=None)
        return replace(result, run=replace(result.run, forms=(replace(first, times=times), *rest)))

    results = [scattered_cell(eager_cell(), factor) for factor in (1.0, 1.1, 1.2)]
    found = read_cell(results[0], 1000).eager
    assert found is not None and found.mean_ci95 is not None and found.median_ci95 is not None
    assert min(found.mean_ci95[0], found.median_ci95[0]) > 0
    pool = pool_eager(results, 1000)
    assert pool is not None and pool.mean_ci95 is not None and pool.median_ci95 is not None


def test_what_came_from_a_cache_is_told() -> None:
    def cached(hits: int, *, empty: bool | None) -> tuple[Note, ...]:
        result = make_result(compiled_cell())
        assert result.run is not None
        eager, compiled = result.run.forms
        assert compiled.compilation is not None
        facts = replace(compiled.compilation, graphs=3, cache_hits=hits, cache_was_empty=empty)
        told = replace(result, run=replace(result.run, forms=(eager, replace(compiled, compilation=facts))))
        found = read_cell(told, 1000)
        assert (found.cache_hits, found.cache_was_empty, found.load_seconds) == (hits, empty, 3.0)
        assert found.size_reason == "as asked"
        return found.notes

    assert cached(0, empty=True) == ()
    for hits in (1, 3):
        facts = {"hits": hits, "graphs": 3, "cache_was_empty": True}
        assert cached(hits, empty=True) == (Note("graphs_from_cache", facts=facts),)
    assert cached(0, empty=False) == (Note("cache_not_empty"),)


def test_that_a_gpu_was_held_back_is_said_for_the_whole_sweep_and_of_which_form_a_clock_is() -> None:
    result = make_result(compiled_cell())
    assert result.run is not None
    forms = []
    for form, clock in zip(result.run.forms, (1965, 1740), strict=True):
        assert form.gpu_state is not None
        (sample,) = form.gpu_state.samples
        moments = (("before", 0.0), ("during", 1.0), ("after", 2.0))
        samples = tuple(replace(sample, moment=moment, seconds=at, sm_clock_mhz=clock) for moment, at in moments)
        state = replace(form.gpu_state, samples=samples, slowed_us={"power": 1e6})
        forms.append(replace(form, gpu_state=state))
    held = replace(result, run=replace(result.run, forms=tuple(forms)))
    sweep = _read(held, make_result(eager_cell()), make_failure(compiled_cell(mode="max-autotune")))
    (work,) = sweep.works
    compiled = work.cells[0]
    (clocks,) = [each.facts for each in compiled.notes if each.code == "clocks_differ"]
    assert (clocks["sides"], clocks["clocks_mhz"]) == (["eager", "compiled"], [1965, 1740])
    assert Note("cells_throttled", facts={"cells": 1, "of_cells": 2}) in sweep.notes
    assert [each.facts["limit"] for each in compiled.conditions.limits] == ["power"]
