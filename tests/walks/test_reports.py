from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.runs import make_run_folder
from tests.sides import make_environment, make_form, make_run, make_settings, make_side
from tests.sweeps import compiled_cell, make_asked, make_result

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.report.marks import find_mark
from tracekit.store import Ways
from tracekit.walks.pairs import name_side, refuse_side_by_side, refuse_to_gate, short_names
from tracekit.walks.reports import (
    Destination,
    _without_empty,
    identity_of_report,
    identity_of_run,
    identity_of_sweep,
    refuse_report_there,
    reports_of,
    reports_of_run,
    write_pages,
)

OURS, OTHERS = "0" * 31 + "1", "0" * 31 + "2"


PAGE, TWIN = '<!doctype html>\n<html>\n<head>\n<meta charset="utf-8">\n</head>', "# A report\n"


def test_runs_of_one_name_in_different_places_have_reports_of_their_own() -> None:
    assert reports_of(Path("traces/vit1")) == Path("reports")
    assert reports_of(Path("/x/traces/vit1")) == Path("/x/reports")
    assert reports_of(Path("/x/vit1")) == Path("/x/reports")


def test_a_report_replaces_its_own_and_nothing_else(tmp_path: Path) -> None:
    ours, others = (Destination(tmp_path, "x", each) for each in (OURS, OTHERS))
    assert write_pages(PAGE, TWIN, ours) == (tmp_path / "x.html", tmp_path / "x.md")
    write_pages(PAGE, TWIN + "more", ours)
    assert (tmp_path / "x.md").read_text().startswith(TWIN + "more")
    with pytest.raises(TracekitError, match=r"x\.html is already there and is the report of something else; pass --fo"):
        write_pages(PAGE, TWIN, others)
    assert find_mark((tmp_path / "x.html").read_bytes(), b"") == OURS
    write_pages(PAGE, TWIN, Destination(tmp_path, "x", OTHERS, replaces=(OURS,)))
    assert find_mark(b"", (tmp_path / "x.md").read_bytes()) == OTHERS
    write_pages(PAGE, TWIN, Destination(tmp_path, "x", OURS, force=True))


@pytest.mark.parametrize("name", ["x.html", "x.md"])
def test_what_is_no_report_of_tracekit_stays_and_neither_file_is_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    there = Destination(tmp_path, "x", OURS, ways=Ways("force=True", "another folder"))
    ends = r"not marked as a report of tracekit; pass force=True to replace it, or another folder"
    for make in (
        lambda: path.write_text(f"my own notes, which quote {OURS}"),
        lambda: path.write_text(""),
        path.mkdir,
        lambda: os.mkfifo(path),
        lambda: path.symlink_to("/nowhere/at/all"),
        lambda: path.symlink_to("/dev/zero"),
    ):
        make()
        with pytest.raises(TracekitError, match=rf"{name} is already there and is {ends}"):
            write_pages(PAGE, TWIN, there)
        assert [each.name for each in tmp_path.iterdir()] == [name]
        path.rmdir() if path.is_dir() else path.unlink()


def test_force_replaces_a_link_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "x.md").symlink_to(tmp_path / "precious")
    write_pages(PAGE, TWIN, Destination(tmp_path, "x", OURS, force=True))
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_report_of_another_run_is_not_replaced_unless_that_is_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "traces" / "vit1"
    refuse_report_there(folder, force=False)
    (tmp_path / "reports").mkdir()
    for name in ("vit1.html", "vit1.md"):
        (tmp_path / "reports" / name).write_text("of another run")
        with pytest.raises(TracekitError, match=rf"{name} is already there .*; pass --force"):
            refuse_report_there(folder, force=False)
        refuse_report_there(folder, force=True)
        (tmp_path / "reports" / name).unlink()
    (tmp_path / "reports" / "vit1.md").write_text("of another run")
    folder.mkdir(parents=True)
    # The run's own: whether that may be replaced is asked of its folder.
    refuse_report_there(folder, force=False)


RUN = make_run(forms=(make_form("eager"), make_form("compiled")))


@pytest.mark.parametrize(
    "other",
    [
        replace(RUN, started="2026-01-02T03:04:06+00:00"),
        replace(RUN, command="tracekit profile vit --compiled"),
        replace(RUN, settings=make_settings(batch_size=7)),
        replace(RUN, settings=make_settings(variables={"TRITON_X": "1"})),
        replace(RUN, environment=replace(RUN.environment, gpu="another")),
        replace(RUN, environment=replace(RUN.environment, cpu_threads=3)),
        replace(RUN, forms=(RUN.forms[0], make_form("compiled", (1.0, 2.0, 3.0)))),
    ],
)
def test_a_run_differs_by_all_that_makes_it_one(other: object) -> None:
    assert identity_of_run(other) != identity_of_run(RUN)  # type: ignore[arg-type]


