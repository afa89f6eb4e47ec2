"""`tracekit schema`: the JSON Schemas of what tracekit writes."""

from __future__ import annotations

from pathlib import Path

import click

from tracekit.cli.options import WIDE_HELP
from tracekit.errors import TracekitError
from tracekit.files import write_named
from tracekit.printing import echo, hand_over
from tracekit.wings import wings

OF_THE_CORE = ("analysis", "comparison", "comparisons", "run")
NAMES = tuple(sorted((*OF_THE_CORE, *(name for wing in wings() for name in wing.schemas))))


@click.command(epilog="Example: tracekit schema comparison", context_settings=WIDE_HELP)
@click.argument("name", type=click.Choice(NAMES), required=False)
@click.option("--out", type=click.Path(path_type=Path), metavar="FOLDER", help="Write all schemas into this folder.")
def schema(name: str | None, out: Path | None) -> None:
    """Print the JSON Schema of a document: a command's --json output, or a file that tracekit keeps, such as a run
    folder's run.json."""
    from tracekit.report.contract import schema_text

    if (name is None) == (out is None):
        raise TracekitError(f"pass one name ({', '.join(NAMES)}) to print that schema, or --out FOLDER to write all")
    if name is not None:
        hand_over(schema_text(name, for_reading=True))
    if out is not None:
        for each in NAMES:
            path = out / f"{each}.json"
            write_named(path, schema_text(each).encode())
            echo(f"written: {path}")
