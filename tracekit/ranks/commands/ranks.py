"""`tracekit ranks`: who waited for whom in the recordings of many ranks, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tracekit.cli.options import FORMS, WIDE_HELP, with_detail, with_json, with_steps, with_window
from tracekit.cli.output import check_output_path, console_beside, destination, write_json
from tracekit.errors import TracekitError
from tracekit.ranks.commands.engine import with_engine

if TYPE_CHECKING:
    from tracekit.model.run import FormName
    from tracekit.report.thirty_lines import Detail


@click.command(epilog="Example: tracekit ranks traces/job --json -", context_settings=WIDE_HELP)
@click.argument("places", metavar="FOLDER|FILE...", nargs=-1, required=True)
@click.option("--form", type=FORMS, help="Variant of a run folder of several ranks (default: compiled, if recorded).")
@with_window
@with_steps
@click.option(
    "--html",
    "html_path",
    is_flag=False,
    flag_value="",
    metavar="[PATH]",
    help="Write a page and its markdown twin: PATH.html, or a folder for them; reports if not given. Stands last.",
)
@click.option("--force", is_flag=True, help="Replace whatever has the page's name.")
@with_json
@click.option(
    "--collectives",
    type=click.Choice(("kinds", "all")),
    default="kinds",
    help="In the JSON: a row for each kind of collective (the default), or for each single one.",
)
@click.option("--no-cache", is_flag=True, help="Read the files anew, and keep nothing of them.")
@with_engine
@with_detail
def ranks(
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
    """Say who waited for whom in a job of many ranks, and why.

    FOLDER holds one trace of torch.profiler for each rank, or is a run of `tracekit profile --nproc`; or name the
    files, their URLs, or digests of `tracekit digest`.
    """
    from pathlib import Path

    from msgspec.structs import replace

    from tracekit.model.note import Note
    from tracekit.ranks.reading.loading import RanksReading
    from tracekit.ranks.reading.recordings import find_recordings, with_operators
    from tracekit.ranks.reading.telling import tell_recordings
    from tracekit.walks.reading import parse_steps

    if collectives == "all" and json_path is None:
        raise TracekitError("--collectives all applies only to the JSON: pass --json PATH; -v prints the worst")
    check_output_path("--json", json_path, *places)
    console = console_beside(json_path)
    found = find_recordings(places, form)
    there = None
    if html_path is not None:
        from tracekit.walks.reports import identity_of_report

        name = f"{Path(places[0]).resolve().name.partition('.')[0]}-ranks"
        identity = identity_of_report("ranks", found)
        asked = Path(html_path) if html_path else None
        there = destination(name, identity, asked, json_path, force=force, option="--html PATH")
    reading = RanksReading(window, parse_steps(steps), cached=not no_cache)
    told, each_alone = tell_recordings(found, reading, engine, drawn=there is not None, each_alone=collectives == "all")

    from tracekit.ranks.report.overview import ranks_text
    from tracekit.report.terminal import shown

    if with_operators(places, form):
        told = replace(told, notes=(*told.notes, Note("with_operators", "info")))
    if there is not None:
        from tracekit.ranks.report.ranks_page import ranks_report
        from tracekit.walks.reports import write_report

        write_report(ranks_report(told), there)
    page = there.page if there else None
    console.print(shown(ranks_text(told, page, (), detail, console.width)), crop=False)
    if json_path is not None:
        # What it needs takes as long to load as eight small traces to read.
        from tracekit.ranks.report.as_json import ranks_json

        write_json(ranks_json(told, each_alone), json_path)
