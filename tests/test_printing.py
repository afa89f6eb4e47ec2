import ast
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Group
from rich.table import Table
from rich.text import Text

import tracekit
from tracekit.console import PrintableConsole
from tracekit.printing import echo, echo_lines, hand_over

PACKAGE = Path(tracekit.__file__).parent
#: Sets a window's title, clears the screen, turns the writing direction; and what begins a sequence in one character.
STEERING = ("\x1b]0;x\x07", "\x1b[2J", "\u202e", "\x9b2J", "\r", "\x08")

#: The two files that print, and what prints elsewhere: into the log of a process that is never a terminal.
PRINTERS = {"printing.py", "console.py"}
INTO_A_LOG = {("measure/timing_process.py", "print"), ("sweep/running/fork_server.py", "sys.stderr.write")}
FORBIDDEN = {
    *("print", "click.echo", "click.secho", "click.echo_via_pager", "click.confirm", "click.prompt"),
    *("Console", "rich.print", "rich.console.Console", "warnings.showwarning"),
    *("sys.stdout.write", "sys.stderr.write", "sys.stdout.writelines", "sys.stderr.writelines"),
}


def calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_all_that_is_printed_goes_through_one_place() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), name)
        for path in PACKAGE.rglob("*.py")
        if str(path.relative_to(PACKAGE)) not in PRINTERS
        for name in calls(path)
        if name in FORBIDDEN
    }
    assert found == INTO_A_LOG
    assert "click.echo" in set(calls(PACKAGE / "printing.py"))


@pytest.mark.parametrize("steering", STEERING)
def test_a_line_stays_one_line_and_steers_nothing(steering: str, capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"written: a{steering}\nb")
    echo(f"error: a{steering}", err=True)
    told = capsys.readouterr()
    assert told.out.endswith("\n") and told.out[:-1].isprintable() and told.err[:-1].isprintable()
    assert "written: a\N{REPLACEMENT CHARACTER}" in told.out


def test_a_traceback_keeps_its_lines_and_its_indents(capsys: pytest.CaptureFixture[str]) -> None:
    echo_lines("Traceback:\n  File x\n\traise \x1b[2J", err=True)
    assert capsys.readouterr().err == "Traceback:\n  File x\n        raise \N{REPLACEMENT CHARACTER}[2J\n"


def test_a_program_gets_a_document_as_it_is_and_a_terminal_does_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_over("a\x1b[2J\nb\n")
    assert capsys.readouterr().out == "a\x1b[2J\nb\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    hand_over("a\x1b[2J\nb\n")
    assert capsys.readouterr().out == "a\N{REPLACEMENT CHARACTER}[2J\nb\n"


@pytest.mark.parametrize("steering", STEERING)
def test_a_terminal_gets_richs_colours_and_no_others(steering: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    table = Table(f"head{steering}")
    table.add_row(Text(f"cell{steering}", "red"))

    text = f"[link=file:///x]name[/]{steering}"
    out = io.StringIO()
    PrintableConsole(file=out).print(Group(text, table, Text(text, style="bold green")))
    told = out.getvalue()
    assert "\x1b[1;32m" in told and told.count("[link=file:///x]name[/]") == 2
    assert all(line.isprintable() for line in re.sub(r"\x1b\[[\d;]*m", "", told).split("\n"))


def test_a_line_of_a_live_display_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from tracekit.measure import progress

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    out = io.StringIO()
    with progress.shown(PrintableConsole(file=out)) as told:
        told.phase("drawing [/]\x1b]0;x\x07")
        told.detail("[red]\x9b2J")
    assert "drawing [/]\N{REPLACEMENT CHARACTER}]0;x" in out.getvalue()
    assert "[red]\N{REPLACEMENT CHARACTER}2J" in out.getvalue()


def test_signs_that_an_encoding_lacks_keep_their_meaning_and_their_width():
    assert "−0.067 → 1.14× …\udcff".encode("ascii", "tracekit-alike") == b"-0.067 > 1.14x .?"
    assert "−0.067 µs".encode("latin-1", "tracekit-alike").decode("latin-1") == "-0.067 µs"
