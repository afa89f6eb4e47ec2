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
from click.testing import Result
from tests.cli.runs import assert_refused, at_once, edited, invoke, make_run_folder
from tests.traces import make_call, make_kernel, make_op, make_span, write_trace

from tracekit.serving import perfetto


@pytest.fixture(autouse=True)
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A port of the test's own, as the real one may be in use: none of those that are given to whoever asks for any,
    from 32768 on, and in another process another."""
    free = next(filter(is_free, range(20_000 + os.getpid() % 10_000, 32_768)))
    monkeypatch.setattr(perfetto, "PORT", free)
    return free


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "vit.json"
    path.write_text('{"traceEvents": []}')
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run_folder(tmp_path)


@pytest.fixture
def files(run: Path) -> list[Path]:
    """The light recordings of both forms."""
    return [run / f"{form}-light.json" for form in ("eager", "compiled")]


def serve(*arguments: object, seconds: float = 0.05) -> Result:
    return invoke("open", *arguments, "--timeout", seconds)


def merge(*arguments: object) -> Result:
    result = invoke("open", *arguments, "--no-serve")
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("merged", [False, True])
def test_a_trace_is_served_until_perfettos_page_has_fetched_it(trace: Path, run: Path, port: int, merged: bool) -> None:
    place, name = (run, "perfetto.json.gz") if merged else (trace, "vit.json")

    def fetch() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                request = urllib.request.Request(f"http://127.0.0.1:{port}/{name}", headers={"Origin": perfetto.PAGE})
                with urllib.request.urlopen(request) as response:
                    response.read()
                return
            except OSError:
                time.sleep(0.02)

    browser = threading.Thread(target=fetch)
    browser.start()
    result = serve(place, "--no-browser", seconds=60)
    browser.join()
    assert result.exit_code == 0, result.output
    link = f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/{name}&startupCommands="
    assert any(line.startswith(link) and "kernel%20groups" in line for line in result.output.splitlines())
    assert any("fetched" in line for line in result.output.splitlines())


@pytest.mark.parametrize("options", [[], ["--no-browser"]])
def test_the_browser_is_sent_to_the_link_unless_told_otherwise(
    trace: Path, port: int, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    sent: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda link: sent.append(link) or True)
    serve(trace, *options)
    link = f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/vit.json"
    assert [each.partition("&")[0] for each in sent] == ([] if options else [link])


def test_without_a_screen_it_says_how_to_reach_the_port(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert "ssh -L" in serve(trace).output


def test_giving_up_says_so(trace: Path) -> None:
    assert_refused(serve(trace, "--no-browser"), f"{trace} within 0.05 s")


def test_a_page_that_is_long_in_coming_is_told_of_once(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.cli.opening.HINT_SECONDS", 0.1)
    lines = serve(trace, "--no-browser", seconds=0.7).stdout.splitlines()
    assert [line.startswith("not fetched for 0.1 s") for line in lines].count(True) == 1


@pytest.mark.parametrize(
    ("options", "file"),
    [
        (("--form", "compiled"), "compiled-rich.json"),
        (("--form", "eager"), "eager-rich.json"),
        (("--form", "eager", "--recording", "light"), "eager-light.json"),
        (("--form", "compiled", "--recording", "light"), "compiled-light.json"),
    ],
)
def test_a_run_folder_shows_the_recording_that_was_asked_for(run: Path, options: tuple[str, ...], file: str) -> None:
    assert serve(run, "--no-browser", *options).output.splitlines()[0] == f"serving {run / file}"


@pytest.fixture
def light_alone(tmp_path: Path) -> Path:
    """An eager run with one recording."""
    place = make_run_folder(tmp_path, "eager", forms=("eager",))
    with edited(place) as told:
        del told["forms"][0]["recordings"][1]
    return place


def test_an_eager_run_with_one_recording_shows_that(light_alone: Path) -> None:
    result = serve(light_alone, "--no-browser")
    assert result.output.splitlines()[0] == f"serving {light_alone / 'eager-light.json'}"


def test_each_bad_input_is_one_line(tmp_path: Path, light_alone: Path) -> None:
    for name, text in (("empty", ""), ("other", '{"schema": "tracekit.analysis/1"}'), ("whole", "{}")):
        (tmp_path / f"{name}.json").write_text(text)
    (tmp_path / "folder").mkdir()
    shutil.copytree(light_alone, tmp_path / "lost")
    (tmp_path / "lost" / "eager-light.json").unlink()
    for arguments, message in (
        (["absent.json"], "absent.json"),
        (["absent.json", "--no-serve"], "absent.json"),
        (["empty.json"], "is empty"),
        (["other.json"], "it has no"),
        (["folder"], "run folder"),
        (["whole.json", "--form", "eager"], "leave --form"),
        (["eager", "--form", "compiled"], "has no compiled"),
        (["eager", "--recording", "rich"], "no rich recording"),
        (["lost"], "is missing"),
        *((["whole.json", *options], "several traces") for options in (["--steps", "1"], ["--window", "whole"])),
        *((["whole.json", *options], "several traces") for options in (["--out", "x.gz"], ["--no-serve"])),
    ):
        assert_refused(invoke("open", tmp_path / arguments[0], *arguments[1:], "--no-browser"), message)


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
            _, said = process.communicate(timeout=60)
        finally:
            # Else leaving the block would wait for it for ever.
            process.kill()
    assert (process.returncode, said) == (130, "stopped\n")


def events_of(path: Path) -> list[dict[str, object]]:
    events: list[dict[str, object]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return events


def test_a_run_of_both_forms_becomes_one_trace_in_its_folder(run: Path) -> None:
    result = merge(run)
    assert result.stdout.startswith(f"written: {run / 'perfetto.json.gz'} (")
    phases = [line.removesuffix(" ...") for line in result.stderr.splitlines() if line.endswith(" ...")]
    first, last = ("reading the recordings", "matching kernels"), "writing the merged trace"
    assert phases == [*first, "drawing eager", "drawing compiled", last]
    events = events_of(run / "perfetto.json.gz")
    names = {each["args"]["name"] for each in events if each["name"] == "thread_name"}  # type: ignore[index]
    for form in ("eager", "compiled"):
        tracks = ("steps", "GPU 0 stream 7", "idle, GPU 0", "kernel groups, GPU 0")
        assert {f"/{form}/{track}" for track in tracks} <= names
    # Two kernels a step against one, in two steps.
    assert len([each for each in events if each.get("cat") == "kernel"]) == 6
    assert min(each["ts"] for each in events if each["ph"] == "X") == 0  # type: ignore[type-var]


def test_the_rich_recordings_are_merged_beside_the_light_ones(run: Path) -> None:
    merge(run, "--recording", "rich")
    text = gzip.decompress((run / "perfetto-rich.json.gz").read_bytes())
    assert b'"denoise"' in text and b"tracekit.step#1" not in text


def test_two_that_are_no_run_together_are_kept_beside_the_first_or_where_it_is_said(
    tmp_path: Path, run: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    merge(*files)
    made = run / "eager-light-vs-compiled-light.perfetto.json.gz"
    assert b'"/eager-light/GPU 0 stream 7"' in gzip.decompress(made.read_bytes())
    merge(run, shutil.copytree(run, tmp_path / "other"))
    assert len([*tmp_path.glob("*-vs-*.perfetto.json.gz")]) == 1
    merge(*files, "--out", tmp_path / "both.json.gz")
    assert (tmp_path / "both.json.gz").read_bytes() == made.read_bytes()
    assert [*elsewhere.iterdir()] == []


def test_what_two_windows_cannot_tell_is_said(tmp_path: Path, files: list[Path]) -> None:
    bare = write_trace(tmp_path, [make_call(0, 5, correlation=1), make_kernel(10, 20, correlation=1)])
    assert "no arrows" in merge(files[0], bare).output


def test_a_run_without_a_gpu_shows_its_hosts(tmp_path: Path) -> None:
    places = []
    for name in ("eager", "compiled"):
        (tmp_path / name).mkdir()
        places.append(write_trace(tmp_path / name, [make_span(10, 60), make_op(20, 30, name=f"aten::{name}")]))
    merge(*places, "--out", tmp_path / "both.json.gz")
    text = gzip.decompress((tmp_path / "both.json.gz").read_bytes())
    assert b"aten::eager" in text and b"aten::compiled" in text


def test_the_merged_trace_never_overwrites_what_it_is_made_of(run: Path, files: list[Path]) -> None:
    for read, out in ((files, files[0]), (files, files[1]), ([run], files[0])):
        assert_refused(invoke("open", *read, "--out", out, "--no-serve"), "would overwrite")


@pytest.mark.parametrize("target", ["victim", "absent", "/dev/null", "a pipe in its place"])
def test_what_was_planted_in_a_run_folder_is_replaced_and_leads_nothing_out_of_it(
    tmp_path: Path, run: Path, target: str
) -> None:
    victim, made = tmp_path / "victim", run / "perfetto.json.gz"
    victim.write_text("precious")
    if target.startswith("a pipe"):
        os.mkfifo(made)
    else:
        made.symlink_to(tmp_path / target)
    before = sorted(tmp_path.iterdir())
    merge(run)
    assert (victim.read_text(), sorted(tmp_path.iterdir())) == ("precious", before)
    assert Path(os.devnull).is_char_device()
    assert not made.is_symlink() and len(events_of(made)) > 10


def test_a_pipe_that_was_asked_for_is_written_into_and_a_link_followed_to_a_file_or_a_device(
    tmp_path: Path, run: Path
) -> None:
    pipe, got = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    result = merge(run, "--out", pipe)
    reader.join(60)
    assert b'"/eager/GPU 0 stream 7"' in gzip.decompress(got[0])
    # The pipe may be standard output.
    assert (pipe.is_fifo(), result.stdout, result.stderr.count("written:")) == (True, "", 1)
    # By a link, so that a mistake would replace no device of the machine's.
    for name, target in (("device", Path(os.devnull)), ("link", tmp_path / "place.json.gz")):
        (tmp_path / name).symlink_to(target)
        merge(run, "--out", tmp_path / name)
        assert (tmp_path / name).is_symlink()
    assert (tmp_path / "device").is_char_device() and len(events_of(tmp_path / "place.json.gz")) > 10


def test_what_cannot_be_served_is_said_before_anything_is_read(tmp_path: Path, run: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (os.devnull, tmp_path / "pipe"):
        assert_refused(invoke("open", run, "--no-browser", "--out", place), "pass --no-serve")


def test_several_at_once_leave_a_whole_trace_and_nothing_else(tmp_path: Path, run: Path) -> None:
    before = {path.name for path in run.iterdir()}
    for ended in at_once(2, "open", run, "--no-serve", folder=tmp_path):
        assert ended.returncode == 0, ended.stderr
    assert len(events_of(run / "perfetto.json.gz")) > 10
    assert {path.name for path in run.iterdir()} == before | {"perfetto.json.gz"}
