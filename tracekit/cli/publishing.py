"""What commands write of a run or a trace, page and twin, and what they show of these."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.cli.output import check_apart, command_line, command_of_report
from tracekit.comparison.commands import measuring_command
from tracekit.errors import TracekitError
from tracekit.reading.reports import Destination, place_of_report, report_of_run, write_report
from tracekit.report.terminal import shown
from tracekit.report.thirty_lines import shown_overview
from tracekit.report.words.not_compiled import because
from tracekit.shell import joined
from tracekit.store import Ways

if TYPE_CHECKING:
    from rich.console import Console

    from tracekit.model.run import Run
    from tracekit.model.single_run import SingleRun
    from tracekit.reading.traces import Reading
    from tracekit.report.document import Overview, Report
    from tracekit.report.thirty_lines import Detail


def destination(
    name: str,
    identity: str | None,
    out: Path | None,
    json_path: str | None,
    *inputs: str | None,
    force: bool,
) -> Destination:
    """Where a report of this name goes, as `page_asked` says; `identity` is None for one that is yet to begin. Raises
    TracekitError, before anything is read, where the JSON would replace the page or its twin, or they an input or
    anything but a report of the same."""
    ways = Ways("--force", "another path to --html")
    there = Destination(*place_of_report(out, name.replace(" ", "-")), identity, force, ways=ways)
    check_apart({"--json": json_path, "the page": there.page, "its twin": there.twin})
    there.check(*inputs)
    return there


def publish(
    report: Report, there: Destination, console: Console, detail: Detail, *more: str, overview: Overview | None = None
) -> None:
    """Writes the page and its twin, and shows the report, where these are, and `more`. `overview` stands in for the
    page's."""
    write_report(report, there)
    show(overview or report.overview, report, there.page, console, detail, *more)


def show(
    overview: Overview, report: Report | None, page: Path | None, console: Console, detail: Detail, *more: str
) -> None:
    """Shows a report of which the page may not have been written; None where only its overview is to be shown."""
    # Paths and commands may be longer than a line.
    console.print(shown(shown_overview(overview, report, page, more, detail, console.width)), crop=False)


def report_nothing_compiled(
    folder: Path, run: Run, reading: Reading, there: Destination, command: str, console: Console, detail: Detail
) -> SingleRun:
    """Publishes the page of a run of which torch.compile compiled nothing: eager's, with the reason on top. `command`
    makes it anew. Raises TracekitError, with the reason, where eager's recording cannot be read."""
    # Ranks are shown in less time than this takes to load.
    from tracekit.reading.single_run import look_at_run

    try:
        single = look_at_run(folder, run, reading)
    except TracekitError as error:
        raise TracekitError(f"torch.compile compiled nothing: {because(run.not_compiled or ())}; {error}") from error
    timeline = f"Timeline: {joined(('tracekit', 'open', str(folder)))}"
    publish(report_of_run(folder, run, single, command), there, console, detail, timeline)
    return single


def commands_of_page(run: Run | None) -> str:
    """The command, below the one that measured the run that its page shows, where there is one."""
    here = command_of_report()
    if run is None or run.command in (here, command_line()):
        return here
    measured = measuring_command(run)
    heading = "" if measured.startswith("#") else "# measure\n"
    return f"{heading}{measured}\n# write this page\n{here}"
