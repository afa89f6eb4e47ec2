from __future__ import annotations

import gzip
import html
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.runs import ROOT, make_run_folder
from tests.traces import DATA, make_call, make_kernel, make_op, make_span, write_trace

from tracekit.cli.main import main

VIT = DATA / "vit_eager.json.gz"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["analyze", *map(str, arguments)])


def test_a_trace_file_is_summed_up_and_its_json_goes_to_a_file_or_stands_alone(tmp_path: Path) -> None:
    result = run(VIT, "--json", tmp_path / "deep" / "a.json")
    assert result.exit_code == 0
    assert "GPU busy" in result.stdout and "1.41 ms" in result.stdout and "Largest 10 of" in result.stdout
    analysis = json.loads((tmp_path / "deep" / "a.json").read_text())
    assert (analysis["schema"], analysis["kernels"]["count"]) == ("tracekit.analysis/1", 306)
    alone = run(VIT, "--top", 3, "--json", "-")
    assert len(json.loads(alone.stdout)["kernels"]["top"]) == 3
    assert "Largest 3 of" in alone.stderr


def test_an_interrupted_run_shows_what_was_measured(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path).rename(tmp_path / "flux-compiled.incomplete")
    manifest = folder / "run.json"
    manifest.write_text(manifest.read_text().replace('"complete"', '"incomplete"'))
    result = run(folder)
    assert result.exit_code == 0
    assert "This run was interrupted and is not whole" in result.stdout
    assert "light, rich" in result.stdout
    (folder / "compiled-light.json").unlink()
    missing = run(folder)
    assert missing.exit_code == 1
    assert "timed calls" in missing.stdout


def test_an_interrupted_run_shows_the_form_that_was_recorded(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path).rename(tmp_path / "flux-compiled.incomplete")
    run_json = json.loads((folder / "run.json").read_text())
    run_json["status"] = "incomplete"
    run_json["forms"][1]["recordings"] = []
    (folder / "run.json").write_text(json.dumps(run_json))
    shown = run(folder)
    assert (shown.exit_code, "this is its eager form" in shown.stdout) == (0, True), shown.stderr
    run_json["forms"][0]["recordings"] = []
    (folder / "run.json").write_text(json.dumps(run_json))
    shown = run(folder)
    assert (shown.exit_code, "timed calls" in shown.stdout) == (0, True)
    assert run(folder, "--json", "-").exit_code == 1


def test_a_damaged_rich_recording_is_said_and_ends_with_one(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path)
    rich = folder / "compiled-rich.json"
    rich.write_bytes(rich.read_bytes()[:-40])
    result = run(folder)
    assert result.exit_code == 1
    assert "in the rich recording: the file ends" in " ".join(result.stdout.split())


def test_a_step_by_its_name_is_read_in_the_light_recording(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path)
    assert "compiled-light" in run(folder, "--window", "tracekit.step#0").stdout
    assert "compiled-rich" in run(folder, "--window", "denoise").stdout


def test_ctrl_c_ends_waiting_for_standard_input() -> None:
    command = [sys.executable, "-m", "tracekit", "analyze", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True) as process:
        # More than a pipe holds: when all of it is taken, everything is imported and reading has begun.
        assert process.stdin is not None
        process.stdin.write('{"traceEvents": [' + " " * (1 << 20))
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=20)
        finally:
            process.kill()
        assert process.stderr is not None
        assert (process.returncode, process.stderr.read()) == (130, "stopped\n")


def test_only_some_steps_are_read(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path)
    assert json.loads(run(folder, "--steps", "1", "--json", "-").stdout)["window"]["steps"] == 1
    assert run(folder, "--steps", "4-2").exit_code == 1
    assert "2-4" in run(folder, "--steps", "many").stderr


def test_strict_ends_with_two_where_a_recording_is_damaged(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [make_kernel(0, 1), {**make_kernel(2, 3), "dur": -1}])
    assert (run(path).exit_code, run(path, "--strict").exit_code) == (1, 2)
    assert run(VIT, "--strict").exit_code == 0


def test_a_run_s_json_holds_what_was_measured_beside_the_trace(tmp_path: Path) -> None:
    told = json.loads(run(make_run_folder(tmp_path), "--json", "-").stdout)
    assert told["run"]["form"]["name"] == "compiled"
    per_step = told["run"]["per_step"]
    assert sum(per_step["recorded_idle_by_cause_us"].values()) == pytest.approx(per_step["recorded_idle_us"])
    assert told["run"]["rich"]["window"]["steps"] == 1


def test_json_holds_the_findings_of_the_page(tmp_path: Path) -> None:
    run_folder = ROOT / "traces" / "h200-vit"
    told = json.loads(run(run_folder, "--json", "-", "--html", tmp_path).stdout)
    assert json.loads(run(run_folder, "--json", "-").stdout)["findings"] == told["findings"]
    found = {finding["code"]: finding for finding in told["findings"]}
    assert {"launch_bound", "single_precision"} <= found.keys()
    assert found["launch_bound"]["advice"].startswith("tracekit profile vit --compiled --mode reduce-overhead")
    page = next(tmp_path.glob("*.html")).read_text(encoding="utf-8")
    assert [title for title in (each["title"] for each in told["findings"]) if html.escape(title) not in page] == []
    assert json.loads(run(VIT, "--json", "-").stdout)["findings"] == []


