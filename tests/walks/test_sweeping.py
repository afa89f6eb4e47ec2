"""Cells run by stand-ins: what is kept, what is run again, what two sweeps at once do."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.sweeps import compiled_cell, eager_cell, make_failure, make_result

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress, Silent
from tracekit.model.sweep import AskedCall, Cell, CellAnswer, CellFailure, CellJob, CellResult, Source
from tracekit.model.workload import Request
from tracekit.walks import sweeping
from tracekit.walks.fork_server import ForkServer
from tracekit.walks.plan import TimingPlan
from tracekit.walks.processes import Ended, run_module, start_fresh
from tracekit.walks.sweep_cells import make_cell
from tracekit.walks.sweep_folder import SweepFolder
from tracekit.walks.sweeping import (
    SweepPlan,
    ToDo,
    caches_in,
    cell_place,
    cell_words,
    clear_dead_places,
    find_left,
    run_cells,
    seconds_left,
)
from tracekit.workloads.registry import find

CELLS = (eager_cell(), compiled_cell(), compiled_cell(mode="reduce-overhead"), compiled_cell(batch_size=4))


CALL = AskedCall("tracekit sweep vit", "2026-11-21T19:00:00+00:00", 0, 40, None, None, None)


ROOT = Path(__file__).parents[2]


def make_plan(*cells: Cell, **changes: Any) -> SweepPlan:
    return replace(SweepPlan(cells or CELLS, 0, 40, TimingPlan()), **changes)


@contextmanager
def silent() -> Iterator[Progress]:
    yield Silent()


def answer_of(job: CellJob) -> CellAnswer:
    form: Any = job.forms[-1]
    cell = next(each for each in CELLS if each.form == form and each.request.mode == job.request.mode)
    return CellAnswer(make_result(replace(cell, request=job.request)).run, None)


class Children:
    """Stands for `run_module`; `ends` says how each cell's process ends, by its place in the order."""

    def __init__(self, *ends: Ended) -> None:
        self.jobs: list[CellJob] = []
        self.environments: list[dict[str, str]] = []
        self.more: list[dict[str, Any]] = []
        self._ends = list(ends)

    def __call__(self, module: str, job: bytes, draft: Path, environment: dict[str, str], **more: Any) -> Ended:
        assert module == "tracekit.walks.cell_process"
        self.more.append(more)
        self.jobs.append(msgspec.json.decode(job, type=CellJob))
        self.environments.append(environment)
        return self._ends.pop(0) if self._ends else Ended(0, msgspec.json.encode(answer_of(self.jobs[-1])), ())


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    fake = Children()
    monkeypatch.setattr(sweeping, "run_module", fake)
    return fake


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    made = SweepFolder(tmp_path / "sweeps" / "vit")
    made.check()
    return made


def run(plan: SweepPlan, folder: SweepFolder) -> list[tuple[ToDo, CellResult | None]]:
    return list(run_cells(plan, find_left(plan, folder), folder, silent))


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
    plan = make_plan()
    list(run_cells(plan, find_left(plan, folder), folder, silent, server))
    assert [each["start"] for each in children.more] == [server.start] * 4
    other = make_plan(replace(CELLS[0], key="other", request=Request("mlp")))
    list(run_cells(other, find_left(other, folder), folder, silent, server))
    assert children.more[-1]["start"] is start_fresh


def test_a_model_whose_file_has_gone_is_found_out_about_by_its_cell_alone(
    children: Children, folder: SweepFolder
) -> None:
    plan = make_plan(replace(CELLS[0], key="gone", request=Request("gone.py:build")), CELLS[1])
    list(run_cells(plan, find_left(plan, folder), folder, silent, ForkServer([])))
    assert len(children.jobs) == 2


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


def test_a_failing_cell_is_a_result_and_stops_nothing(monkeypatch: pytest.MonkeyPatch, folder: SweepFolder) -> None:
    memory = CellAnswer(None, CellFailure("out_of_memory", "not enough GPU memory at size full", "building vit"))
    ends = (
        Ended(0, msgspec.json.encode(memory), ()),
        Ended(-9, None, ("chatter",), late=True, word="compiling, graph 3"),
        Ended(-9, None, ("chatter", "the end")),
    )
    monkeypatch.setattr(sweeping, "run_module", Children(*ends))
    results = [result for _, result in run(make_plan(cell_timeout_seconds=60.0), folder) if result]
    assert [result.outcome for result in results] == ["out_of_memory", "timed_out", "killed", "done"]
    said = [result.failure.message for result in results if result.failure]
    assert said == [
        "not enough GPU memory at size full",
        "not done after 60 s (--cell-timeout)",
        "its process gave no answer (killed by signal 9): the machine may have run out of memory",
    ]
    assert results[1].failure is not None
    assert (results[1].failure.during, results[1].failure.last_lines) == ("compiling, graph 3", ("chatter",))


