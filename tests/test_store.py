from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.model.run import Environment, FormResult, Recording, Run, Settings


def make_run() -> Run:
    settings = Settings(
        workload="flux",
        size="tiny",
        device="cpu",
        dtype="float32",
        scope="transformer",
        mode="default",
        fullgraph=True,
        dynamic=None,
        batch_size=1,
        height=128,
        width=128,
        steps=2,
        prompt="a cat",
        pretrained=None,
        seed=0,
        iterations=5,
    )
    environment = Environment("3.11", "Linux", None, 2, None, None, None, None, {"torch": "2.13.0"}, None)
    form = FormResult("eager", (5.0,), (1.0, 2.5), None, None, None, (Recording("light", "eager-light.json.gz", 3, 9),))
    return Run(
        schema="tracekit.run/1",
        status="incomplete",
        tracekit="0.1.0",
        command="tracekit profile flux",
        started="2026-01-01T00:00:00+00:00",
        settings=settings,
        size_reason="asked for",
        environment=environment,
        components=(),
        forms=(form,),
        order=("eager", "eager"),
        notes=(),
    )


def test_a_run_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    draft = store.begin(tmp_path / "flux-eager", force=False)
    folder = store.finish(make_run(), draft)
    assert store.load(folder) == replace(make_run(), status="complete")


def test_an_unfinished_run_has_incomplete_in_its_folder_name_and_status(tmp_path: Path) -> None:
    draft = store.begin(tmp_path / "flux-eager", force=False)
    store.save(make_run(), draft)
    assert draft.name == "flux-eager.incomplete"
    assert store.load(draft).status == "incomplete"
    assert not (tmp_path / "flux-eager").exists()


def test_a_run_that_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    folder = store.finish(make_run(), store.begin(tmp_path / "flux-eager", force=False))
    with pytest.raises(TracekitError, match="already there; pass --force"):
        store.begin(folder, force=False)
    draft = store.begin(folder, force=True)
    assert store.load(folder).status == "complete", "the old run must stay until the new one is whole"
    store.finish(replace(make_run(), command="again"), draft)
    assert store.load(folder).command == "again"
    assert [path.name for path in tmp_path.iterdir()] == ["flux-eager"]


def test_a_folder_that_is_no_run_is_never_replaced(tmp_path: Path) -> None:
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter.tex").write_text("words")
    with pytest.raises(TracekitError, match="no run of tracekit"):
        store.begin(precious, force=True)
    assert (precious / "chapter.tex").read_text() == "words"


def test_what_an_interrupted_run_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    draft = store.begin(tmp_path / "flux-eager", force=False)
    (draft / "eager-light.json.gz").write_bytes(b"half")
    assert list(store.begin(tmp_path / "flux-eager", force=False).iterdir()) == []


def test_the_name_of_an_interrupted_run_tells_where_its_part_is(tmp_path: Path) -> None:
    store.save(make_run(), store.begin(tmp_path / "flux-eager", force=False))
    with pytest.raises(TracekitError, match=r"never finished: .*flux-eager\.incomplete"):
        store.load(tmp_path / "flux-eager")


def test_a_damaged_manifest_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema": "tracekit.run/1", "status": ')
    with pytest.raises(TracekitError, match="cannot be read"):
        store.load(tmp_path)


def test_a_missing_recording_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match=r"eager-light\.json\.gz is missing"):
        store.recording_path(tmp_path, make_run().forms[0], "light")
    with pytest.raises(TracekitError, match="no rich recording of the eager form"):
        store.recording_path(tmp_path, make_run().forms[0], "rich")


def test_a_failed_write_leaves_the_old_text(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    store.write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        store.write_text(path, "\ud800")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["report.md"]
