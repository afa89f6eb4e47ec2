"""How a run folder comes to be, and what one that came from elsewhere may name: files of its own, inside of itself."""

import gzip
import json
import os
import tempfile
import typing
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests import sides
from tests.cli.runs import edited, make_run_folder
from tests.sides import make_form

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.model.cell import CellRun
from tracekit.model.numerics import FormNumerics, PictureFile
from tracekit.model.provenance import (
    CompiledGraph,
    CompiledSites,
    EagerOp,
    EagerOps,
    KernelSources,
    LaunchSite,
    TensorShape,
)
from tracekit.model.quartiles import Quartiles
from tracekit.model.run import FormResult, RankOfRun, Recording, Run


def make_run(**changes: object) -> Run:
    """A run of which the eager form was recorded once."""
    form = FormResult("eager", (5.0,), (1.0, 2.5), None, None, None, (Recording("light", "eager-light.json.gz", 3, 9),))
    return sides.make_run(**{"status": "incomplete", "forms": (form,), "order": ("eager", "eager"), **changes})


def finished(folder: Path, *, force: bool = False, **changes: object) -> Path:
    with store.begun(folder, force=force) as draft:
        return store.finish(make_run(**changes), draft)


def refuse_to_begin(folder: Path, message: str, *, force: bool = True) -> None:
    with pytest.raises(TracekitError, match=message), store.begun(folder, force=force):
        raise AssertionError("it was begun")


def test_a_run_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    assert store.load(finished(tmp_path / "flux-eager")) == make_run(status="complete")


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
    with pytest.raises(TracekitError, match=r"flux-eager\.incomplete"):
        store.load(tmp_path / "flux-eager")


def test_a_run_that_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    folder = finished(tmp_path / "flux-eager")
    refuse_to_begin(folder, "pass --force", force=False)
    with store.begun(folder, force=True) as draft:
        assert store.load(folder).status == "complete", "the old run must stay until the new one is whole"
        store.finish(make_run(command="again"), draft)
    assert store.load(folder).command == "again"
    assert [path.name for path in tmp_path.iterdir()] == ["flux-eager"]
    assert [path.name for path in folder.iterdir()] == ["run.json"]


@pytest.mark.parametrize("name", ["thesis", "thesis.incomplete"])
def test_a_folder_that_is_no_run_is_never_replaced(tmp_path: Path, name: str) -> None:
    precious = tmp_path / name
    precious.mkdir()
    (precious / "run.json").write_text('{"my": "data"}')
    refuse_to_begin(tmp_path / "thesis", name)
    assert (precious / "run.json").read_text() == '{"my": "data"}'


def test_what_an_interrupted_run_measured_is_kept_unless_forced(tmp_path: Path) -> None:
    draft = interrupted(tmp_path / "flux-eager")
    (draft / "eager-light.json.gz").write_bytes(b"half")
    for ended in ("was interrupted", "failed"):
        refuse_to_begin(tmp_path / "flux-eager", f"{ended}; pass --force", force=False)
        store.mark_failed(draft, ValueError("theirs"))
    assert (draft / "eager-light.json.gz").read_bytes() == b"half"
    with store.begun(tmp_path / "flux-eager", force=True) as again:
        assert not (again / "eager-light.json.gz").exists()


def test_what_was_left_before_a_call_was_timed_is_in_nobody_s_way(tmp_path: Path) -> None:
    draft = tmp_path / "flux-eager.incomplete"
    draft.mkdir()
    (draft / "output.log").write_text("chatter")
    warm = replace(make_run().forms[0], wall_us=(), recordings=())
    for forms in ((), (warm,), ()):
        with store.begun(tmp_path / "flux-eager", force=False):
            assert list(draft.iterdir()) == []
            store.save(make_run(forms=forms), draft)


def test_what_was_left_by_a_run_over_ranks_that_was_killed_early_is_in_nobody_s_way(tmp_path: Path) -> None:
    draft = tmp_path / "flux-eager.incomplete"
    for name in (f"{store.CHILD}abc", "rank1"):
        (draft / name).mkdir(parents=True)
    with store.begun(tmp_path / "flux-eager", force=False) as again:
        assert list(again.iterdir()) == []


def test_a_finished_run_is_not_taken_for_a_draft_by_who_comes_next(tmp_path: Path) -> None:
    with store.begun(tmp_path / "flux-eager", force=False) as draft:
        folder = store.finish(make_run(), draft)
        refuse_to_begin(tmp_path / "flux-eager", "another tracekit is writing")
    assert store.load(folder).status == "complete"
    with store.begun(tmp_path / "nothing", force=False):
        pass
    assert list(tmp_path.iterdir()) == [folder], "what holds nothing is taken away"


