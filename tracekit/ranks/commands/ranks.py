"""`tracekit ranks`: who waited for whom in the recordings of many ranks, and why."""

from __future__ import annotations

from typing import Any

import click

from tracekit.cli.options import FORMS, WIDE_HELP, with_detail, with_html, with_json, with_steps, with_window
from tracekit.ranks.commands.engine import with_engine


@click.command(epilog="Example: tracekit ranks traces/job --json -", context_settings=WIDE_HELP)
@click.argument("places", metavar="FOLDER|FILE...", nargs=-1, required=True)
@click.option("--form", type=FORMS, help="Variant of a run folder of several ranks (default: compiled, if recorded).")
@with_window
@with_steps
@with_html
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
def ranks(places: tuple[str, ...], **asked: Any) -> None:
    """Say who waited for whom in a job of many ranks, and why.

    FOLDER holds one trace of torch.profiler for each rank, or is a run of `tracekit profile --nproc`; or name the
    files, their URLs, or digests of `tracekit digest`.
    """
    from tracekit.ranks.commands.showing_ranks import show_ranks

    show_ranks(places, **asked)