def test_failed_cells_stay_unless_they_are_to_be_tried_again(children: Children, folder: SweepFolder) -> None:
    folder.save(make_failure(CELLS[1], "failed"))
    folder.save(make_result(CELLS[0]))
    assert {each.cell for each in find_left(make_plan(), folder)} == set(CELLS[2:])
    again = {each.cell: each.why for each in find_left(make_plan(retry_failed=True), folder)}
    assert again == {CELLS[1]: "failed", CELLS[2]: "missing", CELLS[3]: "missing"}
    run(make_plan(retry_failed=True), folder)
    assert {result.outcome for result in folder.load_all()} == {"done"}


def ask_anew(folder: SweepFolder, *cells: Cell) -> None:
    folder.ask(None, CELLS, CALL, {cell.key for cell in cells or CELLS})


def test_all_anew_goes_on_where_it_was_interrupted_whoever_goes_on(children: Children, folder: SweepFolder) -> None:
    run(make_plan(), folder)
    ask_anew(folder)
    left = find_left(make_plan(), folder)
    assert [each.why for each in left] == ["anew"] * 4
    done = [next(run_cells(make_plan(), left, folder, silent))[0].cell]
    assert {each.cell for each in find_left(make_plan(), folder)} == {*CELLS} - {*done}
    ask_anew(folder)
    assert {each.cell for each in find_left(make_plan(), folder)} == {*CELLS} - {*done}, "asked again: it goes on"
    run(make_plan(), folder)
    assert find_left(make_plan(), folder) == ()
    ask_anew(folder)
    assert len(find_left(make_plan(), folder)) == 4, "done: it begins again"


def test_what_is_asked_anew_later_does_not_count_as_begun(children: Children, folder: SweepFolder) -> None:
    run(make_plan(), folder)
    ask_anew(folder, CELLS[0])
    assert [each.cell for each in find_left(make_plan(), folder)] == [CELLS[0]]
    run(make_plan(), folder)
    ask_anew(folder, CELLS[1])
    ask_anew(folder)
    left = find_left(make_plan(), folder)
    assert [each.why for each in left] == ["anew"] * 4
    first = next(each for each in left if each.cell == CELLS[1])
    asked = folder.asked()
    assert asked is not None
    assert asked.anew_since[first.cell.key] < asked.anew_since[CELLS[0].key], "what had begun goes on"


