"""Shells are given a script, and what it asks is answered."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.cli.runs import ROOT, assert_refused, invoke, tracekit
from tests.sides import make_run, make_settings

from tracekit import __version__
from tracekit.cli import main as main_file
from tracekit.cli.main import COMMANDS, main
from tracekit.cli.output import command_line, measuring_command_line
from tracekit.cli.publishing import commands_of_page
from tracekit.cli.schema import NAMES
from tracekit.errors import TracekitError
from tracekit.model.option import GROUPS, TYPED
from tracekit.model.run import UserModel
from tracekit.shell import steering_variables

#: The program with this checkout's package, whatever folder it is run in.
PROGRAM = [
    sys.executable,
    "-c",
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tracekit.cli.main import run; run()",
]
HEAVY = ("torch", "polars", "plotly", "numpy", "jinja2", "diffusers", "transformers", "rich")


def test_help_lists_every_command_and_an_example() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert all(name in result.output and text in result.output for name, text in COMMANDS.items())
    assert "tracekit profile flux --compiled" in result.output


@pytest.mark.parametrize("command", COMMANDS)
def test_each_help_fits_a_screen_and_has_an_example(command: str) -> None:
    result = CliRunner().invoke(main, [command, "--help"], terminal_width=100)
    assert result.exit_code == 0
    assert f"Example: tracekit {command}" in result.output
    longer = {"profile": 66, "sweep": 66, "compare": 33, "ranks": 26, "analyze": 26}
    assert len(result.output.splitlines()) <= longer.get(command, 24)


@pytest.mark.parametrize("command", [name for name in ("profile", "sweep") if name in COMMANDS])
def test_every_setting_of_a_run_is_an_option_under_its_heading(command: str) -> None:
    listed: dict[str, list[str]] = {}
    for line in invoke(command, "--help").output.splitlines():
        if line.endswith(":") and line[:-1] in GROUPS:
            listed[line[:-1]] = []
        elif listed and (option := re.match(r"  (--[a-z-]+)", line)):
            [*listed.values()][-1].append(option[1])
    assert tuple(listed) == GROUPS
    assert [each.option for each in TYPED if each.option not in listed[each.group]] == []
    assert "--out" in listed["Output"] and "--target" in listed["Timing"]


def test_help_loads_nothing_heavy() -> None:
    script = f"""
import json, sys
from tracekit.cli.schema import NAMES
from tracekit.cli.main import COMMANDS, main
for arguments in (["--help"], *([name, "--help"] for name in COMMANDS)):
    try:
        main(arguments, prog_name="tracekit")
    except SystemExit as done:
        assert done.code == 0, arguments
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stderr.splitlines()[-1]) == []


def test_the_version_is_the_packages(tmp_path: Path) -> None:
    for told in (invoke("--version").output, tracekit("--version", folder=tmp_path).stdout):
        assert told == f"tracekit, version {__version__}\n"


