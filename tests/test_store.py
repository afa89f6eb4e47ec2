from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.model.provenance import CompiledGraph, CompiledSites, EagerOp, EagerOps, LaunchSite, TensorShape
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
    folder = finished(tmp_path / "flux-eager")
    assert store.load(folder) == replace(make_run(), status="complete")


def finished(folder: Path, *, force: bool = False, **changes: object) -> Path:
    with store.begun(folder, force=force) as draft:
        return store.finish(replace(make_run(), **changes), draft)  # type: ignore[arg-type]


def interrupted(folder: Path) -> Path:
    with store.begun(folder, force=False) as draft:
        store.save(make_run(), draft)
    return draft


def test_an_unfinished_run_has_incomplete_in_its_folder_name_and_status(tmp_path: Path) -> None:
    draft = interrupted(tmp_path / "flux-eager")
    assert draft.name == "flux-eager.incomplete"
    assert store.load(draft).status == "incomplete"
    assert not (tmp_path / "flux-eager").exists()
    assert [path.name for path in draft.iterdir()] == ["run.json"]


def test_a_run_that_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    folder = finished(tmp_path / "flux-eager")
    with pytest.raises(TracekitError, match="already there; pass --force"), store.begun(folder, force=False):
        pass
    with store.begun(folder, force=True) as draft:
        assert store.load(folder).status == "complete", "the old run must stay until the new one is whole"
        store.finish(replace(make_run(), command="again"), draft)
    assert store.load(folder).command == "again"
    assert [path.name for path in tmp_path.iterdir()] == ["flux-eager"]
    assert [path.name for path in folder.iterdir()] == ["run.json"]


@pytest.mark.parametrize("name", ["thesis", "thesis.incomplete"])
def test_a_folder_that_is_no_run_is_never_replaced(tmp_path: Path, name: str) -> None:
    precious = tmp_path / name
    precious.mkdir()
    (precious / "run.json").write_text('{"my": "data"}')
    with (
        pytest.raises(TracekitError, match=r"no run of tracekit|not made by tracekit"),
        store.begun(tmp_path / "thesis", force=True),
    ):
        pass
    assert (precious / "run.json").read_text() == '{"my": "data"}'


def test_what_an_interrupted_run_measured_is_kept_unless_forced(tmp_path: Path) -> None:
    draft = interrupted(tmp_path / "flux-eager")
    (draft / "eager-light.json.gz").write_bytes(b"half")
    for ended in ("was interrupted", "failed"):
        with (
            pytest.raises(TracekitError, match=f"holds what a run measured until it {ended}; pass --force"),
            store.begun(tmp_path / "flux-eager", force=False),
        ):
            pass
        store.mark_failed(draft, ValueError("theirs"))
    assert (draft / "eager-light.json.gz").read_bytes() == b"half"
    with store.begun(tmp_path / "flux-eager", force=True) as again:
        assert not (again / "eager-light.json.gz").exists()


def test_a_run_that_ended_before_a_call_was_timed_is_in_nobody_s_way(tmp_path: Path) -> None:
    warm = replace(make_run().forms[0], wall_us=(), recordings=())
    with store.begun(tmp_path / "flux-eager", force=False) as draft:
        store.save(replace(make_run(), forms=(warm,)), draft)
    with store.begun(tmp_path / "flux-eager", force=False) as again:
        assert list(again.iterdir()) == []


def test_what_a_killed_run_left_before_it_measured_anything_is_cleared(tmp_path: Path) -> None:
    draft = tmp_path / "flux-eager.incomplete"
    draft.mkdir()
    (draft / "output.log").write_text("chatter")
    with store.begun(tmp_path / "flux-eager", force=False):
        assert not (draft / "output.log").exists()
        store.save(replace(make_run(), forms=()), draft)
    with store.begun(tmp_path / "flux-eager", force=False):
        assert list(draft.iterdir()) == []


def test_a_finished_run_is_not_taken_for_a_draft_by_who_comes_next(tmp_path: Path) -> None:
    with store.begun(tmp_path / "flux-eager", force=False) as draft:
        folder = store.finish(make_run(), draft)
        with (
            pytest.raises(TracekitError, match="another tracekit is writing"),
            store.begun(tmp_path / "flux-eager", force=True),
        ):
            pass
    assert store.load(folder).status == "complete"


def test_a_draft_that_another_process_writes_is_left_alone(tmp_path: Path) -> None:
    holding = (
        "import sys, pathlib; from tracekit import store\n"
        "with store.begun(pathlib.Path(sys.argv[1]), force=False):\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", holding, str(tmp_path / "flux-eager")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        with (
            pytest.raises(TracekitError, match="another tracekit is writing"),
            store.begun(tmp_path / "flux-eager", force=True),
        ):
            pass
        other.stdin.close()
    assert list(tmp_path.iterdir()) == [], "what holds nothing is taken away"


def test_the_name_of_an_interrupted_run_tells_where_its_part_is(tmp_path: Path) -> None:
    interrupted(tmp_path / "flux-eager")
    with pytest.raises(TracekitError, match=r"never finished: .*flux-eager\.incomplete"):
        store.load(tmp_path / "flux-eager")


def test_a_missing_recording_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match=r"eager-light\.json\.gz is missing"):
        store.recording_path(tmp_path, make_run().forms[0], "light")
    with pytest.raises(TracekitError, match="no rich recording of the eager form"):
        store.recording_path(tmp_path, make_run().forms[0], "rich")