def test_a_cell_of_another_version_is_run_anew(
    children: Children, folder: SweepFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = make_cell("eager", Request("my_model.py:build"))
    found = make_result(own)
    assert found.run is not None
    (tmp_path / "my_model.py").write_text("one")
    digest = hashlib.sha256(b"one").hexdigest()
    folder.save(replace(found, run=replace(found.run, sources=(Source("my_model.py", digest),))))
    assert find_left(make_plan(own), folder) == ()
    (tmp_path / "my_model.py").write_text("two")
    assert [each.why for each in find_left(make_plan(own), folder)] == ["changed"]
    folder.save(found)
    assert find_left(make_plan(own), folder) == (), "of what nobody noted nothing is known"


def test_another_matrix_extends_the_folder_and_the_order_is_as_asked(children: Children, folder: SweepFolder) -> None:
    call = CALL
    folder.ask(None, CELLS[:2], call)
    run(make_plan(*CELLS[:2]), folder)
    asked = folder.ask("vision", CELLS, call)
    assert asked.cells == CELLS
    assert (asked.suite, len(asked.calls)) == ("vision", 2)
    assert len(run(make_plan(), folder)) == 2
    assert [result.cell.key for result in folder.load_all()] == [cell.key for cell in CELLS]


def test_what_killed_sweeps_left_goes_before_cells_are_run(
    children: Children, folder: SweepFolder, temporary: Path
) -> None:
    left = temporary / "tracekit-cell-dead"
    left.mkdir()
    (left / "lock").touch()
    run(make_plan(CELLS[0]), folder)
    assert not left.exists()


def test_a_cell_is_saved_before_anything_is_cleared_away(
    children: Children, folder: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[bool] = []
    real = sweeping.cell_place

    @contextmanager
    def noted() -> Iterator[Path]:
        with real() as place:
            yield place
            there.append(folder.load(CELLS[0].key) is not None)

    monkeypatch.setattr(sweeping, "cell_place", noted)
    run(make_plan(CELLS[0]), folder)
    assert there == [True]


def test_a_cell_that_another_process_works_on_is_left_to_it(children: Children, folder: SweepFolder) -> None:
    with SweepFolder(folder.path).claimed(CELLS[0].key) as ours:
        assert ours
        found = run(make_plan(), folder)
    assert [result is None for each, result in found if each.cell == CELLS[0]] == [True]
    assert len(children.jobs) == 3
    assert folder.load(CELLS[0].key) is None


def test_a_cell_that_another_process_has_done_since_is_left_as_it_is(children: Children, folder: SweepFolder) -> None:
    left = find_left(make_plan(), folder)
    folder.save(make_result(CELLS[0]))
    found = list(run_cells(make_plan(), left, folder, silent))
    assert [each.cell for each, result in found if result is None] == [CELLS[0]]


@pytest.mark.parametrize("content", [b"{", b"\xff", b"", b'{"schema": "another"}'])
def test_a_file_that_cannot_be_read_is_as_good_as_none(content: bytes, children: Children, folder: SweepFolder) -> None:
    run(make_plan(*CELLS[:2]), folder)
    path = folder.path / "cells" / f"{CELLS[0].key}.json"
    path.write_bytes(content)
    assert [result.cell.key for result in folder.load_all()] == [CELLS[1].key]
    assert list(folder.unreadable) == [path.name]
    assert [each.cell for each in find_left(make_plan(*CELLS[:2]), folder)] == [CELLS[0]]
    run(make_plan(*CELLS[:2]), folder)
    assert len(folder.load_all()) == 2
    assert folder.unreadable == {}


def test_a_killed_cell_keeps_what_it_had_found_out(monkeypatch: pytest.MonkeyPatch, folder: SweepFolder) -> None:
    found = make_result(CELLS[0]).run
    part = msgspec.json.encode(found)
    ends = (Ended(-9, None, (), part=part), Ended(-15, None, (), late=True, part=part), Ended(1, None, (), part=part))
    monkeypatch.setattr(sweeping, "run_module", Children(*ends))
    results = [result for _, result in run(make_plan(*CELLS[:3]), folder) if result]
    assert [result.outcome for result in results] == ["killed", "timed_out", "failed"]
    assert [result.run for result in results] == [found] * 3


def test_an_error_that_says_no_more_comes_with_what_was_printed(
    monkeypatch: pytest.MonkeyPatch, folder: SweepFolder
) -> None:
    short, long = CellFailure("failed", "it failed"), CellFailure("failed", "it failed", "building", ("of its own",))
    ends = [Ended(0, msgspec.json.encode(CellAnswer(None, each)), ("chatter", "the end")) for each in (short, long)]
    monkeypatch.setattr(sweeping, "run_module", Children(*ends))
    results = [result for _, result in run(make_plan(*CELLS[:2]), folder) if result]
    lines = [result.failure.last_lines for result in results if result.failure]
    assert lines == [("chatter", "the end"), ("of its own",)]


def test_a_folder_of_something_else_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(TracekitError, match="is no sweep of tracekit"):
        SweepFolder(tmp_path).check()
    with pytest.raises(TracekitError, match="is a file"):
        SweepFolder(tmp_path / "mine.txt").check()


def test_what_is_left_is_estimated_from_cells_alike() -> None:
    left = tuple(ToDo(cell, number, None) for number, cell in enumerate(CELLS, 1))
    assert seconds_left(left, ()) is None
    done = (make_result(CELLS[0], seconds=10.0), make_result(CELLS[1], seconds=40.0))
    assert seconds_left(left, done) == pytest.approx(10 + 3 * 40)
    assert seconds_left((ToDo(compiled_cell("beit"), 1, None),), done) == pytest.approx(25)


def test_a_cell_is_told_from_the_others_in_words() -> None:
    cell = compiled_cell("flux", "reduce-overhead", scope="regional", batch_size=5, height=512, width=256)
    assert cell_words(cell) == "flux batch 5, 512x256, reduce-overhead of regional"
    assert cell_words(eager_cell("vit", dtype="float16")) == "vit batch 1, float16, eager"


def test_a_process_whose_time_is_up_is_ended_and_said_to_be_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tracekit.walks import processes

    real = subprocess.Popen
    script = (
        "import pathlib, sys, time\n"
        "pathlib.Path(sys.argv[1]).with_name('word').write_text('compiling')\n"
        "print('so far', flush=True)\n"
        "time.sleep(60)"
    )

    def started(command: list[str], **more: Any) -> Any:
        return real([sys.executable, "-c", script, *command[-2:]], **more)

    monkeypatch.setattr(processes.subprocess, "Popen", started)
    words: list[str] = []
    began = time.monotonic()
    ended = run_module("any", b"{}", tmp_path, {}, limit_seconds=1.5, on_word=words.append)
    assert (ended.late, ended.answer, ended.lines, ended.word) == (True, None, ("so far",), "compiling")
    assert words == ["compiling"]
    assert time.monotonic() - began < 20


#: Runs the cells of a small matrix with processes that take a while, and notes each.
SWEEPER = """
import sys, time, pathlib
sys.path.insert(0, {root!r})
from tests.walks import test_sweeping as here
from tracekit.walks import sweeping
from tracekit.walks.sweep_cells import make_cell
class Slow(here.Children):
    def __call__(self, *arguments, **more):
        with open({note!r}, "a") as file:
            print(arguments[3]["TORCHINDUCTOR_CACHE_DIR"], file=file)
        time.sleep({seconds})
        return super().__call__(*arguments, **more)
sweeping.run_module = Slow()
folder = here.SweepFolder(pathlib.Path({folder!r}))
folder.check()
here.run(here.make_plan(seed=int(sys.argv[1])), folder)
"""


def start_sweeper(tmp_path: Path, seconds: float, seed: int = 0) -> subprocess.Popen[bytes]:
    note, folder = str(tmp_path / "note"), str(tmp_path / "shared")
    script = SWEEPER.format(root=str(ROOT), note=note, folder=folder, seconds=seconds)
    return subprocess.Popen([sys.executable, "-c", script, str(seed)], env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_two_sweeps_in_one_folder_share_the_cells(tmp_path: Path) -> None:
    both = [start_sweeper(tmp_path, 0.3, seed) for seed in (0, 1)]
    assert [each.wait(60) for each in both] == [0, 0]
    assert len(SweepFolder(tmp_path / "shared").load_all()) == 4
    assert len((tmp_path / "note").read_text().splitlines()) == 4, "no cell was run twice"


def test_a_sweep_that_is_killed_goes_on_where_it_was(tmp_path: Path, children: Children) -> None:
    folder = SweepFolder(tmp_path / "shared")
    killed = start_sweeper(tmp_path, 0.5)
    while not (folder.path / "cells").is_dir() or not folder.load_all():
        time.sleep(0.05)
        assert killed.poll() is None
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    done = len(folder.load_all())
    assert 1 <= done < 4
    run(make_plan(), folder)
    assert len(children.jobs) == 4 - done
    assert len(folder.load_all()) == 4


OWNER = """
import time
from tracekit.walks.sweeping import cell_place
with cell_place() as place:
    (place / "inductor").mkdir()
    print(place, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_both_caches_are_in_an_empty_folder_that_goes() -> None:
    with cell_place() as place:
        caches = caches_in(place)
        assert caches == {"TORCHINDUCTOR_CACHE_DIR": f"{place}/inductor", "TRITON_CACHE_DIR": f"{place}/triton"}
        assert not any(Path(each).exists() for each in caches.values())
        (place / "inductor").mkdir()
    assert not place.exists()


def test_what_somebody_still_writes_there_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.rmdir

    def busy(path: Any, **more: Any) -> None:
        if str(path).endswith("inductor"):
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        real(path, **more)

    with cell_place() as place:
        (place / "inductor").mkdir()
        monkeypatch.setattr(os, "rmdir", busy)
    monkeypatch.setattr(os, "rmdir", real)
    assert place.exists()


def test_what_a_killed_sweep_left_goes_and_what_a_living_one_has_stays(temporary: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    owner = subprocess.Popen([sys.executable, "-c", OWNER], env=environment, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    place = Path(owner.stdout.readline().strip())
    clear_dead_places()
    assert (place / "inductor").is_dir()
    os.kill(owner.pid, signal.SIGKILL)
    owner.communicate()
    clear_dead_places()
    assert not place.exists()


def test_a_folder_of_which_nobody_knows_whether_its_owner_lives_stays(temporary: Path) -> None:
    (temporary / "tracekit-cell-unknown").mkdir()
    (temporary / "tracekit-cell-file").write_text("mine")
    other = temporary / "other"
    other.mkdir()
    (other / "lock").touch()
    (temporary / "tracekit-cell-link").symlink_to(other)
    clear_dead_places()
    assert len(list(temporary.glob("tracekit-cell-*"))) == 3
    assert (other / "lock").exists()


def test_without_locks_there_is_a_folder_and_none_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with cell_place() as place:
        clear_dead_places()
        assert place.is_dir()
    assert not place.exists()


def test_a_folder_of_another_user_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = temporary / "tracekit-cell-theirs"
    place.mkdir()
    (place / "lock").touch()
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    clear_dead_places()
    assert place.is_dir()
    monkeypatch.setattr(os, "getuid", lambda: mine)
    clear_dead_places()
    assert not place.exists()