def test_a_rank_s_folder_lies_in_that_of_its_run(tmp_path: Path) -> None:
    def of_rank(folder: str | None) -> RankOfRun:
        return RankOfRun(1, "host", None, folder, ())

    folder, other = tmp_path / "run", tmp_path / "other"
    for place in (folder / "rank1", other):
        place.mkdir(parents=True)
        (place / store.MANIFEST).write_text("{}")
    (folder / "rank2").symlink_to(other)
    assert store.rank_folder(folder, of_rank(None)) == folder
    assert store.rank_folder(folder, of_rank("rank1")) == folder / "rank1"
    for name, why in (("rank2", "leads out"), ("../other", "leads out"), ("rank3", "is missing")):
        with pytest.raises(TracekitError, match=why):
            store.rank_folder(folder, of_rank(name))


def test_a_missing_recording_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match=r"eager-light\.json\.gz is missing"):
        store.recording_path(tmp_path, make_run().forms[0], "light")
    with pytest.raises(TracekitError, match="no rich recording"):
        store.recording_path(tmp_path, make_run().forms[0], "rich")


OPS = EagerOps(1, "2.13.0", (EagerOp("aten.mm.default", "m", "m.py:1", (TensorShape((2, 2), "float32"),), 48, 16),))


GRAPH = CompiledGraph("k", False, "m", (), (LaunchSite("triton_0", ()), LaunchSite("x", None)))
SITES = CompiledSites(1, "2.13.0", (GRAPH,))
SOURCES = KernelSources(1, "2.13.0", {"triton_0": ("@triton.jit\ndef triton_0(): ...",)}, left_out=1)


def test_where_work_came_from_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    names = [store.save_provenance(found, tmp_path) for found in (OPS, SITES)]
    assert names == [store.EAGER_OPS, store.COMPILED_SITES]
    first = (tmp_path / store.EAGER_OPS).read_bytes()
    store.save_provenance(OPS, tmp_path)
    assert (tmp_path / store.EAGER_OPS).read_bytes() == first
    eager = replace(make_run().forms[0], provenance=names[0])
    run = make_run(forms=(eager, replace(eager, name="compiled", provenance=names[1])))
    assert [store.load_provenance(tmp_path, form) for form in run.forms] == [OPS, SITES]


def test_sources_of_kernels_come_back_as_they_were_saved(tmp_path: Path) -> None:
    name = store.save_kernel_sources(SOURCES, tmp_path)
    form = replace(make_run().forms[0], name="compiled", kernel_sources=name)
    assert store.load_kernel_sources(tmp_path, form) == SOURCES


def test_a_run_that_was_recorded_before_provenance_was_asked_for_still_loads(tmp_path: Path) -> None:
    folder = finished(tmp_path / "flux-eager")
    with edited(folder) as manifest:
        assert [(form.pop("provenance"), form.pop("kernel_sources")) for form in manifest["forms"]] == [(None, None)]
    assert store.load_provenance(folder, eager(folder)) is None
    assert store.load_kernel_sources(folder, eager(folder)) is None


def test_damaged_or_missing_provenance_is_one_line(tmp_path: Path) -> None:
    name = store.save_provenance(OPS, tmp_path)
    form = replace(make_run().forms[0], provenance=name)
    whole = (tmp_path / name).read_bytes()
    for damaged in (whole[:20], b"not gzip", gzip.compress(b'{"version": 1')):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(TracekitError, match=r"eager-ops\.json\.gz"):
            store.load_provenance(tmp_path, form)
    (tmp_path / name).unlink()
    with pytest.raises(TracekitError, match=r"eager-ops\.json\.gz is missing"):
        store.load_provenance(tmp_path, form)


def test_a_draft_that_is_a_link_is_refused_and_what_it_leads_to_is_kept(tmp_path: Path) -> None:
    other = interrupted(tmp_path / "other")
    (tmp_path / "flux.incomplete").symlink_to(other)
    for force in (False, True):
        with pytest.raises(TracekitError, match="is a link; remove it"):
            finished(tmp_path / "flux", force=force)
    assert store.load(other) == make_run()
    assert not (tmp_path / "flux").exists()


def test_a_link_that_leads_nowhere_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "flux").symlink_to(tmp_path / "absent")
    for force in (False, True):
        refuse_to_begin(tmp_path / "flux", "broken link", force=force)
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
    refuse_to_begin(tmp_path / "run", "tracekit-locks-", force=False)
    assert list(target.iterdir()) == []