OPS = EagerOps(1, "2.13.0", (EagerOp("aten.mm.default", "m", "m.py:1", (TensorShape((2, 2), "float32"),), 48, 16),))
SITES = CompiledSites(
    1, "2.13.0", (CompiledGraph("k", False, "m", (), (LaunchSite("triton_0", ()), LaunchSite("x", None))),)
)


def test_where_work_came_from_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    names = [store.save_provenance(found, tmp_path) for found in (OPS, SITES)]
    assert names == [store.EAGER_OPS, store.COMPILED_SITES]
    first = (tmp_path / store.EAGER_OPS).read_bytes()
    store.save_provenance(OPS, tmp_path)
    assert (tmp_path / store.EAGER_OPS).read_bytes() == first
    run = make_run()
    eager = replace(run.forms[0], provenance=names[0])
    compiled = replace(eager, name="compiled", provenance=names[1])
    run = replace(run, forms=(eager, compiled))
    assert store.load_eager_ops(tmp_path, run) == OPS
    assert store.load_compiled_sites(tmp_path, run) == SITES


def test_a_run_that_was_recorded_before_provenance_was_asked_for_still_loads(tmp_path: Path) -> None:
    folder = finished(tmp_path / "flux-eager")
    manifest = json.loads((folder / "run.json").read_text())
    assert [form.pop("provenance") for form in manifest["forms"]] == [None]
    (folder / "run.json").write_text(json.dumps(manifest))
    run = store.load(folder)
    assert store.load_eager_ops(folder, run) is None
    assert store.load_compiled_sites(folder, run) is None


def test_damaged_or_missing_provenance_is_one_line(tmp_path: Path) -> None:
    name = store.save_provenance(OPS, tmp_path)
    run = make_run()
    run = replace(run, forms=(replace(run.forms[0], provenance=name),))
    whole = (tmp_path / name).read_bytes()
    for damaged in (whole[:20], b"not gzip", gzip.compress(b'{"version": 1')):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(TracekitError, match=r"eager-ops\.json\.gz cannot be read"):
            store.load_eager_ops(tmp_path, run)
    (tmp_path / name).unlink()
    with pytest.raises(TracekitError, match=r"eager-ops\.json\.gz is missing"):
        store.load_eager_ops(tmp_path, run)


@pytest.mark.parametrize("us", ["NaN", "null", "0", "-2.5", "1e400", "[", ""])
def test_a_manifest_with_times_that_are_none_is_one_line(tmp_path: Path, us: str) -> None:
    folder = finished(tmp_path / "flux-eager")
    manifest = folder / "run.json"
    text = manifest.read_text()
    assert "2.5" in text
    manifest.write_text(text.replace("2.5", us))
    with pytest.raises(TracekitError, match=r"run\.json cannot be read \(.*\); record the run again"):
        store.load(folder)


def test_a_draft_that_is_a_link_is_refused_and_what_it_leads_to_is_kept(tmp_path: Path) -> None:
    other = interrupted(tmp_path / "other")
    (tmp_path / "flux.incomplete").symlink_to(other)
    for force in (False, True):
        with pytest.raises(TracekitError, match="is a link; remove it"):
            finished(tmp_path / "flux", force=force)
    assert store.load(other) == make_run()
    assert not (tmp_path / "flux").exists()


@pytest.mark.parametrize("force", [False, True])
def test_a_link_that_leads_nowhere_is_told_before_anything_is_measured(tmp_path: Path, force: bool) -> None:
    (tmp_path / "flux").symlink_to(tmp_path / "absent")
    with pytest.raises(TracekitError, match="leads nowhere"), store.begun(tmp_path / "flux", force=force):
        raise AssertionError("it was begun")
    assert not list(tmp_path.glob("*.incomplete"))


def test_a_run_that_is_forced_onto_a_link_replaces_the_link_alone(tmp_path: Path) -> None:
    other = finished(tmp_path / "other", tracekit="older")
    (tmp_path / "flux").symlink_to(other)
    folder = finished(tmp_path / "flux", force=True)
    assert not folder.is_symlink()
    assert store.load(other).tracekit == "older"


@pytest.mark.parametrize("kind", ["link", "file", "another user's"])
def test_a_folder_for_locks_that_somebody_else_made_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    locks, target = tmp_path / f"tracekit-locks-{os.getuid()}", tmp_path / "target"
    target.mkdir()
    if kind == "link":
        locks.symlink_to(target)
    elif kind == "file":
        locks.touch()
    else:
        locks.mkdir()
        other = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: other)
        locks.rename(tmp_path / f"tracekit-locks-{os.getuid()}")
    with pytest.raises(TracekitError, match=r"own folder|cannot lock"), store.begun(tmp_path / "run", force=False):
        raise AssertionError("it was begun")
    assert list(target.iterdir()) == []
