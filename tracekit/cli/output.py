"""Where a command's text goes: the terminal, standard output for programs, files."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracekit.errors import TracekitError
from tracekit.shell import with_variables

if TYPE_CHECKING:
    from rich.console import Console

    from tracekit.model.run import Run


def console_beside(json_path: str | None) -> Console:
    """The console for people's text: standard error when `--json -` has standard output to itself."""
    from rich.console import Console

    return Console(stderr=json_path == "-")


def check_output_path(option: str, path_text: str | None, *inputs: str | None) -> None:
    """Raises TracekitError, before any work is done, for a place no file can be written to, and for one of the inputs
    or a file in them: what is read is never overwritten."""
    if path_text is None or path_text == "-":
        return
    path = Path(path_text)
    if not path_text or path.is_dir():
        raise TracekitError(f"{option} {path_text!r} is a folder: name a file, or - for standard output")
    nearest = next(folder for folder in path.absolute().parents if folder.exists())
    if not (nearest.is_dir() and os.access(nearest, os.W_OK)):
        raise TracekitError(f"{option} {path_text}: nothing can be written in {nearest}; name another place")
    resolved = path.resolve()
    for each in (Path(given).resolve() for given in inputs if given):
        if resolved.exists() and (resolved == each or each in resolved.parents):
            raise TracekitError(f"{option} {path_text} would overwrite what is read; name another place")


def check_apart(outputs: Mapping[str, Path | str | None]) -> None:
    """Raises TracekitError, before any of them is written, where two of the outputs are one file."""
    seen: dict[Path, str] = {}
    for what, place in outputs.items():
        if place is None or str(place) == "-":
            continue
        other = seen.setdefault(Path(place).resolve(), what)
        if other != what:
            raise TracekitError(f"{other} and {what} would both be written to {place}: name two files")


def write_json(text: str, json_path: str | None) -> None:
    """Writes what `--json` asked for: `-` is standard output, None is nothing."""
    if json_path == "-":
        # As bytes: JSON is UTF-8 whatever the terminal's encoding is.
        click.echo(text.encode(), nl=False)
    elif json_path is not None:
        from tracekit.walks.files import write_file

        write_file(Path(json_path), text)


def say(console: Console, line: str) -> None:
    """One line, as it is: paths are neither coloured nor broken."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def command_line() -> str:
    """The command as it can be typed again."""
    return shlex.join(["tracekit", *sys.argv[1:]])


def commands_of_page(run: Run | None) -> str:
    """The command, below the one that measured the run that its page shows, where there is one."""
    here = command_line()
    if run is None or run.command == here:
        return here
    in_program = run.settings.own is not None and run.settings.own.in_program
    measured = f"# measured by {run.command}" if in_program else f"# measures it\n{run.command}"
    return f"{measured}\n# makes this page\n{here}"


def measuring_command_line() -> str:
    """The command as it can be typed again where what it measures depends on the environment too."""
    from tracekit.workloads.variables import steering_variables

    return with_variables(command_line(), steering_variables(os.environ))
