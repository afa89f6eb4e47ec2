"""Which best modes are measured again, and when; cells are run by stand-ins."""

from contextlib import nullcontext

import pytest
from msgspec.structs import replace
from tests.sweep.running.test_cluster import Cluster
from tests.sweep.sweeps import CALL, Children, answered, compiled_cell, eager_cell, make_result

from tracekit.measure.plan import TimingPlan
from tracekit.model.progress import Silent
from tracekit.sweep.cells import CONFIRMING, Cell, CellAnswer, CellFailure, CellResult
from tracekit.sweep.running import sweeping
from tracekit.sweep.running.cluster import run_cells_on
from tracekit.sweep.running.folder import SweepFolder
from tracekit.sweep.running.sweeping import SweepPlan, ToDo, find_unconfirmed, run_cells

MODES = ("default", "reduce-overhead", "max-autotune")
CELLS = (eager_cell(), *(compiled_cell(mode=mode) for mode in MODES))
PLAN = SweepPlan(CELLS, 0, 40, TimingPlan())


pytestmark = pytest.mark.usefixtures("children")


def fill(folder: SweepFolder, *speedups: float, plan: SweepPlan = PLAN) -> None:
    """Cells of these speed-ups, the eager one first."""
    for at, (cell, speedup) in enumerate(zip(plan.cells, (1.0, *speedups), strict=False)):
        folder.save(make_result(sweeping.measured_as(plan, cell), 10_000.0, 10_000.0 / speedup, seed=at))


def run(folder: SweepFolder, plan: SweepPlan = PLAN) -> list[tuple[ToDo, CellResult | None]]:
    return list(run_cells(None, plan, find_unconfirmed(plan, folder), folder, lambda: nullcontext(Silent())))


def keys(folder: SweepFolder, plan: SweepPlan = PLAN) -> list[tuple[str, str]]:
    return [(each.cell.key, each.why) for each in find_unconfirmed(plan, folder)]


def test_the_best_of_three_is_run_once_more_beside_its_cell(children: Children, folder: SweepFolder) -> None:
    fill(folder, 1.5, 2.0, 1.4)
    before = folder.load_all()
    ((_, result),) = run(folder)
    assert result is not None and (result.process, result.outcome) == (CONFIRMING, "done")
    assert (folder.path / "cells" / f"{CELLS[2].key}.confirm.json").is_file()
    assert [job.request.mode for job in children.jobs] == ["reduce-overhead"]
    # It is no process of the cell.
    assert folder.load_all() == before and folder.load_again() == (result,)
    assert list(folder.load_processes(CELLS[2].key, 1)) == [1]
    assert keys(folder) == [] and run(folder) == [], "once"


def test_not_before_the_work_is_done_and_not_of_two_modes(folder: SweepFolder) -> None:
    fill(folder, 1.5, 2.0)
    assert keys(folder) == []
    assert keys(folder, replace(PLAN, cells=CELLS[:3])) == []
    folder.ask(None, CELLS, CALL)
    assert keys(folder, replace(PLAN, cells=CELLS[:3])) == [], "more was asked for before"
    fill(folder, 1.5, 2.0, 1.4)
    assert keys(folder, replace(PLAN, cells=CELLS[:3])) == [(CELLS[2].key, "missing")]


def test_another_best_is_measured_again_too_and_cells_asked_anew(folder: SweepFolder) -> None:
    fill(folder, 1.5, 2.0, 1.4)
    folder.ask(None, CELLS, CALL)
    run(folder)
    fill(folder, 1.5, 2.0, 3.0)
    assert keys(folder) == [(CELLS[3].key, "missing")]
    run(folder)
    fill(folder, 1.5, 2.0, 1.4)
    assert keys(folder) == [], "what was measured stays"
    folder.ask(None, CELLS, CALL, {cell.key for cell in CELLS})
    for at, cell in enumerate(CELLS):
        there = make_result(sweeping.measured_as(PLAN, cell), 10_000.0, 10_000.0 / (1.0, 1.5, 2.0, 1.4)[at])
        folder.save(replace(there, started="2099-01-01T00:00:00+00:00"))
    assert keys(folder) == [(CELLS[2].key, "anew")]


def test_one_that_fails_is_kept_and_tried_again_if_asked(children: Children, folder: SweepFolder) -> None:
    fill(folder, 1.5, 2.0, 1.4)
    children.ends = [answered(CellAnswer(None, CellFailure("out_of_memory", "no memory")))]
    run(folder)
    assert [each.outcome for each in folder.load_again()] == ["out_of_memory"]
    assert keys(folder) == []
    assert keys(folder, replace(PLAN, retry_failed=True)) == [(CELLS[2].key, "failed")]


def test_a_cell_that_failed_keeps_no_best_from_it(folder: SweepFolder) -> None:
    more: tuple[Cell, ...] = (*CELLS, compiled_cell(mode="max-autotune-no-cudagraphs"))
    plan = replace(PLAN, cells=more, retry_failed=True)
    fill(folder, 1.5, 2.0, 1.4, plan=plan)
    folder.save(replace(make_result(more[-1]), outcome="killed", failure=CellFailure("killed", "it died")))
    assert keys(folder, plan) == [(CELLS[2].key, "missing")]


def test_a_cluster_measures_it_as_any_cell(folder: SweepFolder) -> None:
    fill(folder, 1.5, 2.0, 1.4)
    cluster, left = Cluster((1, 4)), find_unconfirmed(PLAN, folder)
    ((_, result),) = run_cells_on(cluster, PLAN, left, folder, lambda: nullcontext(Silent()))
    assert result is not None and folder.load_again() == (result,)
