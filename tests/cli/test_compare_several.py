from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.runs import make_run_folder
from tests.traces import DATA

from tracekit.cli.main import main


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def changed(folder: Path, **settings: object) -> Path:
    manifest = folder / "run.json"
    told = json.loads(manifest.read_text())
    told["settings"].update(settings)
    manifest.write_text(json.dumps(told))
    return folder


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    modes = ("default", "reduce-overhead", "max-autotune")
    return [changed(make_run_folder(tmp_path, f"flux-{mode}"), mode=mode) for mode in modes]


def test_three_runs_stand_side_by_side_in_a_page_its_twin_and_json(three: list[Path], tmp_path: Path) -> None:
    result = run(*three, "--out", tmp_path / "forms.html", "--json", "-")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["schema"] == "tracekit.comparisons/1"
    assert told["names"] == ["default", "reduce-overhead", "max-autotune"]
    assert [each["verdict"]["speedup"] for each in told["comparisons"]] == [pytest.approx(2)] * 3
    assert "B: default" in result.stderr.replace("\n", "")
    page = (tmp_path / "forms.html").read_text()
    assert "C: reduce-overhead" in page
    assert "Speed-up over that" in (tmp_path / "forms.md").read_text()


def test_without_a_place_it_lies_among_the_reports(three: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(three[0].parent)
    assert run(*three).exit_code == 0
    assert (three[0].parent / "reports" / "flux-default-and-2-more.html").is_file()


def test_other_work_is_refused(three: list[Path], tmp_path: Path) -> None:
    result = run(*three[:2], changed(three[2], batch_size=8), "--out", tmp_path / "x.html")
    assert (result.exit_code, "differ in batch size" in result.stderr) == (1, True)
    assert not (tmp_path / "x.html").exists()


def test_a_trace_among_them_and_a_run_of_one_form_are_refused(three: list[Path], tmp_path: Path) -> None:
    eager = make_run_folder(tmp_path, "eager-only", forms=("eager",))
    for other in (DATA / "vit_eager.json.gz", eager):
        result = run(*three, other)
        assert (result.exit_code, "is no run with both forms" in result.stderr) == (1, True)


def test_a_run_that_is_named_twice_is_refused(three: list[Path]) -> None:
    result = run(*three, three[0])
    assert (result.exit_code, "is named twice" in result.stderr) == (1, True)


@pytest.mark.parametrize("option", [("--gate", "wall<=+3%"), ("--form-a", "eager"), ("--ops", "x.json")])
def test_what_is_asked_of_two_sides_is_not_asked_of_three(three: list[Path], option: tuple[str, str]) -> None:
    result = run(*three, *option)
    assert (result.exit_code, f"{option[0]} is for two sides" in result.stderr) == (2, True)


def test_an_interrupted_run_is_refused(three: list[Path]) -> None:
    manifest = three[1] / "run.json"
    manifest.write_text(manifest.read_text().replace('"complete"', '"incomplete"'))
    result = run(*three)
    assert (result.exit_code, "was interrupted and is not whole" in result.stderr) == (1, True)


def test_runs_of_one_folder_name_are_told_apart_by_the_folders_they_lie_in(tmp_path: Path) -> None:
    runs = [make_run_folder(tmp_path / name, "vit") for name in ("before", "after", "later")]
    result = run(*runs, "--out", tmp_path / "x.html", "--json", "-")
    assert json.loads(result.stdout)["names"] == ["before/vit", "after/vit", "later/vit"]


def test_the_json_of_several_does_not_replace_their_page(three: list[Path], tmp_path: Path) -> None:
    result = run(*three, "--out", tmp_path / "x.html", "--json", tmp_path / "x.html")
    assert (result.exit_code, "would both be written to" in result.stderr) == (1, True)
    assert not (tmp_path / "x.html").exists()
