from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import webbrowser
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.runs import at_once, make_run_folder
from tests.traces import make_call, make_kernel, make_op, make_span, write_trace

from tracekit import store
from tracekit.cli.main import main
from tracekit.model.run import Environment, FormName, FormResult, Recording, RecordingKind, Run, Settings
from tracekit.serving import perfetto


@pytest.fixture(autouse=True)
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A port of the test's own, as the real one may be in use."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = int(probe.getsockname()[1])
    monkeypatch.setattr(perfetto, "PORT", free)
    return free


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "vit.json"
    path.write_text('{"traceEvents": []}')
    return path


def make_form(name: FormName, kinds: tuple[RecordingKind, ...]) -> FormResult:
    recordings = tuple(Recording(kind, f"{name}-{kind}.json.gz", 1, 10) for kind in kinds)
    return FormResult(name, (), (1.0,), None, None, None, recordings)


def make_run(folder: Path, *forms: FormResult) -> Path:
    settings = Settings(
        "flux", "tiny", "cpu", "float32", "transformer", "default", True, None, 1, 1, 1, 1, "", None, 0, 1
    )
    environment = Environment("3.11.2", "Linux x86_64", None, 2, None, None, None, None, {}, None)
    run = Run(
        "tracekit.run/1",
        "complete",
        "0",
        "tracekit profile",
        "2026-01-02T03:04:05+00:00",
        settings,
        "",
        environment,
        (),
        forms,
        (),
        (),
    )
    folder.mkdir()
    for form in forms:
        for recording in form.recordings:
            (folder / recording.path).write_bytes(b"recorded")
    store.save(run, folder)
    return folder


def fetch_when_served(address: str, seconds: float = 10) -> threading.Thread:
    """Plays Perfetto's page in a browser: fetches `address` as soon as it is there."""

    def fetch() -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                request = urllib.request.Request(address, headers={"Origin": perfetto.PAGE})
                with urllib.request.urlopen(request) as response:
                    response.read()
                return
            except OSError:
                time.sleep(0.02)

    thread = threading.Thread(target=fetch)
    thread.start()
    return thread


def test_a_trace_is_served_until_it_was_fetched(trace: Path, port: int) -> None:
    browser = fetch_when_served(f"http://127.0.0.1:{port}/vit.json")
    result = CliRunner().invoke(main, ["open", str(trace), "--no-browser", "--timeout", "20"])
    browser.join()
    assert result.exit_code == 0, result.output
    link = f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/vit.json&startupCommands="
    assert any(line.startswith(link) for line in result.output.splitlines())
    assert "fetched" in result.output.splitlines()[-1]


def test_the_browser_is_sent_to_the_link(trace: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda link: sent.append(link) or True)
    CliRunner().invoke(main, ["open", str(trace), "--timeout", "0.05"])
    assert [link.partition("&")[0] for link in sent] == [
        f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/vit.json"
    ]


