"""What a folder that came from elsewhere may name: files of its own kind, inside of itself."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import resource
import typing
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.cli.runs import make_run_folder
from tests.sweeps import eager_cell, make_result

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.model.numerics import FormNumerics, PictureFile
from tracekit.model.provenance import CompiledSites, EagerOp, EagerOps
from tracekit.model.run import FormResult, Run
from tracekit.model.sweep import Asked, AskedCall, CellResult
from tracekit.walks.sweep_folder import SweepFolder

OPS = EagerOps(1, "2.13.0", (EagerOp("aten.mm.default", "m", None, (), 48, 16),))
PNG = store.PNG_MAGIC + bytes(100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with one file of each kind that it names, and sound ones of the same names outside of it."""
    folder = make_run_folder(tmp_path / "strangers", "run")
    run = store.load(folder)
    (folder / "eager-output.png").write_bytes(PNG)
    store.save_provenance(OPS, folder)
    picture = PictureFile("output", "eager-output.png")
    numerics = FormNumerics("float32", None, None, None, None, None, (picture,))
    eager = replace(run.forms[0], provenance=store.EAGER_OPS, numerics=numerics)
    store.save(replace(run, forms=(eager, *run.forms[1:])), folder)
    for path in folder.iterdir():
        os.link(path, tmp_path / path.name)
    return folder


def eager(run: Run) -> FormResult:
    return run.forms[0]


