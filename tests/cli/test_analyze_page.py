from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.runs import make_run_folder
from tests.traces import DATA

from tracekit.cli.main import main

VIT = DATA / "vit_eager.json.gz"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["analyze", *map(str, arguments)])


def test_a_page_and_its_twin_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    result = run(VIT, "--html", tmp_path / "deep" / "vit.html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "deep" / "vit.html").read_text()
    assert "<h1>vit_eager: the GPU was busy for" in page
    assert 'id="timelines-data"' in page
    assert (tmp_path / "deep" / "vit.md").read_text().startswith("# vit")
    assert f"written: {tmp_path / 'deep' / 'vit.html'}" in result.output.replace("\n", "")


def test_without_a_path_it_lies_among_the_reports_by_the_name_of_its_run_and_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = run(folder, "--form", "eager", "--html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "reports" / "flux-compiled-eager-analysis.html").read_text()
    assert "flux, eager: 1.00 ms a call." in page
    assert "Recorded 2026-01-02 03:04 UTC with tracekit" in page


def test_a_folder_takes_the_page_by_its_name(tmp_path: Path) -> None:
    assert run(VIT, "--html", tmp_path / "pages").exit_code == 0
    assert (tmp_path / "pages" / "vit_eager-analysis.html").is_file()


def test_a_trace_that_was_meant_is_not_overwritten(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json.gz"
    trace.write_bytes(VIT.read_bytes())
    result = run(trace, "--html", trace)
    assert (result.exit_code, "is a file" in result.stderr) == (1, True)
    assert trace.read_bytes() == VIT.read_bytes()


def test_figures_are_the_same_with_a_page_as_without(tmp_path: Path) -> None:
    beside = run(VIT, "--json", "-", "--html", tmp_path / "x.html")
    assert beside.stdout == run(VIT, "--json", "-").stdout


def test_the_json_does_not_replace_the_page(tmp_path: Path) -> None:
    result = run(VIT, "--json", tmp_path / "x.html", "--html", tmp_path / "x.html")
    assert (result.exit_code, "would both be written to" in result.stderr) == (1, True)
    assert not (tmp_path / "x.html").exists()