def test_no_browser_means_none(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", sent.append)
    CliRunner().invoke(main, ["open", str(trace), "--no-browser", "--timeout", "0.05"])
    assert sent == []


def test_without_a_screen_it_says_how_to_reach_the_port(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    result = CliRunner().invoke(main, ["open", str(trace), "--timeout", "0.05"])
    assert "ssh -L" in result.output


def test_giving_up_says_so(trace: Path) -> None:
    result = CliRunner().invoke(main, ["open", str(trace), "--no-browser", "--timeout", "0.05"])
    assert result.exit_code == 1
    assert result.stderr == f"error: nobody fetched {trace} within 0.05 s; open the link on this machine in time\n"


def test_a_taken_port_is_one_line(trace: Path, port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        result = CliRunner().invoke(main, ["open", str(trace), "--no-browser"])
    assert result.exit_code == 1
    assert f"port {port} is taken" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "file"),
    [
        (("--form", "compiled"), "compiled-rich.json.gz"),
        (("--form", "eager"), "eager-rich.json.gz"),
        (("--form", "eager", "--recording", "light"), "eager-light.json.gz"),
        (("--form", "compiled", "--recording", "light"), "compiled-light.json.gz"),
    ],
)
def test_a_run_folder_shows_the_recording_that_was_asked_for(
    tmp_path: Path, options: tuple[str, ...], file: str
) -> None:
    run = make_run(tmp_path / "run", make_form("eager", ("light", "rich")), make_form("compiled", ("light", "rich")))
    result = CliRunner().invoke(main, ["open", str(run), "--no-browser", "--timeout", "0.05", *options])
    assert result.output.splitlines()[0] == f"serving {run / file}"


def test_an_eager_run_with_one_recording_shows_that(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", make_form("eager", ("light",)))
    result = CliRunner().invoke(main, ["open", str(run), "--no-browser", "--timeout", "0.05"])
    assert result.output.splitlines()[0] == f"serving {run / 'eager-light.json.gz'}"


def bad_inputs(folder: Path) -> dict[str, list[str]]:
    (folder / "empty.json").touch()
    (folder / "whole.json").write_text("{}")
    (folder / "folder").mkdir()
    run = make_run(folder / "run", make_form("eager", ("light",)))
    shutil.copytree(run, folder / "lost")
    (folder / "lost" / "eager-light.json.gz").unlink()
    return {
        "there is no file": [str(folder / "absent.json")],
        "is empty": [str(folder / "empty.json")],
        "is no run folder": [str(folder / "folder")],
        "leave --form": [str(folder / "whole.json"), "--form", "eager"],
        "no compiled form": [str(run), "--form", "compiled"],
        "no rich recording": [str(run), "--recording", "rich"],
        "is missing": [str(folder / "lost")],
    }


def test_json_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "analysis.json"
    other.write_text('{"schema": "tracekit.analysis/1"}')
    result = CliRunner().invoke(main, ["open", str(other), "--no-browser"])
    assert (result.exit_code, "it has no" in result.stderr) == (1, True)


def test_each_bad_input_is_one_line(tmp_path: Path) -> None:
    for said, arguments in bad_inputs(tmp_path).items():
        result = CliRunner().invoke(main, ["open", *arguments, "--no-browser"])
        assert result.exit_code == 1, arguments
        assert result.stderr.startswith("error: "), arguments
        assert said in result.stderr
        assert result.stderr.count("\n") == 1


def test_ctrl_c_stops_serving_with_one_line(trace: Path, port: int) -> None:
    code = (
        "import sys; from tracekit.serving import perfetto; perfetto.PORT = int(sys.argv.pop(1));"
        " from tracekit.cli.main import main; main()"
    )
    command = [sys.executable, "-u", "-c", code, str(port), "open", str(trace), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "waiting" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=20)
        finally:
            # Else leaving the block would wait for it for ever.
            process.kill()
    assert (process.returncode, said) == (130, "stopped\n")


def test_a_run_of_both_forms_becomes_one_trace_in_its_folder(tmp_path: Path) -> None:
    run = make_run_folder(tmp_path)
    result = CliRunner().invoke(main, ["open", str(run), "--no-serve"])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"written: {run / 'perfetto.json.gz'} (")
    events = json.loads(gzip.decompress((run / "perfetto.json.gz").read_bytes()))["traceEvents"]
    names = {each["args"]["name"] for each in events if each["name"] == "thread_name"}
    for form in ("eager", "compiled"):
        assert {
            f"{form}: {track}" for track in ("steps", "GPU 0 stream 7", "idle, GPU 0", "kernel groups, GPU 0")
        } <= names
    # Two kernels a step against one, in two steps.
    assert len([each for each in events if each.get("cat") == "kernel"]) == 6
    assert min(each["ts"] for each in events if each["ph"] == "X") == 0


def test_the_merged_trace_is_served_like_any_other(tmp_path: Path, port: int) -> None:
    browser = fetch_when_served(f"http://127.0.0.1:{port}/perfetto.json.gz", seconds=60)
    result = CliRunner().invoke(main, ["open", str(make_run_folder(tmp_path)), "--no-browser", "--timeout", "60"])
    browser.join()
    assert result.exit_code == 0, result.output
    assert "kernel%20groups" in result.output


def test_the_rich_recordings_are_merged_beside_the_light_ones(tmp_path: Path) -> None:
    run = make_run_folder(tmp_path)
    result = CliRunner().invoke(main, ["open", str(run), "--recording", "rich", "--no-serve"])
    assert result.exit_code == 0, result.output
    text = gzip.decompress((run / "perfetto-rich.json.gz").read_bytes()).decode()
    assert '"denoise"' in text
    assert "tracekit.step#1" not in text


def test_any_two_traces_become_one(tmp_path: Path) -> None:
    run = make_run_folder(tmp_path)
    out = tmp_path / "both.json.gz"
    files = [str(run / f"{form}-light.json") for form in ("eager", "compiled")]
    result = CliRunner().invoke(main, ["open", *files, "--out", str(out), "--no-serve"])
    assert result.exit_code == 0, result.output
    assert b'"eager-light: GPU 0 stream 7"' in gzip.decompress(out.read_bytes())


def test_while_two_are_merged_it_is_said_how_far_that_is(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["open", str(make_run_folder(tmp_path)), "--no-serve"])
    phases = [line.removesuffix(" ...") for line in result.stderr.splitlines() if line.endswith(" ...")]
    assert phases == [
        "reading the recordings",
        "matching kernels",
        "drawing eager",
        "drawing compiled",
        "writing the merged trace",
    ]


def test_two_that_are_no_run_together_are_kept_beside_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run = make_run_folder(tmp_path)
    monkeypatch.chdir(elsewhere)
    files = [str(run / f"{form}-light.json") for form in ("eager", "compiled")]
    result = CliRunner().invoke(main, ["open", *files, "--no-serve"])
    assert result.exit_code == 0, result.output
    assert (run / "eager-light-vs-compiled-light.perfetto.json.gz").is_file()
    other = Path(shutil.copytree(run, tmp_path / "other"))
    result = CliRunner().invoke(main, ["open", str(run), str(other), "--no-serve"])
    assert result.exit_code == 0, result.output
    assert len([*run.parent.glob("*-vs-*.perfetto.json.gz")]) == 1
    assert [*elsewhere.iterdir()] == []


def test_what_two_windows_cannot_tell_is_said(tmp_path: Path) -> None:
    run = make_run_folder(tmp_path)
    bare = write_trace(tmp_path, [make_call(0, 5, correlation=1), make_kernel(10, 20, correlation=1)])
    out = str(tmp_path / "both.json.gz")
    result = CliRunner().invoke(main, ["open", str(run / "eager-light.json"), str(bare), "--out", out, "--no-serve"])
    assert result.exit_code == 0, result.output
    assert "no groups and no arrows" in result.output


def test_a_run_without_a_gpu_shows_its_hosts(tmp_path: Path) -> None:
    files = []
    for name in ("eager", "compiled"):
        (tmp_path / name).mkdir()
        events = [make_span(10, 60), make_op(20, 30, name=f"aten::{name}")]
        files.append(str(write_trace(tmp_path / name, events)))
    out = tmp_path / "both.json.gz"
    result = CliRunner().invoke(main, ["open", *files, "--out", str(out), "--no-serve"])
    assert result.exit_code == 0, result.output
    text = gzip.decompress(out.read_bytes())
    assert b"aten::eager" in text
    assert b"aten::compiled" in text


def test_options_of_two_traces_are_refused_for_one(trace: Path) -> None:
    for options in (["--window", "whole"], ["--steps", "1"], ["--out", "x.json.gz"], ["--no-serve"]):
        result = CliRunner().invoke(main, ["open", str(trace), *options])
        assert (result.exit_code, "are for two traces" in result.stderr) == (1, True), options


def test_the_merged_trace_never_overwrites_what_it_is_made_of(tmp_path: Path) -> None:
    run = make_run_folder(tmp_path)
    files = [str(run / f"{form}-light.json") for form in ("eager", "compiled")]
    for out in files:
        result = CliRunner().invoke(main, ["open", *files, "--out", out, "--no-serve"])
        assert (result.exit_code, "would overwrite" in result.stderr) == (1, True)
    result = CliRunner().invoke(main, ["open", str(run), "--out", files[0], "--no-serve"])
    assert (result.exit_code, "would overwrite" in result.stderr) == (1, True)


def is_whole(path: Path) -> bool:
    return len(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]) > 10