#: Each kind of file that a run names: what it is called, and what reads it.
READS: dict[str, Callable[[Path], object]] = {
    "eager-light.json": lambda folder: store.recording_path(folder, eager(store.load(folder)), "light"),
    store.EAGER_OPS: lambda folder: store.load_eager_ops(folder, store.load(folder)),
    "eager-output.png": lambda folder: store.load_pictures(folder, eager(store.load(folder))),
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
    (folder / name).rename(folder / "kept")
    (folder / name).symlink_to("kept")
    READS[name](folder)
    (folder / name).unlink()
    os.link(tmp_path / name, folder / name)
    READS[name](folder)


def test_a_run_in_a_linked_folder_is_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    for read in READS.values():
        read(tmp_path / "link")


OUTSIDE = ["/etc/passwd", "../eager-light.json", "sub/eager-light.json", "linked/eager-light.json"]


@pytest.mark.parametrize("place", [*OUTSIDE, "..", ".", "a\0b", ""])
@pytest.mark.parametrize("key", ["recordings", "provenance", "pictures"])
def test_a_manifest_that_names_a_path_and_no_file_of_its_folder_is_refused(
    folder: Path, tmp_path: Path, key: str, place: str
) -> None:
    (folder / "linked").symlink_to(tmp_path, target_is_directory=True)
    (folder / "sub").mkdir()
    os.link(tmp_path / "eager-light.json", folder / "sub" / "eager-light.json")
    told = msgspec.json.decode((folder / store.MANIFEST).read_bytes())
    form = told["forms"][0]
    if key == "recordings":
        form["recordings"][0]["path"] = place
    elif key == "provenance":
        form["provenance"] = place
    else:
        form["numerics"]["pictures"][0]["path"] = place
    (folder / store.MANIFEST).write_bytes(msgspec.json.encode(told))
    reads = {"recordings": "eager-light.json", "provenance": store.EAGER_OPS, "pictures": "eager-output.png"}
    with pytest.raises(TracekitError):
        READS[reads[key]](folder)


def test_a_picture_is_a_png_of_bounded_size(folder: Path) -> None:
    for content in (b"root:x:0:0", PNG + bytes(store.MOST_PICTURE_BYTES)):
        (folder / "eager-output.png").write_bytes(content)
        with pytest.raises(TracekitError, match=r"eager-output\.png"):
            store.load_pictures(folder, eager(store.load(folder)))


def test_provenance_that_unpacks_to_more_than_may_be_held_is_refused_in_bounded_memory(folder: Path) -> None:
    (folder / store.EAGER_OPS).write_bytes(gzip.compress(bytes(2 * store.MOST_PROVENANCE_BYTES), compresslevel=1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TracekitError, match="unpacks to more"):
        READS[store.EAGER_OPS](folder)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 3 * store.MOST_PROVENANCE_BYTES


def sweep(parent: Path) -> tuple[SweepFolder, Path]:
    made = SweepFolder(parent / "sweep")
    made.check()
    made.save(make_result(eager_cell()))
    made.ask(
        None, (eager_cell(),), AskedCall("tracekit sweep vit", "2026-11-21T19:00:00+00:00", 0, 40, None, None, None)
    )
    return made, made.path / "cells" / f"{eager_cell().key}.json"


@pytest.mark.parametrize("turn", [each for each in TURNS if each != "loop"])
def test_a_cell_that_leads_out_of_its_sweep_is_as_good_as_not_there(tmp_path: Path, turn: str) -> None:
    made, path = sweep(tmp_path)
    path.rename(tmp_path / "outside.json")
    TURNS[turn](path, tmp_path / "outside.json")
    assert made.load_all() == ()
    assert path.name in made.unreadable


@pytest.mark.parametrize("turn", LINKS)
def test_what_was_asked_of_a_sweep_lies_in_it(tmp_path: Path, turn: str) -> None:
    made, _ = sweep(tmp_path)
    (made.path / "sweep.json").rename(tmp_path / "outside.json")
    LINKS[turn](made.path / "sweep.json", tmp_path / "outside.json")
    with pytest.raises(TracekitError, match="leads out"):
        made.asked()


def test_a_key_that_is_a_path_is_no_cell(tmp_path: Path) -> None:
    made, path = sweep(tmp_path)
    told = msgspec.json.decode(path.read_bytes())
    told["cell"]["key"] = "../../outside"
    path.write_bytes(msgspec.json.encode(told))
    assert made.load_all() == ()


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


#: What stands in for a value of the manifest, and is refused in one line.
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("started",), '"zzz"'),
        (("started",), '"2026-01-02"'),
        (("started",), nested(100_000)),
        (("unknown",), nested(100_000)),
        (("forms", 0, "provenance"), '"a\\u0000b"'),
        (("forms", 0, "wall_us", 3), "5e-324"),
        (("forms", 0, "wall_us", 3), "1e308"),
        (("forms", 0, "wall_us", 3), "1e999"),
        (("forms", 0, "wall_us", 3), "-1"),
        (("forms", 0, "wall_us", 3), "NaN"),
        (("forms", 0, "peak_memory_bytes"), "9" * 400),
        (("forms", 0, "peak_memory_bytes"), "-1"),
        (("size_reason",), '"' + "x" * (2 << 20) + '"'),
        (("size_reason",), '"\\ud800"'),
        (("settings", "workload"), '"--out=/etc/x"'),
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
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and kind not in found:
        found.add(kind)
        for each in typing.get_type_hints(kind).values():
            reached(each, found)
    for each in typing.get_args(kind):
        reached(each, found)
    return found


def unbounded(kind: object) -> bool:
    """Whether some number or text in it may be anything."""
    if typing.get_origin(kind) is typing.Annotated:
        return False
    if typing.get_origin(kind) is typing.Literal:
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
        *((kind, unbounded) for kind in (Run, CellResult, Asked, EagerOps, CompiledSites)),
        *((kind, has_unbounded_list) for kind in (Run, CellResult, Asked)),
    ],
)
def test_every_number_text_and_list_of_a_file_is_bounded(kind: type, is_loose: Callable[[object], bool]) -> None:
    loose = [
        f"{noun.__name__}.{name}"
        for noun in reached(kind, set())
        for name, each in typing.get_type_hints(noun, include_extras=True).items()
        if is_loose(each)
    ]
    assert loose == []