def test_a_window_is_a_span_by_regular_expression() -> None:
    analysis = json.loads(run(VIT, "--window", r"tracekit\.iteration.*", "--json", "-").stdout)
    assert (analysis["window"]["kind"], analysis["window"]["steps"]) == ("span", 2)


def test_a_run_folder_is_its_compiled_form_unless_another_is_asked_for(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path)
    default, eager = run(folder, "--json", "-"), run(folder, "--form", "eager", "--json", "-")
    assert json.loads(default.stdout)["kernels"]["count"] == 2
    assert json.loads(eager.stdout)["kernels"]["count"] == 4
    assert "this is its compiled form; --form chooses" in default.stderr


def test_a_run_without_the_form_says_what_it_holds(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path, "flux-eager", forms=("eager",))
    assert run(folder).exit_code == 0
    result = run(folder, "--form", "compiled")
    assert result.exit_code == 1
    assert "has no compiled form: it holds eager" in result.stderr


def test_a_trace_of_a_cpu_is_read_when_asked_for(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [make_op(0, 5)])
    assert run(path).exit_code == 1
    assert json.loads(run(path, "--cpu", "--json", "-").stdout)["gpu"] is None


BAD = {
    "missing": (None, "is not there"),
    "empty": (b"", "empty"),
    "words": (b"this is no trace", ""),
    "invalid": (b'{"traceEvents": [{"ph": "X", ]}', ""),
    "other": (b'{"answer": 42}', ""),
    "no-events": (b'{"traceEvents": []}', "has no events"),
    "broken-gzip": (gzip.compress(b'{"traceEvents": []}')[:12], ""),
    "binary": (bytes(range(256)), ""),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_trace_gets_one_line(kind: str, tmp_path: Path) -> None:
    content, expected = BAD[kind]
    path = tmp_path / f"{kind}.json"
    if content is not None:
        path.write_bytes(content)
    result = run(path)
    assert_one_line(result, expected)
    assert_one_line(result, path.name)
    (tmp_path / "folder").mkdir()
    assert_one_line(run(tmp_path / "folder"), "no run folder")


def test_a_trace_without_gpu_activity_says_how_to_record_it(tmp_path: Path) -> None:
    assert_one_line(run(write_trace(tmp_path, [make_op(0, 5)])), "no GPU activity")
    assert_one_line(run(write_trace(tmp_path, [make_call(0, 5, correlation=1)])), "CUPTI")


def test_an_unknown_window_gets_one_line(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [make_span(0, 9, name="mine"), make_call(0, 1, correlation=1), make_kernel(2, 3)])
    assert_one_line(run(path, "--window", "yours"), "yours")
    assert_one_line(run(path, "--window", "(("), "((")


def test_a_truncated_trace_is_read_as_far_as_it_goes_and_is_still_an_error(tmp_path: Path) -> None:
    whole = write_trace(tmp_path, [make_kernel(i, i + 0.5) for i in range(50)]).read_bytes()
    cut = tmp_path / "cut.json"
    cut.write_bytes(whole[: len(whole) // 2])
    result = run(cut, "--json", "-")
    assert 0 < json.loads(result.stdout)["kernels"]["count"] < 50
    assert [each["code"] for each in json.loads(result.stdout)["health"] if each["severity"] == "error"] == [
        "truncated"
    ]
    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"error: {cut} is damaged: the file ends before its JSON does")
    assert last.endswith("copy or record it again")


def assert_one_line(result: Result, expected: str) -> None:
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("error: ")
    assert expected in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x" * 5000], "File name too long"),
        ([""], "the path of the trace is empty"),
        ([str(DATA / "vit_eager.json.gz"), "--steps", "1" * 5000], "--steps takes a step's number"),
        ([str(DATA / "vit_eager.json.gz"), "--json", "y" * 300], "File name too long"),
    ],
)
def test_what_a_shell_may_pass_is_answered_in_one_line(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["analyze", *arguments])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr


def test_a_page_and_its_twin_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    result = run(VIT, "--json", "-", "--html", tmp_path / "deep" / "vit.html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "deep" / "vit.html").read_text()
    assert "<h1>vit_eager: the GPU was busy for" in page and 'id="timelines-data"' in page
    assert (tmp_path / "deep" / "vit.md").read_text().startswith("# vit")
    assert f"written: {tmp_path / 'deep' / 'vit.html'}" in result.stderr.replace("\n", "")
    assert result.stdout == run(VIT, "--json", "-", "--html", tmp_path / "pages").stdout
    assert (tmp_path / "pages" / "vit_eager-analysis.html").is_file()


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


def test_a_trace_that_was_meant_is_not_overwritten(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json.gz"
    trace.write_bytes(VIT.read_bytes())
    result = run(trace, "--html", trace)
    assert (result.exit_code, "is a file" in result.stderr) == (1, True)
    assert trace.read_bytes() == VIT.read_bytes()


def test_the_json_does_not_replace_the_page(tmp_path: Path) -> None:
    result = run(VIT, "--json", tmp_path / "x.html", "--html", tmp_path / "x.html")
    assert (result.exit_code, "would both be written to" in result.stderr) == (1, True)
    assert not (tmp_path / "x.html").exists()
