"""`tracekit export`: a trace for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from tracekit.cli.reading import Reading
    from tracekit.model.trace import Trace

#: A cell that begins so is run as a formula by spreadsheets.
FORMULA = r"^\s*[=+\-@]|^[\t\r]"


@click.command(
    epilog="Example: tracekit export trace.json.gz --hta for-hta",
    context_settings={"max_content_width": 110},
)
@click.argument("trace", metavar="TRACE")
@click.option("--hta", type=click.Path(path_type=Path), metavar="FOLDER", help="For Holistic Trace Analysis.")
@click.option("--csv", metavar="PATH|-", help="Kernels, copies and sets, a line each; - is standard output.")
@click.option(
    "--window",
    default="auto",
    metavar="steps|whole|NAME",
    help="What the CSV holds: the marked steps, all of it, or spans by name or regular expression.",
)
@click.option("--steps", metavar="N|N-M", help="In the CSV only the marked steps with these numbers.")
@click.option("--rank", default=0, show_default=True, type=click.IntRange(min=0), help="What HTA is to call it.")
@click.option("--no-cache", is_flag=True, help="Read the file anew, and keep nothing of it.")
def export(
    trace: str, hta: Path | None, csv: str | None, window: str, steps: str | None, rank: int, no_cache: bool
) -> None:
    """Write TRACE for other tools.

    --hta: a folder that hta.trace_analysis.TraceAnalysis takes as its trace_dir; Triton's launch events are no longer
    taken for GPU work there, and steps are known. --csv: what `tracekit analyze` counts, one activity a line.
    """
    from tracekit import store
    from tracekit.cli.output import check_output_path, console_beside, say
    from tracekit.cli.reading import Reading, parse_steps
    from tracekit.errors import TracekitError
    from tracekit.tracefile.hta import export_for_hta

    if hta is None and csv is None:
        raise TracekitError("say what for: --hta FOLDER, --csv PATH, or both")
    check_output_path("--csv", csv, trace)
    if trace and store.is_run(Path(trace)):
        names = ", ".join(each.path for form in store.load(Path(trace)).forms for each in form.recordings)
        raise TracekitError(f"{trace} is a run folder: name one of its traces ({names})")
    console = console_beside(csv)
    if hta is not None:
        say(console, f"written: {export_for_hta(trace, hta, rank=rank)}")
    if csv is not None:
        reading = Reading(window, parse_steps(steps), cached=not no_cache)
        _export_csv(reading.read(trace), reading, csv, console)


def _export_csv(trace: Trace, reading: Reading, csv: str, console: Console) -> None:
    """Raises TracekitError, after writing what there is, when the trace could be read in part only."""
    from tracekit.analysis.listing import list_activities
    from tracekit.cli.output import say
    from tracekit.errors import TracekitError

    _write_csv(list_activities(trace, window=reading.window, steps=reading.steps), csv)
    if csv != "-":
        say(console, f"written: {csv}")
    if trace.truncated or trace.skipped:
        raise TracekitError(
            f"{trace.path} is damaged, and the CSV holds what could be read; `tracekit analyze` says more"
        )


def _write_csv(rows: pl.DataFrame, path: str) -> None:
    import polars as pl

    from tracekit.cli.output import write_file

    text_columns = pl.col(pl.String)
    safe = rows.with_columns(
        pl.when(text_columns.str.contains(FORMULA)).then(pl.lit("'") + text_columns).otherwise(text_columns).name.keep()
    )
    text = safe.write_csv(float_precision=3)
    if path == "-":
        click.echo(text, nl=False)
    else:
        write_file(Path(path), text)
