from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.runs import make_run_folder, tracekit
from tests.traces import DATA, make_kernel, write_trace

from tracekit.cli.main import main

VIT = (DATA / "vit_eager.json.gz", DATA / "vit_default.json.gz")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def compare_json(*arguments: object) -> dict[str, object]:
    result = run(*arguments, "--json", "-")
    assert result.exit_code == 0, result.output
    comparison: dict[str, object] = json.loads(result.stdout)
    return comparison


def labels(comparison: dict[str, object]) -> list[str]:
    return [comparison[side]["label"] for side in "ab"]  # type: ignore[index]


def test_two_trace_files_are_compared_and_reported(folder: Path) -> None:
    result = run(*VIT)
    assert result.exit_code == 0
    assert "written: reports/vit_eager-vs-vit_default.html" in result.stdout
    assert (folder / "reports/vit_eager-vs-vit_default.html").read_text().startswith("<!")
    assert (folder / "reports/vit_eager-vs-vit_default.md").read_text().startswith("# ")


def test_traces_alone_give_no_verdict() -> None:
    comparison = compare_json(*VIT)
    assert comparison["schema"] == "tracekit.comparison/1"
    assert comparison["verdict"]["result"] == "not_timed"  # type: ignore[index]
    assert labels(comparison) == ["vit_eager", "vit_default"]


def test_a_run_alone_is_its_eager_form_against_its_compiled_one(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder))
    assert labels(comparison) == ["eager", "compiled"]
    assert comparison["verdict"]["result"] == "faster"  # type: ignore[index]
    assert comparison["deltas"]["kernels"] == -1  # type: ignore[index]
    assert (folder / "reports/flux-compiled.html").is_file()


def test_the_calls_of_one_run_count_as_timed_in_alternation(folder: Path) -> None:
    alone = compare_json(make_run_folder(folder))
    apart = compare_json(folder / "flux-compiled", make_run_folder(folder, "other"))
    assert not any("alternation" in warning for warning in alone["warnings"])  # type: ignore[attr-defined]
    assert any("alternation" in warning for warning in apart["warnings"])  # type: ignore[attr-defined]


def test_two_runs_are_compared_by_their_compiled_forms(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder, "before"), make_run_folder(folder, "after"))
    assert labels(comparison) == ["before compiled", "after compiled"]
    assert (folder / "reports/before-compiled-vs-after-compiled.html").is_file()


def test_a_form_can_be_chosen_for_each_side(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder, "before"), make_run_folder(folder, "after"), "--form-a", "eager")
    assert labels(comparison) == ["before eager", "after compiled"]


def test_a_run_can_be_compared_with_a_trace_file(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder), VIT[0], "--form-a", "eager")
    assert labels(comparison) == ["flux-compiled eager", "vit_eager"]


def test_a_runs_rich_recording_is_read_too(folder: Path) -> None:
    comparison = compare_json(make_run_folder(folder))
    assert comparison["a"]["rich"]["window"]["steps"] == 1  # type: ignore[index]
    assert comparison["a"]["analysis"]["window"]["steps"] == 2  # type: ignore[index]


def test_files_of_one_name_are_told_apart_by_their_folders(folder: Path) -> None:
    for name in ("old", "new"):
        (folder / name).mkdir()
        write_trace(folder / name, [make_kernel(0, 5)]).rename(folder / name / "trace.json")
    assert labels(compare_json("old/trace.json", "new/trace.json")) == ["old-trace", "new-trace"]


@pytest.mark.parametrize(("out", "page"), [("mine", "mine/vit_eager-vs-vit_default"), ("x/mine.html", "x/mine")])
def test_out_is_a_folder_or_a_page(out: str, page: str, folder: Path) -> None:
    assert run(*VIT, "--out", out).exit_code == 0
    assert (folder / f"{page}.html").is_file()
    assert (folder / f"{page}.md").is_file()


def test_one_trace_file_alone_is_asked_for_a_second() -> None:
    result = run(VIT[0])
    assert result.exit_code == 1
    assert "name a second one" in result.stderr


def test_a_run_without_a_compiled_form_cannot_be_compared_alone(folder: Path) -> None:
    result = run(make_run_folder(folder, "flux-eager", forms=("eager",)))
    assert result.exit_code == 1
    assert "has no compiled form: it holds eager" in result.stderr


def test_nothing_is_written_when_a_side_cannot_be_read(folder: Path) -> None:
    result = run(VIT[0], "nowhere.json")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: nowhere.json is not there")
    assert not (folder / "reports").exists()


def test_a_trace_has_no_forms(folder: Path) -> None:
    result = run(*VIT, "--form-a", "eager")
    assert result.exit_code == 1
    assert "has no forms" in result.stderr


def test_a_report_says_how_to_make_it_again(folder: Path) -> None:
    done = tracekit("compare", *VIT, folder=folder)
    assert done.returncode == 0
    text = (folder / "reports/vit_eager-vs-vit_default.md").read_text()
    assert shlex.join(["tracekit", "compare", *map(str, VIT)]) in text
