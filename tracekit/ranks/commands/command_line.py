"""`tracekit ranks`: who waited for whom in the recordings of many ranks, and why. `tracekit digest`: what that needs of
traces, as small files."""

from __future__ import annotations

from typing import Any

import click

from tracekit.cli.options import FORMS, WIDE_HELP, with_detail, with_html, with_json, with_steps, with_window

with_engine = click.option(
    "--engine", default="local", metavar="ENGINE", help="What reads: local, ray, or MODULE:FUNCTION."
)


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


@click.command(epilog="Example: tracekit digest s3://bucket/job --out digests", context_settings=WIDE_HELP)
@click.argument("places", metavar="FOLDER|FILE...", nargs=-1, required=True)
@click.option(
    "--out",
    metavar="FOLDER|PATH",
    help="Where digests go; of one trace a file NAME.digest (default: in this folder).",
)
@with_window
@with_steps
@with_engine
@click.pass_context
def digest(context: click.Context, /, **asked: Any) -> None:
    """Write what `tracekit ranks` needs of traces: kernels, collectives, idle time by cause.

    A digest is a file of some 100 kB, which `tracekit ranks` takes in the trace's place. FOLDER, FILE and --out
    may be URLs (s3, gs, hf), the first two patterns. Digests that agree with their traces are kept: the same command
    goes on after an interrupt.
    """
    from tracekit.ranks.commands.writing_digests import write_digests

    if not write_digests(**asked):
        context.exit(1)
