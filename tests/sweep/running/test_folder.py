"""A sweep's folder: who owns a cell, what is kept of what was asked, what cannot be read."""

import errno
import fcntl
import json
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sweep.sweeps import CALL, compiled_cell, eager_cell, make_result

from tracekit.errors import TracekitError
from tracekit.sweep.running.folder import SweepFolder, is_outdated

CELL = eager_cell()


def test_a_cell_has_one_owner_whatever_their_folders_for_temporary_files(
    folder: SweepFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SweepFolder(folder.path).claimed(CELL.key):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        with folder.claimed(CELL.key) as ours:
            assert not ours
    with folder.claimed(CELL.key) as ours:
        assert ours


def is_empty_queue(folder: SweepFolder) -> bool:
    with folder._lock("queue", blocking=False) as ours:
        return ours


def test_a_cell_that_runs_alone_waits_for_all_others_and_they_for_it(folder: SweepFolder) -> None:
    def run(alone: bool) -> float:
        with SweepFolder(folder.path).turn(alone=alone):
            return time.monotonic()

    with ThreadPoolExecutor(2) as threads:
        with folder.turn(alone=False), SweepFolder(folder.path).turn(alone=False):
            waiting = threads.submit(run, True)
            # It has come when nobody else is let into the queue.
            while is_empty_queue(folder):
                time.sleep(0.01)
            assert not waiting.done()
            # Who comes after it lets it go first.
            later = threads.submit(run, False)
            with pytest.raises(TimeoutError):
                later.result(0.1)
        assert waiting.result(60) <= later.result(60)
        with folder.turn(alone=True), pytest.raises(TimeoutError):
            threads.submit(run, False).result(0.1)


def test_locks_are_none_of_the_cells_that_people_copy(folder: SweepFolder) -> None:
    with folder.claimed(CELL.key):
        folder.save(make_result(CELL))
    assert [path.name for path in (folder.path / "cells").iterdir()] == [f"{CELL.key}.json"]
    assert folder.unlocked() is None


def test_what_is_asked_for_waits_for_whoever_else_asks(folder: SweepFolder) -> None:
    with ThreadPoolExecutor(1) as threads:
        with SweepFolder(folder.path)._lock("sweep.json", blocking=False):
            asking = threads.submit(folder.ask, None, (CELL,), CALL)
            with pytest.raises(TimeoutError):
                asking.result(0.5)
            assert folder.asked() is None
        assert asking.result(60).cells == (CELL,)
    assert folder.asked() == asking.result()


def refuse_locks(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(number, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_where_nothing_can_be_locked_it_is_said_and_one_sweep_works(
    number: int, folder: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_locks(monkeypatch, number)
    assert folder.unlocked() == "no locks here"
    with folder.claimed(CELL.key) as ours:
        assert ours
    assert folder.ask(None, (CELL,), CALL).cells == (CELL,)


def test_another_trouble_with_a_lock_is_without_empty(folder: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_locks(monkeypatch, errno.EIO)
    with pytest.raises(TracekitError, match=r"cannot lock .*vit: no locks here"), folder.claimed(CELL.key):
        pass


def test_cells_come_in_the_order_they_were_asked_for_then_by_name(folder: SweepFolder) -> None:
    asked = (compiled_cell(batch_size=4), eager_cell())
    folder.ask(None, asked, CALL)
    strays = (compiled_cell("beit"), compiled_cell("bert"))
    for cell in (*strays, *asked[::-1]):
        folder.save(make_result(cell))
    assert [result.cell for result in folder.load_all()] == [*asked, *strays]


def test_a_damaged_list_of_what_was_asked_says_what_to_do(folder: SweepFolder) -> None:
    folder.ask(None, (CELL,), CALL)
    (folder.path / "sweep.json").write_text("{")
    with pytest.raises(TracekitError, match=r"sweep\.json cannot be read .*; remove it"):
        folder.asked()


@pytest.mark.parametrize("number", [0, 1_000_000])
def test_a_list_from_elsewhere_does_not_ask_for_a_million_processes(folder: SweepFolder, number: int) -> None:
    folder.ask(None, (CELL,), CALL, processes={CELL.key: number})
    with pytest.raises(TracekitError, match=r"sweep\.json cannot be read"):
        folder.asked()


def test_a_folder_of_an_older_version_goes_on(folder: SweepFolder) -> None:
    result = make_result(CELL)
    folder.save(result)
    folder.ask(None, (CELL,), CALL)
    for path in (folder.path / "sweep.json", folder.path / "cells" / f"{CELL.key}.json"):
        told = json.loads(path.read_text())
        told.pop("anew_since", None)
        told.get("run", {}).pop("sources", None)
        path.write_text(json.dumps(told))
    asked = folder.asked()
    assert asked is not None and asked.anew_since == {}
    assert folder.load(CELL.key) == result


@pytest.mark.parametrize(
    ("since", "outdated"),
    [(None, False), ("2026-11-21T18:59:59.999999+00:00", False), ("2026-11-21T19:00:00.000001+00:00", True)],
)
def test_what_is_older_than_it_was_asked_for_does_not_count(since: str | None, outdated: bool) -> None:
    result = replace(make_result(CELL), started="2026-11-21T19:00:00+00:00")
    assert is_outdated(result, since) is outdated
    assert is_outdated(None, since) is (since is not None)


@pytest.mark.parametrize("target", ["victim", "absent", "pipe", "/dev/null"])
def test_a_link_in_place_of_a_lock_is_one_line_and_leads_to_no_file(folder: SweepFolder, target: str) -> None:
    elsewhere = folder.path.parent
    (elsewhere / "victim").write_text("precious")
    os.mkfifo(elsewhere / "pipe")
    (folder.path / ".locks").mkdir()
    (folder.path / ".locks" / f"{CELL.key}.lock").symlink_to(elsewhere / target)
    with pytest.raises(TracekitError, match=r"cannot lock .*remove .*\.locks"), folder.claimed(CELL.key):
        raise AssertionError("it was locked")
    assert not (elsewhere / "absent").exists()
    assert (elsewhere / "victim").read_text() == "precious"


@pytest.mark.parametrize("name", ["cells", ".locks"])
@pytest.mark.parametrize("leads", ["to a folder", "nowhere"])
def test_a_sweep_whose_folders_are_links_is_not_written_to(folder: SweepFolder, name: str, leads: str) -> None:
    target = folder.path.parent / "somebody's"
    if leads == "to a folder":
        target.mkdir()
    if (folder.path / name).is_dir():
        (folder.path / name).rmdir()
    (folder.path / name).symlink_to(target)
    (folder.path / "sweep.json").write_text("{}")
    with pytest.raises(TracekitError, match="is a link"):
        folder.check()
    assert leads == "nowhere" or list(target.iterdir()) == []
    assert target.exists() == (leads == "to a folder")


def test_links_in_place_of_cells_are_replaced_and_not_followed(folder: SweepFolder) -> None:
    victim = folder.path.parent / "victim"
    victim.write_text("precious")
    for place in (folder.path / "cells" / f"{CELL.key}.json", folder.path / "sweep.json"):
        place.symlink_to(victim)
    folder.save(make_result(CELL))
    assert victim.read_text() == "precious"
    assert folder.load(CELL.key) == make_result(CELL)


def test_a_pipe_in_place_of_a_lock_is_not_waited_for(folder: SweepFolder) -> None:
    (folder.path / ".locks").mkdir()
    os.mkfifo(folder.path / ".locks" / f"{CELL.key}.lock")
    with folder.claimed(CELL.key) as ours:
        assert ours


def test_each_process_of_a_cell_has_a_file_and_a_lock(folder: SweepFolder) -> None:
    first = make_result(CELL)
    second = replace(first, process=2, seconds=3.0)
    folder.save(first)
    folder.save(second)
    (folder.path / "cells" / f"{CELL.key}.other.json").write_text("{")
    assert {path.name for path in (folder.path / "cells").glob(f"{CELL.key}*")} >= {f"{CELL.key}.2.json"}
    assert folder.load_processes(CELL.key, 3) == {1: first, 2: second, 3: None}
    assert folder.load_processes(CELL.key, 1) == {1: first, 2: second}
    assert folder.load_all() == (first, second)
    with folder.claimed(CELL.key), SweepFolder(folder.path).claimed(CELL.key, 2) as ours:
        assert ours


def test_how_many_processes_were_asked_for_stays_until_other_ones_are(folder: SweepFolder) -> None:
    other = compiled_cell("bert")
    assert folder.ask(None, (CELL, other), CALL).processes == {}
    assert folder.ask(None, (CELL, other), CALL, processes={CELL.key: 3, other.key: 3}).processes[CELL.key] == 3
    folder.ask(None, (CELL,), CALL)
    assert folder.ask(None, (CELL,), CALL, processes={CELL.key: 5}).processes == {CELL.key: 5, other.key: 3}
