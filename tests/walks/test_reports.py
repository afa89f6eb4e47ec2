from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracekit.errors import TracekitError
from tracekit.report.marks import find_mark
from tracekit.store import Ways
from tracekit.walks.reports import Destination, refuse_report_there, reports_of, write_pages

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
