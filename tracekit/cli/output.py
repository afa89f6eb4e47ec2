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

    from tracekit.model.run import Run
    from tracekit.model.single_run import SingleRun
    from tracekit.report.document import Report, Summary
    from tracekit.report.thirty_lines import Detail
    from tracekit.walks.reading import Reading
    from tracekit.walks.reports import Destination


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
    _refuse_option(option, path_text, ", or -")
    if is_stream(path):
        return
    if why := why_unwritable(path):
        raise TracekitError(f"{option} {path_text}: {why}; pass another path")
    resolved = path.resolve()
    for each in (Path(given).resolve() for given in inputs if given):
        if resolved.exists() and (resolved == each or each in resolved.parents):
            raise TracekitError(f"{option} {path_text} would overwrite an input; pass another path")


def _refuse_option(option: str, path_text: str, otherwise: str = "") -> None:
    """A value that was left out takes the next word for it."""
    if path_text.startswith("-"):
        raise TracekitError(
            f"{option} {path_text} looks like an option: pass {option} a file name (./{path_text}){otherwise}"
        )


def is_stream(path: Path) -> bool:
    """Whether the place is a device or a pipe, which takes what is written and holds nothing."""
    return path.exists() and not path.is_file() and not path.is_dir()


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


def destination(
    name: str,
    identity: str | None,
    out: Path | None,
    json_path: str | None,
    *inputs: str | None,
    force: bool,
    option: str = "--out",
) -> Destination:
    """Where a report of this name goes, as `option` says; `identity` is None for one that is yet to begin. Raises
    TracekitError, before anything is read, where the JSON would replace the page or its twin, or they an input or
    anything but a report of the same."""
    from tracekit.store import Ways
    from tracekit.walks.reports import Destination, place_of_report

    _refuse_option(option, str(out or ""))
    ways = Ways("--force", f"another path to {option}")
    there = Destination(*place_of_report(out, name), identity, force, ways=ways)
    check_apart({"--json": json_path, "the page": there.page, "its twin": there.twin})
    there.check(*inputs)
    return there


def write_json(text: str, json_path: str | None) -> None:
    """Writes what `--json` asked for: `-` is standard output, None is nothing."""
    if json_path == "-":
        hand_over(text)
    elif json_path is not None:
        write_named(Path(json_path), text.encode())


def publish(report: Report, there: Destination, summary: Summary, console: Console) -> None:
    """Writes the page and its twin, and shows the summary, which says where they are."""
    from tracekit.report.terminal import shown
    from tracekit.walks.reports import write_report

    write_report(report, there)
    # Paths and commands may be longer than a line.
    console.print(shown(summary), crop=False)


def report_nothing_compiled(
    folder: Path, run: Run, reading: Reading, there: Destination, command: str, console: Console, detail: Detail
) -> SingleRun:
    """Publishes the page of a run of which torch.compile compiled nothing: eager's, with the reason on top. `command`
    makes it anew. Raises TracekitError, with the reason, where eager's recording cannot be read."""
    from tracekit.report.composition.detail import analysis_text
    from tracekit.report.composition.reports import side_report
    from tracekit.report.words.not_compiled import because
    from tracekit.walks.single_run import look_at_run

    try:
        single = look_at_run(folder, run, reading)
    except TracekitError as error:
        raise TracekitError(f"torch.compile compiled nothing: {because(run.not_compiled or ())}; {error}") from error
    timeline = f"Timeline: {joined(('tracekit', 'open', str(folder)))}"
    summary = analysis_text(single, there.page, (timeline,), detail, width=console.width)
    publish(side_report(single, run, command), there, summary, console)
    return single


def say(console: Console, line: str) -> None:
    """One line, as it is: paths are neither coloured nor broken."""
    console.print(printable(line), soft_wrap=True)


def command_line() -> str:
    """The command as it can be typed again."""
    return joined(["tracekit", *sys.argv[1:]])


def commands_of_page(run: Run | None) -> str:
    """The command, below the one that measured the run that its page shows, where there is one."""
    here = command_line()
    if run is None or run.command == here:
        return here
    from tracekit.comparison.commands import measuring_command

    measured = measuring_command(run)
    heading = "" if measured.startswith("#") else "# measure\n"
    return f"{heading}{measured}\n# write this page\n{here}"


def measuring_command_line() -> str:
    """The command as it can be typed again where what it measures depends on the environment too."""
    return with_variables(command_line(), steering_variables(os.environ))
