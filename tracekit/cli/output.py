"""Where a command's text goes: the terminal, standard output for programs, files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.errors import TracekitError
from tracekit.files import why_unwritable, write_named
from tracekit.names import printable
from tracekit.printing import check_standard_output, hand_over
from tracekit.shell import joined, steering_variables, with_variables

if TYPE_CHECKING:
    from rich.console import Console

#: What a report's page and its twin end with.
PAGES = (".html", ".md")
#: Flags that change what the terminal shows, and no report.
TERMINAL_ALONE = ("-v", "--verbose", "-q", "--quiet")


def console_beside(json_path: str | None) -> Console:
    """The console for people's text: standard error when `--json -` has standard output to itself."""
    from tracekit.console import PrintableConsole

    return PrintableConsole(stderr=json_path == "-")


def check_output_path(option: str, path_text: str | None, *inputs: str | None) -> None:
    """Raises TracekitError, before any work is done, for a place no file can be written to, and for one of the inputs
    or a file in them: what is read is never overwritten. A device or a pipe, `>(...)` of a shell too, is written
    into."""
    if path_text is None:
        return
    if path_text == "-":
        check_standard_output()
        return
    path = Path(path_text)
    if not path_text or path.is_dir():
        raise TracekitError(f"{option} {path_text!r} is a folder: pass a file name, or - for standard output")
    refuse_option(option, path_text, ", or -")
    if is_stream(path):
        return
    if why := why_unwritable(path):
        raise TracekitError(f"{option} {path_text}: {why}; pass another path")
    resolved = path.resolve()
    for each in (Path(given).resolve() for given in inputs if given):
        if resolved.exists() and (resolved == each or each in resolved.parents):
            raise TracekitError(f"{option} {path_text} would overwrite an input; pass another path")


def refuse_option(option: str, path_text: str, otherwise: str = "") -> None:
    """A value that was left out takes the next word for it."""
    if path_text.startswith("-"):
        raise TracekitError(
            f"{option} {path_text} looks like an option: pass {option} a file name (./{path_text}){otherwise}"
        )


def is_stream(path: Path) -> bool:
    """Whether the place is a device or a pipe, which takes what is written and holds nothing."""
    return path.exists() and not path.is_file() and not path.is_dir()


def page_asked(html_path: str | None, out: Path | None, *inputs: str | None) -> Path | None:
    """Where `--html`, or `--out` which it was called before, wants the page; None where that is left open. Raises
    TracekitError for a file that is no page: most likely an input was meant."""
    if html_path is not None and out is not None:
        raise TracekitError("--html and --out both say where the page goes: leave --out out")
    refuse_option("--html", html_path or "")
    refuse_option("--out", str(out or ""))
    if not html_path:
        return out
    path = Path(html_path)
    if path.suffix in PAGES:
        for each in (path.with_suffix(suffix) for suffix in PAGES):
            check_output_path("--html", str(each), *inputs)
    elif path.is_file():
        raise TracekitError(f"--html {html_path} is an existing file: pass PATH.html or a folder, or put --html last")
    return path


def check_apart(outputs: Mapping[str, Path | str | None]) -> None:
    """Raises TracekitError, before any of them is written, where two of the outputs are one file."""
    seen: dict[Path, str] = {}
    for what, place in outputs.items():
        if place is None or str(place) == "-" or is_stream(Path(place)):
            continue
        # A page takes the place of a link of its name; what an option names goes to where a link leads.
        path = Path(place).resolve() if what.startswith("--") else Path(place).parent.resolve() / Path(place).name
        other = seen.setdefault(path, what)
        if other != what:
            raise TracekitError(f"{other} and {what} would both be written to {place}: pass two different paths")


def write_json(text: str, json_path: str | None) -> None:
    """Writes what `--json` asked for: `-` is standard output, None is nothing."""
    if json_path == "-":
        hand_over(text)
    elif json_path is not None:
        write_named(Path(json_path), text.encode())


def say(console: Console, line: str) -> None:
    """One line, as it is: paths are neither coloured nor broken."""
    console.print(printable(line), soft_wrap=True)


def command_line() -> str:
    """The command as it can be typed again."""
    return joined(["tracekit", *sys.argv[1:]])


def command_of_report() -> str:
    """The same without what changes no report: how much the terminal shows, and JSON beside it."""
    words, kept = iter(sys.argv[1:]), ["tracekit"]
    for word in words:
        if word == "--json":
            next(words, None)
        elif word not in TERMINAL_ALONE and not word.startswith("--json="):
            kept.append(word)
    return joined(kept)


def measuring_command_line() -> str:
    """The command as it can be typed again where what it measures depends on the environment too."""
    return with_variables(command_line(), steering_variables(os.environ))
