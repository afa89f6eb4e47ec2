"""`tracekit digest`: what `tracekit ranks` needs of traces, as small files."""

from __future__ import annotations

from typing import Any

import click

from tracekit.cli.options import WIDE_HELP, with_steps, with_window
from tracekit.ranks.commands.engine import with_engine


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