PNG = store.PNG_MAGIC + bytes(100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with one file of each kind that it names, and sound ones of the same names outside of it."""
    folder = make_run_folder(tmp_path / "strangers", "run")
    run = store.load(folder)
    (folder / "eager-output.png").write_bytes(PNG)
    store.save_provenance(OPS, folder)
    store.save_kernel_sources(SOURCES, folder)
    picture = PictureFile("output", "eager-output.png")
    numerics = FormNumerics("float32", None, None, None, None, (picture,))
    kept = {"provenance": store.EAGER_OPS, "kernel_sources": store.COMPILED_TRITON}
    eager = replace(run.forms[0], numerics=numerics, **kept)
    store.save(replace(run, forms=(eager, *run.forms[1:])), folder)
    for path in folder.iterdir():
        os.link(path, tmp_path / path.name)
    return folder


def eager(folder: Path) -> FormResult:
    return store.load(folder).forms[0]


#: Each kind of file that a run names: what it is called, and what reads it.
READS: dict[str, Callable[[Path], object]] = {
    "eager-light.json": lambda folder: store.recording_path(folder, eager(folder), "light"),
    store.EAGER_OPS: lambda folder: store.load_provenance(folder, eager(folder)),
    store.COMPILED_TRITON: lambda folder: store.load_kernel_sources(folder, eager(folder)),
    "eager-output.png": lambda folder: store.load_pictures(folder, eager(folder)),
    store.MANIFEST: store.load,
}


def to_link_of_link(path: Path, outside: Path) -> None:
    (path.parent / "between").symlink_to(outside)
    path.symlink_to("between")


#: What stands in the place of a file, by way of what may lie outside.
LINKS: dict[str, Callable[[Path, Path], None]] = {
    "absolute link": lambda path, outside: path.symlink_to(outside.resolve()),
    "relative link": lambda path, outside: path.symlink_to(Path(os.path.relpath(outside, path.parent))),
    "link of a link": to_link_of_link,
}


TURNS: dict[str, Callable[[Path, Path], None]] = {
    **LINKS,
    "pipe": lambda path, _: os.mkfifo(path),
    "device": lambda path, _: path.symlink_to("/dev/zero"),
    "folder": lambda path, _: path.mkdir(),
    "loop": lambda path, _: path.symlink_to(path.name),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("turn", TURNS)
def test_what_leads_out_of_the_folder_or_is_no_file_is_one_line(
    folder: Path, tmp_path: Path, name: str, turn: str
) -> None:
    READS[name](folder)
    (folder / name).unlink()
    TURNS[turn](folder / name, tmp_path / name)
    with pytest.raises(TracekitError) as error:
        READS[name](folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", READS)
def test_hard_links_and_links_within_the_folder_are_its_own_files(folder: Path, tmp_path: Path, name: str) -> None:
    whole = READS[name](folder)
    assert whole
    (folder / name).rename(folder / "kept")
    (folder / name).symlink_to("kept")
    assert READS[name](folder) == whole
    (folder / name).unlink()
    os.link(tmp_path / name, folder / name)
    assert READS[name](folder) == whole
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    assert READS[name](tmp_path / "link") == (tmp_path / "link" / name if whole == folder / name else whole)


OUTSIDE = ["/etc/passwd", "../eager-light.json", "sub/eager-light.json", "linked/eager-light.json"]


@pytest.mark.parametrize("place", [*OUTSIDE, "..", ".", "a\0b", ""])
@pytest.mark.parametrize("name", [name for name in READS if name != store.MANIFEST])
def test_a_manifest_that_names_a_path_and_no_file_of_its_folder_is_refused(
    folder: Path, tmp_path: Path, name: str, place: str
) -> None:
    (folder / "linked").symlink_to(tmp_path, target_is_directory=True)
    (folder / "sub").mkdir()
    os.link(tmp_path / "eager-light.json", folder / "sub" / "eager-light.json")
    with edited(folder) as told:
        form = told["forms"][0]
        if name in (store.EAGER_OPS, store.COMPILED_TRITON):
            form["provenance" if name == store.EAGER_OPS else "kernel_sources"] = place
        else:
            (form["recordings"] if "light" in name else form["numerics"]["pictures"])[0]["path"] = place
    with pytest.raises(TracekitError):
        READS[name](folder)


def test_a_picture_is_a_png_of_bounded_size(folder: Path) -> None:
    for content in (b"root:x:0:0", PNG + bytes(store.MOST_PICTURE_BYTES)):
        (folder / "eager-output.png").write_bytes(content)
        with pytest.raises(TracekitError, match=r"eager-output\.png"):
            store.load_pictures(folder, eager(folder))


@pytest.mark.parametrize(
    ("name", "most"),
    [(store.EAGER_OPS, store.MOST_PROVENANCE_BYTES), (store.COMPILED_TRITON, store.MOST_SOURCE_BYTES)],
)
def test_provenance_that_unpacks_to_more_than_may_be_held_is_refused(folder: Path, name: str, most: int) -> None:
    (folder / name).write_bytes(gzip.compress(bytes(most + 1), compresslevel=1))
    with pytest.raises(TracekitError, match="unpacks to more"):
        READS[name](folder)


@pytest.mark.parametrize(
    ("content", "is_cut_off"), [("", True), ('{"sche', True), ('{"my": "data"}', False), ('{"traceEvents": [{"', False)]
)
def test_a_manifest_that_is_no_json_was_cut_off_and_a_trace_of_its_name_was_not(
    tmp_path: Path, content: str, is_cut_off: bool
) -> None:
    (tmp_path / store.MANIFEST).write_text(content)
    assert store.is_cut_off(tmp_path) is is_cut_off


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_how_long_timed_calls_collected_is_kept(tmp_path: Path) -> None:
    form = replace(make_form(), collecting=Quartiles(us=0.0, low=0.0, high=20_000.0))
    assert store.load(finished(tmp_path / "now", forms=(form,))).forms[0].collecting == form.collecting


#: What stands in for a value of the manifest, and is refused in one line.
@pytest.mark.parametrize(
    ("path", "value"),
    [
        *((("started",), value) for value in ('"zzz"', '"2026-01-02"', nested(100_000))),
        (("unknown",), nested(100_000)),
        (("forms", 0, "provenance"), '"a\\u0000b"'),
        *((("forms", 0, "wall_us", 3), us) for us in ("5e-324", "1e308", "1e999", "-1", "0", "NaN", "null", "[", "")),
        (("forms", 0, "peak_memory_bytes"), "9" * 400),
        (("forms", 0, "peak_memory_bytes"), "-1"),
        *((("forms", 0, "collecting"), f'{{"us":{us},"low":0,"high":9}}') for us in ("-1", "10", "1e14", "null")),
        (("forms", 0, "host"), '{"us":0,"low":0,"high":9}'),
        (("size_reason",), '"' + "x" * (2 << 20) + '"'),
        (("size_reason",), '"\\ud800"'),
        *((("settings", name), '"--out=/etc/x"') for name in ("workload", "pretrained")),
        *((("settings", name), '"a\\u0000b"') for name in ("workload", "prompt", "scope", "pretrained", "size")),
        (("forms", 0, "recordings", 0, "path"), '"-"'),
        (("notes",), json.dumps([""] * 50_000)),
        (("forms", 0, "wall_us"), json.dumps([1000.5] * 50_000)),
    ],
)
def test_a_value_that_no_run_has_is_one_line(folder: Path, path: tuple[str | int, ...], value: str) -> None:
    told = msgspec.json.decode((folder / store.MANIFEST).read_bytes())
    at = told
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = "MARK"
    (folder / store.MANIFEST).write_text(msgspec.json.encode(told).decode().replace('"MARK"', value))
    with pytest.raises(TracekitError, match="cannot be read") as error:
        store.load(folder)
    assert "\n" not in str(error.value)


def reached(kind: object, found: set[type]) -> set[type]:
    """The nouns that a file of this kind is made of."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in found:
        found.add(kind)
        for each in typing.get_type_hints(kind).values():
            reached(each, found)
    for each in typing.get_args(kind):
        reached(each, found)
    return found


def unbounded(kind: object) -> bool:
    """Whether some number or text in it may be anything."""
    if typing.get_origin(kind) in (typing.Annotated, typing.Literal):
        return False
    return kind in (int, float, str) or any(map(unbounded, typing.get_args(kind)))


def has_unbounded_list(kind: object) -> bool:
    """Whether some list in it may have any length."""
    if typing.get_origin(kind) is typing.Annotated:
        inner = typing.get_args(kind)[0]
        bounded = any(getattr(each, "max_length", None) is not None for each in typing.get_args(kind)[1:])
        return (not bounded and _is_list(inner)) or any(map(has_unbounded_list, typing.get_args(inner)))
    return _is_list(kind) or any(map(has_unbounded_list, typing.get_args(kind)))


def _is_list(kind: object) -> bool:
    return typing.get_origin(kind) is tuple and typing.get_args(kind)[-1] is ...


@pytest.mark.parametrize(
    ("kind", "is_loose"),
    [
        *((kind, unbounded) for kind in (Run, CellRun, EagerOps, CompiledSites)),
        *((kind, has_unbounded_list) for kind in (Run, CellRun)),
    ],
)
def test_every_number_text_and_list_of_a_file_is_bounded(kind: type, is_loose: Callable[[object], bool]) -> None:
    assert loose_fields(kind, is_loose) == []


def loose_fields(kind: type, is_loose: Callable[[object], bool]) -> list[str]:
    """Of the noun and of all that it holds."""
    return [
        f"{noun.__name__}.{name}"
        for noun in reached(kind, set())
        for name, each in typing.get_type_hints(noun, include_extras=True).items()
        if is_loose(each)
    ]
