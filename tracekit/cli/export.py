"""`tracekit export`: a trace, a comparison, or the ranks of a job, for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracekit.cli import options


@click.command(epilog="Example: tracekit export trace.json.gz --hta for-hta", context_settings=options.WIDE_HELP)
@click.argument("places", nargs=-1, required=True, metavar="TRACE | RUN | A B | FOLDER|FILE... of ranks")
@click.option(
    "--hta",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a trace that Holistic Trace Analysis can load.",
)
@click.option(
    "--kernels", "--csv", metavar="PATH|-", help="Table of kernels, copies and memsets; - is standard output."
)
@click.option("--gaps", metavar="PATH|-", help="Table of idle gaps with their causes.")
@click.option("--groups", metavar="PATH|-", help="Table of kernel groups, eager and compiled, or TRACE and B.")
@click.option("--collectives", metavar="PATH|-", help="Of ranks: table of collectives, a row for each rank.")
@click.option(
    "--perfetto",
    type=options.OutputPath(),
    metavar="PATH",
    help="The trace that `tracekit open` merges: of a run, of A and B, of ranks.",
)
@click.option("--benchmark", metavar="PATH|-", help="Figures of a run as JSON for CI benchmark actions.")
@click.option("--form", type=options.FORMS, help="Variant of a run, for --kernels, --gaps, --hta and ranks.")
@click.option(
    "--window",
    default="auto",
    metavar="steps|whole|NAME",
    help="What the tables hold: marked steps, the whole trace, or spans by name.",
)
@click.option("--steps", metavar="N|N-M", help="Tables: only these marked steps.")
@click.option("--rank", type=click.IntRange(min=0), help="Rank number in the trace for HTA (default 0).")
@options.with_no_cache
def export(places: tuple[str, ...], **asked: Any) -> None:
    """Export traces for other tools (docs/export.md). Tables are Parquet if PATH ends in .parquet, else CSV."""
    from tracekit.cli.exporting import export_all

    export_all(places, **asked)
