"""What `tracekit profile` shows of a finished run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit import store
from tracekit.cli.output import check_apart, console_beside, say, write_json
from tracekit.walks.reports import Destination, reports_of

if TYPE_CHECKING:
    from rich.console import Console

    from tracekit.model.run import Run


#: Where runs lie that were given no other place.
DEFAULT = Path("traces")


def report_run(folder: Path, json_path: str | None, *, force: bool) -> None:
    """Analyses the run: compares its two forms if it has both, else describes the one. Writes reports and JSON; `force`
    is whether the report replaces whatever has its name."""
    run = store.load(folder)
    console = console_beside(json_path)
    say(console, f"{run.settings.workload} at size {run.settings.size}: {run.size_reason}")
    if len(run.forms) == 2:
        told = _report_comparison(folder, run, console, force=force)
    else:
        told = _report_form(folder, run, console)
    write_json(told, json_path)


def check_json_apart(folder: Path, json_path: str | None) -> None:
    """Raises TracekitError where `--json` names a file of the report of the run that is to lie in `folder`."""
    page = reports_of(folder) / folder.name
    check_apart({"--json": json_path, "the page": f"{page}.html", "its twin": f"{page}.md"})


def _report_comparison(folder: Path, run: Run, console: Console, *, force: bool) -> str:
    from tracekit.comparison.commands import measuring_command
    from tracekit.report.composition.summaries import comparison_summary
    from tracekit.report.contract import comparison_json
    from tracekit.report.terminal import shown
    from tracekit.report.words.noted import noted_sentence
    from tracekit.walks.identity import identity_of_report_on
    from tracekit.walks.sides import compare_forms, write_report
    from tracekit.walks.verifying import ADVICE_FAILED, NO_ADVICE

    comparison = compare_forms(folder, run)
    there = Destination(reports_of(folder), folder.name, identity_of_report_on(run), force)
    written = write_report(comparison, run, measuring_command(run), there)
    commands = (
        shlex.join(("tracekit", "open", str(folder))),
        shlex.join(("tracekit", "analyze", str(folder), "--form", "compiled")),
    )
    console.print(shown(comparison_summary(comparison, commands)))
    for noted in run.noted:
        if noted.code in (NO_ADVICE, ADVICE_FAILED):
            say(console, noted_sentence(noted))
    for path in (folder, *written):
        say(console, f"written: {path}")
    return comparison_json(comparison)


def _report_form(folder: Path, run: Run, console: Console) -> str:
    from tracekit.comparison.comparing import look_at
    from tracekit.report.composition.summaries import analysis_summary
    from tracekit.report.contract import analysis_json
    from tracekit.report.terminal import shown
    from tracekit.walks.reading import Reading
    from tracekit.walks.sides import load_side

    form = run.forms[0]
    side = load_side(folder, form=form.name, reading=Reading(shapes=True))
    console.print(shown(analysis_summary(side)))
    say(console, f"written: {folder}")
    say(console, f"next: {_next_command(folder, run)}")
    return analysis_json(look_at(side))


def _next_command(folder: Path, run: Run) -> str:
    """What compares the same work in both forms, in a folder of its own where this run has the name it would take."""
    from tracekit.comparison.commands import profile_command

    elsewhere = ("--out", str(folder.with_name(f"{folder.name}-compared"))) if folder != DEFAULT / folder.name else ()
    if not elsewhere and run.forms[0].name == "compiled":
        elsewhere = ("--out", str(DEFAULT / f"{folder.name}-compared"))
    return profile_command(run.settings, more=elsewhere)
