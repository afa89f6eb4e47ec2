"""Whatever a sweep holds: a result, or one line of error."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzzing import damaged, fuzzed
from tests.sweep.sweeps import compiled_cell, eager_cell, make_result

from tracekit.sweep.cells import AskedCall
from tracekit.sweep.running.folder import SweepFolder

from ...cli.test_fuzz_run_folders import holding, run


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[SweepFolder, st.SearchStrategy[tuple[Path, object]]]:
    """A sound sweep, and damaged content for each of its files."""
    folder = SweepFolder(tmp_path_factory.mktemp("sweeps") / "vit")
    folder.check()
    cells = (eager_cell(), compiled_cell(), compiled_cell(batch_size=4))
    for cell in cells:
        folder.save(make_result(cell))
    folder.ask("quick", cells, AskedCall("tracekit sweep vit", "2026-11-21T19:00:00+00:00", 0, 40, None, 30.0, None))
    files = [folder.path / "sweep.json", *sorted((folder.path / "cells").iterdir())]
    damages = [st.tuples(st.just(path), damaged(json.loads(path.read_bytes()))) for path in files]
    return folder, st.one_of(damages)


@fuzzed(20)
@given(data=st.data())
def test_any_cell_of_a_sweep_is_a_result_or_one_line(
    sweep: tuple[SweepFolder, st.SearchStrategy[tuple[Path, object]]], data: st.DataObject
) -> None:
    folder, damages = sweep
    path, told = data.draw(damages)
    with holding(path, json.dumps(told).encode()):
        command = ("sweep", "--show", "{run}", "--out", "{out}/page.html", "--json", "{out}/x.json")
        run(command, run=folder.path, out=folder.path.parent / "out")
