"""Cells run by stand-ins: what is kept, what is run again, what two sweeps at once do."""

import errno
import hashlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.sweep.sweeps import CALL, Children, answered, compiled_cell, eager_cell, make_failure, make_result

from tracekit.errors import KilledRankError, TracekitError
from tracekit.measure.plan import TimingPlan
from tracekit.measure.processes import Ended, start_fresh
from tracekit.model.cell import Source
from tracekit.model.progress import Silent
from tracekit.model.workload import Request
from tracekit.sweep.cells import Cell, CellAnswer, CellFailure, CellResult
from tracekit.sweep.running import sweeping
from tracekit.sweep.running.folder import SweepFolder
from tracekit.sweep.running.fork_server import ForkServer
from tracekit.sweep.running.matrix import make_cell
from tracekit.sweep.running.sweeping import SweepPlan, ToDo, cell_place, find_left, run_cells, seconds_left
from tracekit.workloads.registry import find

CELLS = (eager_cell(), compiled_cell(), compiled_cell(mode="reduce-overhead"), compiled_cell(batch_size=4))


def make_plan(*cells: Cell, **changes: Any) -> SweepPlan:
    return replace(SweepPlan(cells or CELLS, 0, 40, TimingPlan()), **changes)


pytestmark = pytest.mark.usefixtures("children")


def run(
    plan: SweepPlan, folder: SweepFolder, left: tuple[ToDo, ...] | None = None, server: ForkServer | None = None
) -> list[tuple[ToDo, CellResult | None]]:
    left = find_left(plan, folder) if left is None else left
    return list(run_cells(server, plan, left, folder, lambda: nullcontext(Silent())))


