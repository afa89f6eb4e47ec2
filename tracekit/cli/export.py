"""`tracekit export`: a trace for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import polars as pl

#: A cell that begins so is run as a formula by spreadsheets.
FORMULA = r"^[=+\-@\t\r]"


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
@click.option("--no-cache", is_flag=True, help="Read the file anew, and keep nothing of it.")
def export(trace: str, hta: Path | None, csv: str | None, window: str, no_cache: bool) -> None:
    """Write TRACE for other tools.

    --hta: a folder that hta.trace_analysis.TraceAnalysis takes as its trace_dir; Triton's launch events are no longer
    taken for GPU work there, and steps are known. --csv: what `tracekit analyze` counts, one activity a line.
    """
    from tracekit import store
    from tracekit.cli.output import check_output_path, console_beside, say
    from tracekit.errors import TracekitError
    from tracekit.tracefile.hta import export_for_hta

    if hta is None and csv is None:
        raise TracekitError("say what for: --hta FOLDER, --csv PATH, or both")
    check_output_path("--csv", csv, trace)
    if store.is_run(Path(trace)):
        names = ", ".join(each.path for form in store.load(Path(trace)).forms for each in form.recordings)
        raise TracekitError(f"{trace} is a run folder: name one of its traces ({names})")
    console = console_beside(csv)
    if hta is not None:
        say(console, f"written: {export_for_hta(trace, hta)}")
    if csv is not None:
        _write_csv(_rows(trace, window, cached=not no_cache), csv)
        if csv != "-":
            say(console, f"written: {csv}")


def _rows(trace: str, window: str, *, cached: bool) -> pl.DataFrame:
    from tracekit.analysis.listing import list_activities
    from tracekit.cli.reading import read_with_bar

    return list_activities(read_with_bar(trace, cached=cached), window=window)


def _write_csv(rows: pl.DataFrame, path: str) -> None:
    import polars as pl

    from tracekit.cli.output import write_file

    safe = rows.with_columns(
        pl.when(pl.col("name").str.contains(FORMULA))
        .then(pl.lit("'") + pl.col("name"))
        .otherwise(pl.col("name"))
        .alias("name")
    )
    text = safe.write_csv(float_precision=3)
    if path == "-":
        click.echo(text, nl=False)
    else:
        write_file(Path(path), text)
