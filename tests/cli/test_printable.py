"""What steers a terminal reaches it from no command, wherever it stands: in traces, names of files, a run's manifest,
what was typed."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.runs import ROOT, edited, make_run_folder
from tests.cli.runs import invoke as run
from tests.traces import make_call, make_kernel, make_span, write_trace

from tracekit.cli.output import say
from tracekit.console import PrintableConsole
from tracekit.errors import TheirCodeError
from tracekit.measure.progress import shown

EVIL = "a\x1b]0;x\x07b\x1b[2Jc\u202ed\x9be\r"
SHOWN = "\N{REPLACEMENT CHARACTER}"
#: What a stranger writes as they please.
STRINGS = ("command", "size_reason", "tracekit", "failure")
SETTINGS = ("workload", "size", "scope", "mode", "dtype", "prompt")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def assert_harmless(result: Result, *, shows: bool = True) -> None:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    # Figures stay on one line with their ranges.
    for line in result.output.replace("\N{NO-BREAK SPACE}", " ").split("\n"):
        assert line.isprintable(), ascii(line)
    # Shown with a stand-in, or quoted as Python would.
    assert not shows or SHOWN in result.output or "\\x1b" in result.output, result.output


def evil_trace(folder: Path, name: str = "evil.json") -> Path:
    events = [
        make_span(0, 100, name=f"ProfilerStep#1{EVIL}"),
        make_span(0, 100, name=f"mine{EVIL}"),
        *(make_call(i, i + 0.5, correlation=i + 1) for i in range(3)),
        *(make_kernel(10 * i + 1, 10 * i + 5, name=f"kernel{i}{EVIL}", correlation=i + 1) for i in range(3)),
    ]
    return write_trace(folder, events).rename(folder / name)


def evil_run(folder: Path, *, failed: bool = False) -> Path:
    place = make_run_folder(folder, f"run{EVIL}")
    with edited(place) as told:
        told |= dict.fromkeys(STRINGS, EVIL) | {"notes": [EVIL]}
        told["settings"] |= dict.fromkeys(SETTINGS, EVIL) | {"variables": {EVIL: EVIL}}
        told["environment"] |= dict.fromkeys(("python", "platform", "cpu", "gpu", "driver", "cuda"), EVIL)
        told["environment"]["packages"] = {EVIL: EVIL}
        told["components"] = [{"name": EVIL, "parameters": 1, "compiled": True}]
        told |= {"status": "incomplete"} if failed else {"failure": None}
    return place


@pytest.mark.parametrize(
    "options",
    [
        *(("--window", name) for name in ("nope", "mine", f"nope{EVIL}")),
        *((), ("-v",), ("--html",), ("--html", "page.html"), ("--json", f"{EVIL}/x"), ("--steps", EVIL)),
    ],
)
def test_analyze(folder: Path, options: tuple[str, ...]) -> None:
    (folder / "place").mkdir()
    assert_harmless(run("analyze", evil_trace(folder / "place", f"evil{EVIL}.json"), *options))


@pytest.mark.parametrize("command", ["analyze", "compare", "open", "export"])
def test_places_that_are_not_there_or_hold_something_else(folder: Path, command: str) -> None:
    (folder / EVIL).mkdir()
    for name in ("one.json", "two.json"):
        evil_trace(folder / EVIL, f"{EVIL}{name}")
    more = ("--kernels", "-") if command == "export" else ()
    assert_harmless(run(command, f"missing{EVIL}", *more))
    held = run(command, EVIL, *more)
    assert_harmless(held)
    assert held.exit_code != 0


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize(
    ("command", "more"),
    [
        *(("analyze", options) for options in ((), ("-v",), ("--html",))),
        *(("compare", options) for options in ((), ("-v",), ("-q",), ("--gate", "wall<=-90%"))),
        ("open", ("--timeout", "0.01", "--no-browser")),
        *(("export", options) for options in (("--kernels", "k.csv"), ("--benchmark", "b.json", "--groups", "g.csv"))),
    ],
)
def test_a_run_of_a_stranger(folder: Path, command: str, more: tuple[str, ...], failed: bool) -> None:
    place = evil_run(folder, failed=failed)
    # export names nothing of what it reads, analyze only the file.
    assert_harmless(run(command, place, *more), shows=command not in ("export", "analyze"))


def test_a_run_beside_another_one_and_beside_itself(folder: Path) -> None:
    place, trace = evil_run(folder), evil_trace(folder)
    plain, other = (make_run_folder(folder, name) for name in ("plain", "other"))
    for words in (
        (place, plain, "-v"),
        (place, plain, other, "-v"),
        (place, plain, "--gate", f"wall<={EVIL}"),
        (place, plain, "--gate", "wall<=+3%"),
        (trace, place),
        (trace, evil_trace(folder, f"{EVIL}.json")),
        (place, place, place),
        (place, plain, other),
    ):
        assert_harmless(run("compare", *words))


@pytest.mark.parametrize(
    "words",
    [
        *((EVIL,), (f"--{EVIL}",), ("analyze",), ("analyze", "a", EVIL), ("analyze", f"--{EVIL}")),
        *(("compare", "a", "b", "--form-a", EVIL), ("open", f"x{EVIL}", "y", "--out", EVIL)),
        *(("profile", "mlp", "--batch-size", EVIL), ("profile", "mlp", "--mode", EVIL), ("profile", EVIL)),
        *((command, EVIL) for command in ("workloads", "schema", "completion", "doctor")),
        ("schema", "--out", f"schemas{EVIL}"),
    ],
)
def test_what_was_typed(words: tuple[str, ...]) -> None:
    assert_harmless(run(*words), shows=words != ("analyze",))


@pytest.mark.parametrize("is_terminal", [False, True])
def test_lines_of_progress_and_of_a_command(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: is_terminal)
    console = PrintableConsole(file=out)
    with shown(console) as progress:
        progress.phase(f"phase {EVIL}")
        progress.detail(f"detail {EVIL}")
        progress.tick()  # type: ignore[attr-defined]
    say(console, f"line {EVIL}")
    # What the live bars are drawn with.
    said = re.sub(r"\x1b\[[\d;?]*[A-Za-z]|\r", "", out.getvalue())
    assert all(line.isprintable() for line in said.split("\n")), ascii(said)
    assert all(f"{word} a{SHOWN}" in said for word in ("phase", "detail", "line"))


def test_a_merged_trace_is_named_harmlessly(folder: Path) -> None:
    told = run("open", evil_run(folder), "--no-serve", "--out", f"merged{EVIL}.json.gz")
    assert_harmless(told)
    assert told.stdout.startswith(f"written: merged{SHOWN[:0]}a{SHOWN}]0;x{SHOWN}b")


def test_tracebacks_of_the_users_code_and_of_a_bug(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TheirCodeError(f"it raised {EVIL}", f"Traceback\n  File {EVIL}\n\traise ValueError({EVIL})")

    monkeypatch.setattr("tracekit.workloads.registry.find", fail)
    told = run("workloads", "mlp")
    assert_harmless(told)
    assert len(told.stderr.splitlines()) == 4
    script = "import tracekit.cli.main as m; m.main = lambda **_: 1 / len(chr(27) * 0) if 0 else int(chr(27)); m.run()"
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=surroundings)
    assert done.returncode == 1
    assert "ValueError" in done.stderr and "\x1b" not in done.stderr