def test_a_cell_of_several_ranks_is_timed_by_the_wing_that_runs_them_and_a_rank_that_fails_is_its_failure(
    folder: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, asked = compiled_cell("gpt", nproc=2, parallel="ddp"), []
    found = make_result(cell).run
    full = TracekitError("rank 1 of 2: CUDA out of memory")
    ends = [(None, False), (full, True), (KilledRankError("rank 1 of 2 ended"), False)]

    def time_cell(*given: Any, **_: Any) -> tuple[Ended, TracekitError | None, bool]:
        asked.append(given)
        return (Ended(0, b"[]", (), part=msgspec.json.encode(found)), *ends.pop(0))

    monkeypatch.setattr(sweeping, "load", lambda _: time_cell)
    ((_, done),) = run(make_plan(cell, rank_timeout_seconds=20.0), folder)
    assert done is not None and (done.outcome, done.run) == ("done", found)
    assert [(job.request.parallel, nproc, patience) for job, nproc, _, patience in asked] == [("ddp", 2, 20.0)]
    ((_, failed),) = run(make_plan(cell, again=True), folder, (ToDo(cell, 1, done.started, "anew"),))
    assert failed is not None and (failed.outcome, failed.run) == ("out_of_memory", found)
    assert failed.failure is not None and failed.failure.message == str(full)
    ((_, ended),) = run(make_plan(cell, again=True), folder, (ToDo(cell, 1, failed.started, "anew"),))
    assert ended is not None and ended.outcome == "killed"


def measured(cell: Cell) -> Cell:
    return sweeping.measured_as(make_plan(), cell)


def whys(plan: SweepPlan, folder: SweepFolder) -> dict[Cell, str]:
    return {each.cell: each.why for each in find_left(plan, folder)}


def test_every_cell_is_run_once_and_kept(children: Children, folder: SweepFolder) -> None:
    found = run(make_plan(), folder)
    assert [each.number for each, _ in found] == [1, 2, 3, 4]
    assert {each.cell.key for each, _ in found} == {cell.key for cell in CELLS}
    assert {result.cell.key for result in folder.load_all()} == {cell.key for cell in CELLS}
    assert run(make_plan(), folder) == []
    assert len(children.jobs) == 4
    assert sorted(path.name for path in (folder.path / "cells").iterdir()) == sorted(
        f"{cell.key}.json" for cell in CELLS
    )


def test_cells_are_forked_where_their_workload_was_imported_else_started_afresh(
    children: Children, folder: SweepFolder
) -> None:
    server = ForkServer([find("vit").module])
    run(make_plan(), folder, server=server)
    assert [each["start"] for each in children.more] == [server.start] * 4
    run(make_plan(replace(CELLS[0], key="other", request=Request("mlp"))), folder, server=server)
    assert children.more[-1]["start"] is start_fresh
    # A model whose file has gone is found out about by its cell.
    run(make_plan(replace(CELLS[0], key="gone", request=Request("gone.py:build"))), folder, server=server)
    assert children.more[-1]["start"] is None


def test_each_has_an_empty_cache_its_own_order_and_the_call_rule(children: Children, folder: SweepFolder) -> None:
    run(make_plan(timing=TimingPlan(2.0, 9.0), iterations=None, seed=5, cell_timeout_seconds=90.0), folder)
    assert [each["limit_seconds"] for each in children.more] == [90.0] * 4
    assert len({job.order_seed for job in children.jobs}) == 4
    assert {(job.target_percent, job.budget_seconds) for job in children.jobs} == {(2.0, 9.0)}
    assert {(job.request.seed, job.request.iterations) for job in children.jobs} == {(5, None)}
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        caches = [each[name] for each in children.environments]
        assert len(set(caches)) == 4
        assert not any(Path(each).exists() for each in caches)
    assert sorted(job.forms for job in children.jobs) == [("eager",), *[("eager", "compiled")] * 3]


def test_the_seed_draws_the_order(folder: SweepFolder) -> None:
    cells = tuple(compiled_cell(batch_size=number) for number in range(1, 30))
    orders = [[each.cell.key for each in find_left(make_plan(*cells, seed=seed), folder)] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) != orders[0]


def test_a_failing_cell_is_a_result_and_stops_nothing(children: Children, folder: SweepFolder) -> None:
    memory = CellFailure("out_of_memory", "not enough GPU memory at size full", "building vit", ("of its own",))
    part = msgspec.json.encode(make_result(CELLS[0]).run)
    children.ends = [
        answered(CellAnswer(None, memory), "chatter"),
        answered(CellAnswer(None, CellFailure("failed", "it failed")), "chatter", "the end"),
        Ended(-9, None, ("chatter",), late=True, word="compiling, graph 3", part=part),
        Ended(-9, None, ("chatter", "the end"), part=part),
        Ended(1, None, (), part=part),
    ]
    cells = (*CELLS, eager_cell("bert"), eager_cell("beit"))
    results = [each for _, each in run(make_plan(*cells, cell_timeout_seconds=60.0), folder) if each]
    died = "the process ended without a result: killed by SIGKILL, not by tracekit: possibly out of memory"
    assert [(each.outcome, each.failure and (each.failure.message, each.failure.last_lines)) for each in results] == [
        ("out_of_memory", ("not enough GPU memory at size full", ("of its own",))),
        # An error that says no more than its line comes with what was printed.
        ("failed", ("it failed", ("chatter", "the end"))),
        ("timed_out", ("timed out after 60 s (--cell-timeout)", ("chatter",))),
        ("killed", (died, ("chatter", "the end"))),
        ("failed", ("the process ended without a result: exit code 1", ())),
        ("done", None),
    ]
    assert [each.failure.during for each in results if each.failure][2] == "compiling, graph 3"
    # What a killed cell had found out is kept.
    assert [each.run for each in results[:5]] == [None, None, *[make_result(CELLS[0]).run] * 3]


def test_failed_cells_stay_unless_they_are_to_be_tried_again(folder: SweepFolder) -> None:
    folder.save(make_failure(CELLS[1], "failed"))
    folder.save(make_result(CELLS[0]))
    assert set(whys(make_plan(), folder)) == set(CELLS[2:])
    again = make_plan(retry_failed=True)
    assert whys(again, folder) == {CELLS[1]: "failed", CELLS[2]: "missing", CELLS[3]: "missing"}
    run(again, folder)
    assert {result.outcome for result in folder.load_all()} == {"done"}


def ask_anew(folder: SweepFolder, *cells: Cell) -> None:
    folder.ask(None, CELLS, CALL, {cell.key for cell in cells or CELLS})


def test_all_anew_goes_on_where_it_was_interrupted_whoever_goes_on(folder: SweepFolder) -> None:
    run(make_plan(), folder)
    ask_anew(folder)
    left = find_left(make_plan(), folder)
    assert [each.why for each in left] == ["anew"] * 4
    run(make_plan(), folder, left[:1])
    rest = {each.cell for each in left[1:]}
    assert set(whys(make_plan(), folder)) == rest
    ask_anew(folder)
    assert set(whys(make_plan(), folder)) == rest, "asked again: it goes on"
    run(make_plan(), folder)
    assert find_left(make_plan(), folder) == ()
    ask_anew(folder)
    assert len(find_left(make_plan(), folder)) == 4, "done: it begins again"


def test_a_cell_is_measured_in_as_many_processes_as_were_asked_for_and_none_twice(
    children: Children, folder: SweepFolder
) -> None:
    cells, plan = CELLS[:2], make_plan(*CELLS[:2], processes=3)
    left = find_left(plan, folder)
    assert [each.process for each in left] == [1, 1, 2, 2, 3, 3], "every cell once before any again"
    run(plan, folder, left[:3])
    assert [each.process for each in find_left(plan, folder)] == [2, 3, 3]
    run(plan, folder)
    assert len(children.jobs) == 6 and len({job.order_seed for job in children.jobs}) == 6
    assert [each.process for each in folder.load_all() if each.cell == measured(cells[0])] == [1, 2, 3]
    more = find_left(replace(plan, processes=5), folder)
    assert [each.process for each in more] == [4, 4, 5, 5]
    run(plan, folder, more[:2])
    assert find_left(plan, folder) == (), "fewer is no other sweep"
    folder.ask(None, cells, CALL, processes=dict.fromkeys((cell.key for cell in cells), 5))
    assert [each.process for each in find_left(make_plan(*cells), folder)] == [5, 5], "the folder knows how many"
    ask_anew(folder, cells[0])
    assert sorted(each.process for each in find_left(plan, folder)) == [1, 2, 3, 4], "all that are there"


def test_a_process_that_failed_is_tried_again_and_no_other(children: Children, folder: SweepFolder) -> None:
    plan = make_plan(CELLS[0], processes=2)
    children.ends = [Ended(-9, None, ())]
    run(plan, folder)
    assert [each.outcome for each in folder.load_all()] == ["killed", "done"]
    assert find_left(plan, folder) == ()
    assert [(each.process, each.why) for each in find_left(replace(plan, retry_failed=True), folder)] == [(1, "failed")]


def test_what_is_asked_anew_later_does_not_count_as_begun(folder: SweepFolder) -> None:
    run(make_plan(), folder)
    ask_anew(folder, CELLS[0])
    assert set(whys(make_plan(), folder)) == {CELLS[0]}
    run(make_plan(), folder)
    ask_anew(folder, CELLS[1])
    ask_anew(folder)
    assert whys(make_plan(), folder) == dict.fromkeys(CELLS, "anew")
    asked = folder.asked()
    assert asked is not None
    assert asked.anew_since[CELLS[1].key] < asked.anew_since[CELLS[0].key], "what had begun goes on"


def test_a_cell_of_another_version_is_run_anew(
    folder: SweepFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = make_cell("eager", Request("my_model.py:build"))
    found = make_result(own)
    assert found.run is not None
    (tmp_path / "my_model.py").write_text("one")
    source = Source("my_model.py", hashlib.sha256(b"one").hexdigest())
    folder.save(replace(found, run=replace(found.run, sources=(source,))))
    assert whys(make_plan(own), folder) == {}
    (tmp_path / "my_model.py").write_text("two")
    assert whys(make_plan(own), folder) == {own: "changed"}


def test_another_matrix_extends_the_folder_and_the_order_is_as_asked(folder: SweepFolder) -> None:
    folder.ask(None, CELLS[:2], CALL)
    run(make_plan(*CELLS[:2]), folder)
    asked = folder.ask("vision", CELLS, CALL)
    assert (asked.cells, asked.suite, len(asked.calls)) == (CELLS, "vision", 2)
    assert len(run(make_plan(), folder)) == 2
    assert [result.cell.key for result in folder.load_all()] == [cell.key for cell in CELLS]


def test_a_cell_is_saved_before_anything_is_cleared_away(folder: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[bool] = []
    real = sweeping.cell_place

    @contextmanager
    def noted() -> Iterator[str]:
        with real() as place:
            yield place
            there.append(folder.load(CELLS[0].key) is not None)

    monkeypatch.setattr(sweeping, "cell_place", noted)
    run(make_plan(CELLS[0]), folder)
    assert there == [True]


def test_a_cell_that_another_process_works_on_or_has_done_since_is_left_to_it(
    children: Children, folder: SweepFolder
) -> None:
    left = find_left(make_plan(), folder)
    folder.save(make_result(CELLS[1]))
    with SweepFolder(folder.path).claimed(CELLS[0].key) as ours:
        assert ours
        found = run(make_plan(), folder, left)
    assert {each.cell for each, result in found if result is None} == set(CELLS[:2])
    assert len(children.jobs) == 2
    assert folder.load(CELLS[0].key) is None


@pytest.mark.parametrize("content", [b"{", b"\xff", b"", b'{"schema": "another"}'])
def test_a_file_that_cannot_be_read_is_as_good_as_none(content: bytes, folder: SweepFolder) -> None:
    plan = make_plan(*CELLS[:2])
    run(plan, folder)
    path = folder.path / "cells" / f"{CELLS[0].key}.json"
    path.write_bytes(content)
    assert [result.cell.key for result in folder.load_all()] == [CELLS[1].key]
    assert list(folder.unreadable) == [path.name]
    assert set(whys(plan, folder)) == {CELLS[0]}
    run(plan, folder)
    assert len(folder.load_all()) == 2
    assert folder.unreadable == {}


def test_what_is_left_is_estimated_from_cells_alike() -> None:
    left = tuple(ToDo(cell, number, None) for number, cell in enumerate(CELLS, 1))
    assert seconds_left(left, ()) is None
    done = (make_result(CELLS[0], seconds=10.0), make_result(CELLS[1], seconds=40.0))
    assert seconds_left(left, done) == pytest.approx(10 + 3 * 40)
    assert seconds_left((ToDo(compiled_cell("beit"), 1, None),), done) == pytest.approx(25)


FORK = multiprocessing.get_context("fork")


def sweep_slowly(folder: SweepFolder, seconds: float, seed: int) -> None:
    """Runs the cells with processes that all take a while but the first, and notes each."""
    children = Children()

    def slow(*arguments: Any, **more: Any) -> Ended:
        with folder.path.with_name("note").open("a") as note:
            note.write("a cell\n")
        if folder.load_all():
            time.sleep(seconds)
        return children(*arguments, **more)

    sweeping.run_module = slow  # type: ignore[assignment]
    run(make_plan(seed=seed), folder)


def test_two_sweeps_in_one_folder_share_the_cells(folder: SweepFolder) -> None:
    both = [FORK.Process(target=sweep_slowly, args=(folder, 0.3, seed)) for seed in (0, 1)]
    for each in both:
        each.start()
    for each in both:
        each.join(60)
    assert [each.exitcode for each in both] == [0, 0]
    assert len(folder.load_all()) == 4
    assert folder.path.with_name("note").read_text().count("a cell") == 4, "no cell was run twice"


def test_a_sweep_that_is_killed_goes_on_where_it_was(folder: SweepFolder, children: Children) -> None:
    killed = FORK.Process(target=sweep_slowly, args=(folder, 60, 0))
    killed.start()
    while not folder.load_all():
        time.sleep(0.05)
        assert killed.is_alive()
    killed.kill()
    killed.join()
    done = len(folder.load_all())
    assert done == 1
    run(make_plan(), folder)
    assert len(children.jobs) == 4 - done
    assert len(folder.load_all()) == 4


def test_what_somebody_still_writes_there_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.rmdir
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def busy(path: Any, **more: Any) -> None:
        if str(path).endswith("inductor"):
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        real(path, **more)

    with cell_place() as place:
        Path(place, "inductor").mkdir()
        monkeypatch.setattr(os, "rmdir", busy)
    monkeypatch.setattr(os, "rmdir", real)
    assert Path(place).exists()