def test_what_is_found_out_of_a_run_later_makes_it_no_other() -> None:
    told = replace(RUN, notes=("a note",), failure=None, repeated_parts=("x.*",), tracekit="9.9")
    assert identity_of_run(told) == identity_of_run(RUN)


def test_a_setting_that_is_not_noted_makes_a_run_no_other() -> None:
    """As one that a later version notes, of a run of this one."""
    settings = {"mode": "default", "seed": 0, "later": None, "words": {}, "list": [], "deep": {"x": None, "y": False}}
    assert _without_empty(settings) == {"mode": "default", "seed": 0, "deep": {"y": False}}
    assert _without_empty([settings["deep"], None, 0]) == [{"y": False}, None, 0]


def test_a_run_is_the_same_when_it_is_read_again_and_wherever_it_lies(tmp_path: Path) -> None:
    one = make_run_folder(tmp_path, "one")
    two = one.rename(tmp_path / "two")
    before = identity_of_run(store.load(two))
    store.save(store.load(two), two)
    assert identity_of_run(store.load(two)) == before


def test_a_trace_is_where_it_lies_and_its_path_is_told_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert name_side("a.json", None).identity == name_side(str(tmp_path / "here" / ".." / "a.json"), None).identity
    assert name_side("a.json", None).identity != name_side("here/a.json", None).identity
    assert name_side("https://x/a.json", None).identity == name_side("https://x/a.json", None).identity
    assert set(name_side("a.json", None).identity) <= set("0123456789abcdef")


def test_a_report_is_of_its_kind_of_its_parts_and_of_their_order() -> None:
    told = {
        identity_of_report("analysis", ("a",)),
        identity_of_report("comparison", ("a",)),
        identity_of_report("comparison", ("a", "b")),
        identity_of_report("comparison", ("b", "a")),
        identity_of_report("several", ("a", "b")),
    }
    assert len(told) == 5
    assert len(reports_of_run(RUN)) == 3


def test_a_sweep_stays_one_while_its_cells_come_and_are_measured_anew() -> None:
    asked, first = make_asked([compiled_cell()]), make_result(compiled_cell())
    (call,) = asked.calls
    again = replace(first, started="2027-01-02T03:04:05+00:00")
    later = replace(asked, calls=(call, replace(call, started="2027-01-01T00:00:00+00:00")))
    assert (
        len({identity_of_sweep(asked, ()), identity_of_sweep(asked, [first]), identity_of_sweep(later, [again])}) == 1
    )
    other = replace(asked, calls=(replace(call, started="2026-01-02T03:04:06+00:00"),))
    assert identity_of_sweep(other, ()) != identity_of_sweep(asked, ())
    # Nobody knows what began it: then it is its cells.
    assert identity_of_sweep(None, [first]) != identity_of_sweep(None, [again])


PATHS = ("one", "other")


ONE = make_side("eager", form=make_form())


@pytest.mark.parametrize("change", [{"batch_size": 4}, {"workload": "vit"}, {"dtype": "float16"}, {"height": 1024}])
def test_other_work_is_refused_and_both_runs_are_named(change: dict[str, object]) -> None:
    other = replace(ONE, settings=make_settings(**change))
    refuse_side_by_side([ONE, ONE], PATHS)
    with pytest.raises(TracekitError, match=r"one and other cannot stand side by side: The sides differ in"):
        refuse_side_by_side([ONE, other], PATHS)
    refuse_to_gate(ONE, ONE)
    with pytest.raises(TracekitError, match=next(iter(change.values())).__str__()):
        refuse_to_gate(ONE, other)


def test_another_gpu_is_refused_and_other_software_is_not() -> None:
    other = replace(ONE, environment=make_environment(gpu="NVIDIA A100"))
    with pytest.raises(TracekitError, match="GPU"):
        refuse_side_by_side([ONE, other], PATHS)
    with pytest.raises(TracekitError, match="NVIDIA H200, B has NVIDIA A100"):
        refuse_to_gate(ONE, other)
    newer = replace(ONE, environment=make_environment(packages={"torch": "2.14.0", "triton": "3.7.0"}))
    refuse_side_by_side([ONE, newer], PATHS)
    refuse_to_gate(ONE, newer)


def test_folders_of_one_name_are_told_apart_by_those_they_lie_in() -> None:
    assert short_names(["/x/vit", "/x/flux"]) == ("vit", "flux")
    assert short_names(["/x/vit", "/y/vit"]) == ("x/vit", "y/vit")
    assert short_names(["/x/a/vit", "/y/a/vit", "/y/bert"]) == ("x/a/vit", "y/a/vit", "/y/bert")