@pytest.mark.parametrize("target", ["victim", "absent", "/dev/null", "pipe"])
@pytest.mark.parametrize("planted", ["perfetto.json.gz", ".perfetto.json.gz.draft"])
def test_a_link_in_a_run_folder_leads_nothing_out_of_it(tmp_path: Path, planted: str, target: str) -> None:
    run = make_run_folder(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.mkfifo(tmp_path / "pipe")
    (run / planted).symlink_to(tmp_path / target)
    before = sorted(tmp_path.iterdir())
    result = CliRunner().invoke(main, ["open", str(run), "--no-serve"])
    assert result.exit_code == 0, result.output
    assert victim.read_text() == "precious"
    assert sorted(tmp_path.iterdir()) == before
    assert Path(os.devnull).is_char_device()
    made = run / "perfetto.json.gz"
    assert not made.is_symlink() and is_whole(made)


def test_a_pipe_or_a_device_in_a_run_folder_is_replaced(tmp_path: Path) -> None:
    run = make_run_folder(tmp_path)
    os.mkfifo(run / "perfetto.json.gz")
    result = CliRunner().invoke(main, ["open", str(run), "--no-serve"])
    assert result.exit_code == 0, result.output
    assert is_whole(run / "perfetto.json.gz")


def test_a_pipe_that_was_asked_for_is_written_into(tmp_path: Path) -> None:
    run, pipe = make_run_folder(tmp_path), tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    result = CliRunner().invoke(main, ["open", str(run), "--no-serve", "--out", str(pipe)])
    reader.join(10)
    assert result.exit_code == 0, result.output
    assert pipe.is_fifo()
    assert b'"eager: GPU 0 stream 7"' in gzip.decompress(got[0])
    # The pipe may be standard output.
    assert (result.stdout, result.stderr.count("written:")) == ("", 1)


def test_a_device_that_was_asked_for_stays_one(tmp_path: Path) -> None:
    run, device = make_run_folder(tmp_path), tmp_path / "device"
    # By a link, so that a mistake would replace no device of the machine's.
    device.symlink_to(os.devnull)
    result = CliRunner().invoke(main, ["open", str(run), "--no-serve", "--out", str(device)])
    assert result.exit_code == 0, result.output
    assert device.is_symlink() and device.is_char_device()


def test_a_link_that_was_asked_for_is_followed(tmp_path: Path) -> None:
    run, link = make_run_folder(tmp_path), tmp_path / "link.json.gz"
    link.symlink_to(tmp_path / "place.json.gz")
    result = CliRunner().invoke(main, ["open", str(run), "--no-serve", "--out", str(link)])
    assert result.exit_code == 0, result.output
    assert link.is_symlink() and is_whole(tmp_path / "place.json.gz")


def test_what_cannot_be_served_is_said_before_anything_is_read(tmp_path: Path) -> None:
    run = make_run_folder(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for place in (os.devnull, tmp_path / "pipe"):
        result = CliRunner().invoke(main, ["open", str(run), "--no-browser", "--out", str(place)])
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert "pass --no-serve" in result.stderr


def test_several_at_once_leave_a_whole_trace_and_nothing_else(tmp_path: Path) -> None:
    run = make_run_folder(tmp_path)
    before = {path.name for path in run.iterdir()}
    for ended in at_once(4, "open", run, "--no-serve", folder=tmp_path):
        assert ended.returncode == 0, ended.stderr
    assert is_whole(run / "perfetto.json.gz")
    assert {path.name for path in run.iterdir()} == before | {"perfetto.json.gz"}


def test_a_program_of_this_machine_does_not_end_the_serving(trace: Path, port: int) -> None:
    address = f"http://127.0.0.1:{port}/vit.json"
    got: list[bytes] = []

    def fetch() -> None:
        for _ in range(500):
            try:
                with urllib.request.urlopen(address) as response:
                    got.append(response.read())
                    return
            except OSError:
                time.sleep(0.02)

    program = threading.Thread(target=fetch)
    program.start()
    result = CliRunner().invoke(main, ["open", str(trace), "--no-browser", "--timeout", "2"])
    program.join()
    assert got == [trace.read_bytes()]
    assert (result.exit_code, "nobody fetched" in result.stderr) == (1, True)