def test_what_the_tests_start_in_any_folder_is_the_package_beside_them(tmp_path: Path) -> None:
    """The environment may hold another checkout's."""
    started = [sys.executable, "-P", "-c", "import tracekit; print(tracekit.__file__)"]
    found = subprocess.run(started, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()
    assert [Path(found), Path(main_file.__file__)] == [ROOT / "tracekit/__init__.py", ROOT / "tracekit/cli/main.py"]


def test_an_unknown_command_gets_the_nearest_one_or_the_way_to_the_list() -> None:
    result = invoke("comprae")
    assert result.exit_code == 2
    assert "comprae; did you mean compare?" in result.stderr
    assert "tracekit --help" in invoke("xyz").stderr


@pytest.mark.parametrize(
    ("typed", "says"),
    [("compare", "compare --help"), ("compare --fromat", "--form-a"), ("--fo", "--help"), ("x", "--help")],
)
def test_a_wrong_command_is_told_in_one_line_too_and_where_its_help_is(typed: str, says: str) -> None:
    result = invoke(*typed.split())
    (line,) = result.stderr.splitlines()
    assert (result.exit_code, line.startswith("error: "), says in line) == (2, True, True), line
    # Without any command the help is shown, as click does.
    assert "Usage: " in invoke().stderr


def test_what_the_user_can_mend_is_one_line_with_what_belongs_below_it_and_a_bug_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors = [TracekitError("it is\nnot there", ("  transformer  92 %", "  vae           8 %")), ZeroDivisionError()]

    def fail() -> None:
        raise errors.pop(0)

    monkeypatch.setattr(main_file.LazyGroup, "get_command", lambda *_: click.Command("workloads", callback=fail))
    result = invoke("workloads")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: it is not there\n  transformer  92 %\n  vae           8 %\n"
    assert isinstance(invoke("workloads").exception, ZeroDivisionError)


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m tracekit analyze '{ROOT}/tests/data/vit_eager.json.zst' --json - | head -c 10"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_reader_that_reads_nothing_gets_no_line_of_error(tmp_path: Path) -> None:
    source, sink = os.pipe()
    os.close(source)
    with os.fdopen(sink, "wb") as left:
        done = subprocess.run(
            [*PROGRAM, "analyze", TRACE], cwd=tmp_path, stdout=left, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (1, b"")


TRACE = str(ROOT / "tests/data/vit_eager.json.zst")
FULL = Path("/dev/full")
WRITING = [
    ["--help"],
    ["--version"],
    ["analyze", TRACE],
    ["analyze", TRACE, "--json", "-"],
    ["export", TRACE, "--kernels", "-"],
    ["schema", "analysis"],
    # Shorter than Python's buffer.
    ["workloads", "vit"],
    ["completion", "bash"],
]


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
@pytest.mark.parametrize("arguments", WRITING)
def test_output_that_takes_nothing_is_one_line_and_exit_code_1(arguments: list[str], tmp_path: Path) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, *arguments], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    # With --json what is for people goes to standard error.
    *summary, line = done.stderr.splitlines()
    assert bool(summary) is ("--json" in arguments)
    assert (done.returncode, line.startswith("error: "), "No space left on device" in line) == (1, True, True)


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
@pytest.mark.parametrize("arguments", [["--help"], ["analyze", "nowhere"], ["analyze", TRACE, "--json", "-"]])
def test_where_not_even_the_error_can_be_written_the_exit_code_is_1(arguments: list[str], tmp_path: Path) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run([*PROGRAM, *arguments], cwd=tmp_path, stdout=full, stderr=full, check=False)
    assert done.returncode == 1


def run_with_closed(streams: str, arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    closing = ["sh", "-c", f'exec "$@" {streams}', "sh", *PROGRAM, *arguments]
    return subprocess.run(closing, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("streams", [">&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("arguments", [["--help"], ["analyze", TRACE], ["export", TRACE, "--kernels", "k.csv"]])
def test_closed_output_is_no_error(streams: str, arguments: list[str], tmp_path: Path) -> None:
    done = run_with_closed(streams, arguments, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze", TRACE, "--json", "-"],
        ["export", TRACE, "--kernels", "-"],
        ["workloads", "--json", "-"],
        ["schema", "run"],
    ],
)
def test_a_document_for_a_closed_output_is_one_line_and_exit_code_1(arguments: list[str], tmp_path: Path) -> None:
    done = run_with_closed(">&-", arguments, tmp_path)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, line.startswith("error: ")) == (1, True)


@pytest.mark.parametrize(("arguments", "code"), [(["analyze", "nowhere"], 1), (["analyze", "--nonsense"], 2)])
def test_without_standard_error_what_is_wrong_goes_nowhere_and_the_exit_code_says_it(
    arguments: list[str], code: int, tmp_path: Path
) -> None:
    done = run_with_closed("2>&-", arguments, tmp_path)
    assert (done.returncode, done.stdout) == (code, "")


def test_a_trace_from_a_closed_input_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    done = run_with_closed("<&-", ["analyze", "-"], tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)


NAMED = [
    (["analyze", "A", "--json", "-"], 0),
    (["analyze", "A", "--json", "it.json", "--html"], 0),
    (["compare", "A", "B", "--json", "-"], 0),
    (["compare", "A", "B", "--json", "it-gated.json", "--gate", "kernels<=+1%"], None),
    (["export", "A", "--kernels", "-"], 0),
    (["export", "A", "B", "--groups", "-"], 0),
    (["export", "A", "--hta", "for-hta"], 0),
    (["open", "A", "B", "--no-serve"], 0),
    (["analyze", "NOWHERE"], 1),
    (["analyze", "A", "--html", "BROKEN"], 1),
    (["export", "BROKEN", "--hta", "of-nothing"], 1),
]


#: Commands one after another, each as the program in a process that has imported already; what each says goes to files.
EACH = """
import json, os, sys
from tracekit.cli import analyze, compare, export, open
from tracekit.cli.schema import NAMES
from tracekit.cli.main import run
for at, words in enumerate(json.loads(sys.argv[1])):
    child = os.fork()
    if not child:
        for stream, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(f"{at}.{name}", os.O_WRONLY | os.O_CREAT), stream)
        sys.argv = ["tracekit", *words]
        run()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_names_of_files_that_are_no_text_are_no_traceback(tmp_path: Path) -> None:
    names = {"A": b"a\xff.json.gz", "B": b"\xfeb.json.gz", "NOWHERE": b"\xff.json", "BROKEN": b"broken\xc3.json"}
    for name, source in (("A", "vit_reduce-overhead"), ("B", "vit_default")):
        content = (ROOT / "tests/data" / f"{source}.json.gz").read_bytes()
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + names[name]))).write_bytes(content)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + names["BROKEN"])).write_bytes(b"{")
    for encoding, cases in (("ascii:strict", NAMED), ("utf-8:strict", NAMED[:1])):
        commands = [[os.fsdecode(names.get(each, each.encode())) for each in words] for words, _ in cases]
        done = subprocess.run(
            [sys.executable, "-c", EACH, json.dumps(commands)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=True,
        )
        for at, ((words, code), ended) in enumerate(zip(cases, map(int, done.stdout.split()), strict=True)):
            told, error = ((tmp_path / f"{at}.{stream}").read_bytes() for stream in ("stdout", "stderr"))
            assert b"Traceback" not in error, words
            assert ended == code if code is not None else ended in (0, 3, 4), (words, error)
            if code == 1:
                assert error.startswith(b"error: ")
                assert len(error.splitlines()) == 1
            written = [each.read_bytes() for each in tmp_path.glob("it*.json")]
            for text in [told] if words[-2:] == ["--json", "-"] else written:
                assert "\N{REPLACEMENT CHARACTER}" in json.dumps(json.loads(text), ensure_ascii=False), words


def complete(words: str) -> list[str]:
    """What bash would be told for the last of these words."""
    asked = {"_TRACEKIT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    ran = subprocess.run(PROGRAM, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return [line.partition(",")[2] for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_tracekit_itself(shell: str) -> None:
    script = invoke("completion", shell).output
    assert f"_TRACEKIT_COMPLETE={shell}_complete" in script
    if shell == "bash" and (bash := shutil.which("bash")):
        subprocess.run([bash, "-n"], input=script, text=True, check=True)


def test_commands_options_and_workloads_are_completed() -> None:
    assert complete("tracekit an") == ["analyze"]
    assert complete("tracekit profile cau") == ["causal-lm"]
    assert "--repeat-process" in complete("tracekit profile flux --rep")


def test_the_command_of_a_measurement_holds_what_steered_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in steering_variables(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("TORCHINDUCTOR_GRAPH_PARTITION", "0")
    monkeypatch.setattr("sys.argv", ["tracekit", "profile", "beit", "--prompt", "a cat"])
    assert command_line() == "tracekit profile beit --prompt 'a cat'"
    assert measuring_command_line() == f"TORCHINDUCTOR_GRAPH_PARTITION=0 {command_line()}"


def test_a_page_of_a_run_says_what_measured_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["tracekit", "compare", "traces/flux-compiled"])
    both = commands_of_page(make_run()).splitlines()
    assert [line for line in both if not line.startswith("#")] == [make_run().command, command_line()]
    assert len(both) == 4, "each below what it does"
    own = make_settings(own=UserModel(in_program=True))
    in_program = commands_of_page(make_run(command="tracekit.profile(f) in x.py", settings=own))
    assert in_program.splitlines()[0] == "# measured by 'tracekit.profile(f) in x.py'", "a word that no shell runs"
    assert [line for line in in_program.splitlines() if not line.startswith("#")] == [command_line()]
    assert commands_of_page(None) == command_line()
    assert commands_of_page(make_run(command=command_line())) == command_line()


def test_a_schema_is_printed_or_all_are_written_into_a_folder(tmp_path: Path) -> None:
    assert json.loads(invoke("schema", "comparison").output)["$id"] == "tracekit.comparison/1"
    result = invoke("schema", "--out", tmp_path / "schemas")
    assert result.exit_code == 0, result.output
    written = sorted(path.stem for path in (tmp_path / "schemas").iterdir())
    assert written == sorted(NAMES) and {"analysis", "comparison", "comparisons", "run"} <= {*written}
    assert_refused(invoke("schema"), ", ".join(NAMES))
