import gzip
import html
import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.cli.runs import ROOT, assert_refused, edited, interrupted, invoke, make_run_folder
from tests.traces import DATA, make_call, make_kernel, make_op, make_span, write_trace

from tracekit.report.sections.findings import STATED

VIT = DATA / "vit_eager.json.zst"
run = partial(invoke, "analyze")


def told(*arguments: object) -> Any:
    """The JSON on standard output."""
    return json.loads(run(*arguments, "--json", "-").stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_run_folder(tmp_path)


def test_a_trace_file_is_summed_up_and_its_json_goes_to_a_file_or_stands_alone(tmp_path: Path) -> None:
    result = run(VIT, "--json", tmp_path / "deep" / "a.json")
    assert result.exit_code == 0
    assert "GPU idle" in result.stdout and "1.411" in result.stdout
    analysis = json.loads((tmp_path / "deep" / "a.json").read_text())
    assert (analysis["schema"], analysis["kernels"]["count"]) == ("tracekit.analysis/1", 306)
    alone = run(VIT, "--top", 3, "--json", "-")
    assert len(json.loads(alone.stdout)["kernels"]["top"]) == 3
    kernels = run(VIT, "--top", 3, "-v").stdout.partition("Largest of ")[2].partition("\n\n")[0]
    assert len(kernels.splitlines()) == 1 + 3


def test_an_interrupted_run_shows_what_was_measured_and_the_form_that_was_recorded(folder: Path) -> None:
    place = interrupted(folder)
    whole = run(place)
    assert whole.exit_code == 0
    assert "Interrupted run, not complete" in whole.stdout and "light, rich" in whole.stdout
    (place / "compiled-light.json").rename(place / "gone")
    missing = run(place)
    assert (missing.exit_code, "timed calls" in missing.stdout) == (1, True)
    for number, shown in ((1, "eager"), (0, "timed calls")):
        with edited(place) as manifest:
            manifest["forms"][number]["recordings"] = []
        result = run(place)
        assert (result.exit_code, shown in result.stdout) == (0, True), result.stderr
    assert run(place, "--json", "-").exit_code == 1


def test_a_step_by_its_name_is_read_in_the_light_recording(folder: Path) -> None:
    assert "compiled-light" in run(folder, "--window", "tracekit.step#0").stdout
    assert "compiled-rich" in run(folder, "--window", "denoise").stdout


def test_ctrl_c_ends_waiting_for_standard_input() -> None:
    command = [sys.executable, "-m", "tracekit", "analyze", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True) as process:
        # More than a pipe holds: when all of it is taken, everything is imported and reading has begun.
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write('{"traceEvents": [' + " " * (1 << 20))
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)
        finally:
            process.kill()
        assert (process.returncode, process.stderr.read()) == (130, "stopped\n")


def test_only_some_steps_are_read(folder: Path) -> None:
    assert told(folder, "--steps", "1")["window"]["steps"] == 1
    assert_refused(run(folder, "--steps", "4-2"), "--steps")
    assert "2-4" in run(folder, "--steps", "many").stderr


def test_strict_ends_with_two_where_a_recording_is_damaged(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [make_kernel(0, 1), {**make_kernel(2, 3), "dur": -1}])
    assert (run(path).exit_code, run(path, "--strict").exit_code) == (1, 2)
    assert run(VIT, "--strict").exit_code == 0


def test_a_run_s_json_holds_what_was_measured_beside_the_trace(folder: Path) -> None:
    found = told(folder)["run"]
    assert (found["form"]["name"], found["rich"]["window"]["steps"]) == ("compiled", 1)
    per_step = found["per_step"]
    assert sum(per_step["recorded_idle_by_cause_us"].values()) == pytest.approx(per_step["recorded_idle_us"])


def test_json_holds_the_findings_of_the_page(tmp_path: Path) -> None:
    run_folder = ROOT / "traces" / "h100-vit"
    findings = told(run_folder, "--html", tmp_path)["findings"]
    assert told(run_folder)["findings"] == findings
    found = {finding["code"]: finding for finding in findings}
    assert {"launch_bound", "single_precision"} <= found.keys()
    assert found["launch_bound"]["advice"].startswith("tracekit profile vit --compiled --mode reduce-overhead")
    page = next(tmp_path.glob("*.html")).read_text(encoding="utf-8")
    # What nobody can act on is in the JSON alone.
    listed = [each["title"] for each in findings if each["code"] not in STATED]
    assert listed and [title for title in listed if html.escape(title) not in page] == []
    assert told(VIT)["findings"] == []


def test_a_window_is_a_span_by_regular_expression() -> None:
    window = told(VIT, "--window", r"tracekit\.iteration.*")["window"]
    assert (window["kind"], window["steps"]) == ("span", 2)


def test_a_run_folder_is_its_compiled_form_unless_another_is_asked_for(tmp_path: Path, folder: Path) -> None:
    assert told(folder)["kernels"]["count"] == 2
    assert told(folder, "--form", "eager")["kernels"]["count"] == 4
    assert "--form" in run(folder).stdout
    eager = make_run_folder(tmp_path, "flux-eager", forms=("eager",))
    assert run(eager).exit_code == 0
    assert_refused(run(eager, "--form", "compiled"), "has no compiled variant, only eager")


