"""What `tracekit ranks` reads, shows and writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracekit.cli.output import check_output_path, console_beside, page_asked, write_json
from tracekit.cli.publishing import destination, show
from tracekit.errors import TracekitError
from tracekit.interpreter import collector_paused
from tracekit.ranks.reading.loading import RanksReading
from tracekit.ranks.reading.recordings import find_recordings, with_operators
from tracekit.ranks.reading.telling import tell_recordings
from tracekit.ranks.report.overview import ranks_overview
from tracekit.ranks.statements.notes import WithOperators
from tracekit.reading.reports import identity_of_report, write_report
from tracekit.reading.traces import parse_steps

if TYPE_CHECKING:
    from tracekit.model.run import FormName
    from tracekit.report.thirty_lines import Detail


@collector_paused()
def show_ranks(
    places: tuple[str, ...],
    form: FormName | None,
    window: str,
    steps: str | None,
    html_path: str | None,
    force: bool,
    json_path: str | None,
    collectives: str,
    no_cache: bool,
    engine: str,
    detail: Detail,
) -> None:
    """Of the recordings of all ranks."""
    if collectives == "all" and json_path is None:
        raise TracekitError("--collectives all applies only to the JSON: pass --json PATH; -v prints the worst")
    check_output_path("--json", json_path, *places)
    console = console_beside(json_path)
    found = find_recordings(places, form)
    there = None
    if html_path is not None:
        name = f"{Path(places[0]).resolve().name.partition('.')[0]}-ranks"
        identity, asked = identity_of_report("ranks", found), page_asked(html_path, None, *places)
        there = destination(name, identity, asked, json_path, force=force)
    reading = RanksReading(window, parse_steps(steps), cached=not no_cache)
    told, each_alone = tell_recordings(found, reading, engine, drawn=there is not None, each_alone=collectives == "all")

    if with_operators(places, form):
        told = replace(told, notes=(*told.notes, WithOperators()))
    report = None
    if there is not None or detail == "all":
        from tracekit.ranks.report.ranks_page import ranks_report

        report = ranks_report(told)
        if there is not None:
            write_report(report, there)
    show(ranks_overview(told), report, there.page if there else None, console, detail)
    if json_path is not None:
        # What it needs takes as long to load as eight small traces to read.
        from tracekit.ranks.report.as_json import ranks_json

        write_json(ranks_json(told, each_alone), json_path)
