"""`tracekit digest`: what `tracekit ranks` needs of one trace, as a small file."""

from __future__ import annotations

from pathlib import Path

import click

from tracekit.cli.options import WIDE_HELP, with_steps, with_window
from tracekit.cli.output import check_output_path, console_beside, say


@click.command(epilog="Example: tracekit digest rank0.json.gz", context_settings=WIDE_HELP)
@click.argument("trace", metavar="TRACE")
@click.option("--out", metavar="PATH", help="The file to write (default NAME.digest.parquet in this folder).")
@with_window
@with_steps
def digest(trace: str, out: str | None, window: str, steps: str | None) -> None:
    """Write what `tracekit ranks` needs of TRACE: kernels, collectives, idle time by cause. It is a Parquet file of
    about a tenth of the trace's size; `tracekit ranks` takes it in the trace's place."""
    from tracekit.files import write_named
    from tracekit.ranks.digest_file import digest_bytes
    from tracekit.walks.ranks import RanksReading
    from tracekit.walks.reading import parse_steps

    name = Path(trace).name.partition(".json")[0] or "trace"
    place = out or f"{name}.digest.parquet"
    check_output_path("--out", place, trace)
    found = RanksReading(window, parse_steps(steps)).digest(trace)
    write_named(Path(place), digest_bytes(found))
    say(console_beside(None), f"written: {place}")
