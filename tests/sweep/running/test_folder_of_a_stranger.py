"""A sweep's folder that came from elsewhere leads nowhere else."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.runs import edited
from tests.sweep.sweeps import eager_cell, make_asked, make_result

from tracekit.errors import TracekitError
from tracekit.sweep.cells import Asked, CellResult
from tracekit.sweep.running.folder import SweepFolder

from ...test_store import LINKS, TURNS, has_unbounded_list, loose_fields, unbounded


def sweep(parent: Path) -> tuple[SweepFolder, Path]:
    made = SweepFolder(parent / "sweep")
    made.check()
    made.save(make_result(eager_cell()))
    made.ask(None, (eager_cell(),), make_asked([eager_cell()]).calls[0])
    return made, made.path / "cells" / f"{eager_cell().key}.json"


@pytest.mark.parametrize("turn", TURNS)
def test_a_cell_that_leads_out_of_its_sweep_is_as_good_as_not_there(tmp_path: Path, turn: str) -> None:
    made, path = sweep(tmp_path)
    path.rename(tmp_path / "outside.json")
    TURNS[turn](path, tmp_path / "outside.json")
    assert made.load_all() == () and made.load(eager_cell().key) is None
    assert list(made.unreadable) == [path.name]


@pytest.mark.parametrize("turn", LINKS)
def test_what_was_asked_of_a_sweep_lies_in_it(tmp_path: Path, turn: str) -> None:
    made, _ = sweep(tmp_path)
    (made.path / "sweep.json").rename(tmp_path / "outside.json")
    LINKS[turn](made.path / "sweep.json", tmp_path / "outside.json")
    with pytest.raises(TracekitError, match="leads out"):
        made.asked()


@pytest.mark.parametrize("key", ["../../outside", "/tmp/outside", "a/b", "a\0b"])
def test_a_key_that_is_a_path_is_no_cell_and_none_that_was_asked_for(tmp_path: Path, key: str) -> None:
    made, path = sweep(tmp_path)
    with edited(path) as told:
        told["cell"]["key"] = key
    assert made.load_all() == ()
    with edited(made.path / "sweep.json") as told:
        told["cells"][0]["key"] = key
    with pytest.raises(TracekitError, match=r"sweep\.json cannot be read"):
        made.asked()


@pytest.mark.parametrize("is_loose", [unbounded, has_unbounded_list])
@pytest.mark.parametrize("kind", [CellResult, Asked])
def test_every_number_text_and_list_of_a_file_is_bounded(kind: type, is_loose: Callable[[object], bool]) -> None:
    assert loose_fields(kind, is_loose) == []
