"""What `tracekit profile` reports of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracekit import store
from tracekit.cli.output import console_beside, say, write_json
from tracekit.cli.publishing import publish, report_nothing_compiled, show
from tracekit.comparison.commands import measuring_command, profile_command
from tracekit.comparison.looking import look_at
from tracekit.errors import TracekitError
from tracekit.reading.reports import Destination, identity_of_report_on, report_of_run, reports_of
from tracekit.reading.sides import compare_forms, load_side
from tracekit.reading.traces import Reading
from tracekit.report.composition.one_side import side_overview
from tracekit.report.contract import analysis_json, comparison_json
from tracekit.shell import joined
from tracekit.statements.noted import AdviceFailed, NoAdvice

if TYPE_CHECKING:
    from tracekit.report.thirty_lines import Detail

#: Where runs lie that were given no other place.
TRACES = Path("traces")


def report_run(
    folder: Path, json_path: str | None, detail: Detail = "brief", *, force: bool, strict: bool = False
) -> None:
    """Analyses the run: compares its two forms if it has both, else describes the one. Writes reports and JSON; `force`
    is whether the report replaces whatever has its name. Raises TracekitError in the end where `strict` and nothing was
    compiled."""
    run = store.load(folder)
    console = console_beside(json_path)
    there = Destination(reports_of(folder), folder.name, identity_of_report_on(run), force)
    if len(run.forms) == 2:
        comparison = compare_forms(folder, run)
        timeline = f"Timeline: {joined(('tracekit', 'open', str(folder)))}"
        publish(report_of_run(folder, run, comparison), there, console, detail, timeline)
        for noted in run.noted:
            if isinstance(noted, NoAdvice | AdviceFailed):
                say(console, noted.long())
        written = comparison_json(comparison)
    elif run.not_compiled is None:
        (form,) = run.forms
        single = look_at(load_side(folder, form=form.name, reading=Reading(shapes=True)))
        # Both forms of the same work, in a folder of its own where this run has the name it would take.
        taken = folder != TRACES / folder.name or form.name != "eager"
        out = ("--out", str(folder.with_name(f"{folder.name}-compared"))) if taken else ()
        commands = (f"Run {folder}", f"Compare: {profile_command(run.settings, more=out)}")
        report = report_of_run(folder, run, single) if detail == "all" else None
        show(side_overview(single), report, None, console, detail, *commands)
        written = analysis_json(single)
    else:
        command, reading = measuring_command(run), Reading(shapes=True)
        written = analysis_json(report_nothing_compiled(folder, run, reading, there, command, console, detail))
    write_json(written, json_path)
    if strict and run.not_compiled is not None:
        raise TracekitError(f"torch.compile compiled nothing of {run.settings.workload} (--strict)")
