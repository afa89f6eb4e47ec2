"""What is shown and written of a run of which torch.compile compiled nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.cli.publishing import publish
from tracekit.errors import TracekitError
from tracekit.reading.reports import report_of_run
from tracekit.reading.single_run import look_at_run
from tracekit.report.words.not_compiled import because
from tracekit.shell import joined

if TYPE_CHECKING:
    from rich.console import Console

    from tracekit.model.run import Run
    from tracekit.model.single_run import SingleRun
    from tracekit.reading.reports import Destination
    from tracekit.reading.traces import Reading
    from tracekit.report.thirty_lines import Detail


def report_nothing_compiled(
    folder: Path, run: Run, reading: Reading, there: Destination, command: str, console: Console, detail: Detail
) -> SingleRun:
    """Publishes the page of a run of which torch.compile compiled nothing: eager's, with the reason on top. `command`
    makes it anew. Raises TracekitError, with the reason, where eager's recording cannot be read."""
    try:
        single = look_at_run(folder, run, reading)
    except TracekitError as error:
        raise TracekitError(f"torch.compile compiled nothing: {because(run.not_compiled or ())}; {error}") from error
    timeline = f"Timeline: {joined(('tracekit', 'open', str(folder)))}"
    publish(report_of_run(folder, run, single, command), there, console, detail, timeline)
    return single