BAD = {
    "missing": (None, "check the path"),
    "empty": (b"", "empty"),
    "words": (b"this is no trace", ""),
    "invalid": (b'{"traceEvents": [{"ph": "X", ]}', ""),
    "other": (b'{"answer": 42}', ""),
    "no-events": (b'{"traceEvents": []}', "has no events"),
    "broken-gzip": (gzip.compress(b'{"traceEvents": []}')[:12], ""),
    "binary": (bytes(range(256)), ""),
}


def assert_refused_and_silent(result: Result, message: str) -> None:
    assert_refused(result, message)
    assert result.stdout == ""


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_trace_gets_one_line(kind: str, tmp_path: Path) -> None:
    content, expected = BAD[kind]
    path = tmp_path / f"{kind}.json"
    if content is not None:
        path.write_bytes(content)
    for message in (expected, path.name):
        assert_refused_and_silent(run(path), message)


def test_what_a_shell_may_pass_is_answered_in_one_line(tmp_path: Path, folder: Path) -> None:
    (folder / "run.json").write_text('{"schema": ')
    (tmp_path / "trace.json.gz").write_bytes(VIT.read_bytes())
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        ((tmp_path / "empty",), "run folder"),
        ((folder,), "run.json cannot be read"),
        (("x" * 5000,), "File name too long"),
        (("",), "the path of the trace is empty"),
        ((VIT, "--steps", "1" * 5000), "--steps takes a step's number"),
        ((VIT, "--json", "y" * 300), "File name too long"),
        # Most likely the trace was meant, and the JSON does not replace the page.
        ((tmp_path / "trace.json.gz", "--html", tmp_path / "trace.json.gz"), "put --html last"),
        ((VIT, "--json", tmp_path / "x.html", "--html", tmp_path / "x.html"), "would both be written to"),
    ):
        result = run(*arguments)
        assert (result.exit_code, message in result.stderr) == (1, True), result.output
        assert result.stderr.splitlines()[-1].startswith("error: ")
    assert (tmp_path / "trace.json.gz").read_bytes() == VIT.read_bytes()
    assert not (tmp_path / "x.html").exists()


def test_a_trace_without_gpu_activity_says_how_to_record_it_or_is_read_when_asked_for(tmp_path: Path) -> None:
    assert_refused_and_silent(run(write_trace(tmp_path, [make_call(0, 5, correlation=1)])), "CUPTI")
    path = write_trace(tmp_path, [make_op(0, 5)])
    assert_refused_and_silent(run(path), "no GPU activity")
    assert told(path, "--cpu")["gpu"] is None


@pytest.mark.parametrize("window", ["yours", "(("])
def test_an_unknown_window_gets_one_line(tmp_path: Path, window: str) -> None:
    path = write_trace(tmp_path, [make_span(0, 9, name="mine"), make_call(0, 1, correlation=1), make_kernel(2, 3)])
    assert_refused_and_silent(run(path, "--window", window), window)


def test_a_truncated_trace_is_read_as_far_as_it_goes_and_is_still_an_error(tmp_path: Path) -> None:
    whole = write_trace(tmp_path, [make_kernel(i, i + 0.5) for i in range(50)]).read_bytes()
    cut = tmp_path / "cut.json"
    cut.write_bytes(whole[: len(whole) // 2])
    result = run(cut, "--json", "-")
    found = json.loads(result.stdout)
    assert 0 < found["kernels"]["count"] < 50
    assert [each["code"] for each in found["health"] if each["severity"] == "error"] == ["truncated"]
    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"error: {cut} is damaged: ")
    assert last.endswith("copy or record it again")


def test_a_page_and_its_twin_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    result = run(VIT, "--json", "-", "--html", tmp_path / "deep" / "vit.html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "deep" / "vit.html").read_text()
    assert "GPU idle" in page and 'id="timelines-data"' in page
    assert (tmp_path / "deep" / "vit.md").read_text().startswith("# vit")
    assert f"Report {tmp_path / 'deep' / 'vit.html'}" in result.stderr.replace("\n", "")
    assert result.stdout == run(VIT, "--json", "-", "--html", tmp_path / "pages").stdout
    assert (tmp_path / "pages" / "vit_eager-analysis.html").is_file()


def test_without_a_path_it_lies_among_the_reports_by_the_name_of_its_run_and_form(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(folder, "--form", "eager", "--html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "reports" / "flux-compiled-eager-analysis.html").read_text()
    assert "flux, eager: 1.00 ms per call." in page
    assert "Recorded 2026-01-02 03:04 UTC with tracekit" in page


def test_a_folder_of_ranks_is_no_trace_but_one_rank_of_it_is() -> None:
    ranks = DATA / "ranks"
    assert_refused(run(ranks), "tracekit ranks")
    assert [told(ranks, "--rank", number)["communication"]["rank"] for number in (0, 1)] == [0, 1]
    assert_refused(run(ranks, "--rank", 7), "rank 7")
    assert_refused(run(VIT, "--rank", 0), "--rank 0")


def test_busy_time_of_a_rank_is_told_as_compute_and_communication() -> None:
    analysis = told(DATA / "ranks", "--rank", 0)
    communication = analysis["communication"]
    assert communication["compute_us"] + communication["exposed_us"] == pytest.approx(analysis["gpu"]["busy_us"])
    assert [note["code"] for note in analysis["notes"] if note["grave"]] == ["waiting_untold"]
    assert len(analysis["grave"]) == 1
    assert told(VIT)["communication"] is None
