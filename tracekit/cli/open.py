"""`tracekit open`: a trace, or several as one, shown in Perfetto."""

from __future__ import annotations

from typing import Any

import click

from tracekit.cli.options import FORMS, WIDE_HELP, OutputPath


@click.command("open", epilog="Example: tracekit open traces/flux-compiled", context_settings=WIDE_HELP)
@click.argument("places", nargs=-1, required=True, metavar="RUN | A B | FOLDER|FILE... of ranks")
@click.option("--form", type=FORMS, help="Run folder: open only this variant, as recorded, or all its ranks.")
@click.option(
    "--recording",
    type=click.Choice(("light", "rich")),
    help="Run folder: kernel-only trace (light, less overhead) or full trace (rich).",
)
@click.option(
    "--window",
    default="auto",
    metavar="steps|whole|NAME",
    help="Several traces: what to show: marked steps, the whole trace, or spans by name.",
)
@click.option("--steps", metavar="N|N-M", help="Several traces: show only these marked steps.")
@click.option("--out", type=OutputPath(), help="Where to write the merged trace (default: in the folder, or beside A).")
@click.option("--no-serve", is_flag=True, help="Write the merged trace and exit.")
@click.option("--no-browser", is_flag=True, help="Print the link. Do not start a browser.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop waiting for the browser after this long.",
)
def open_(places: tuple[str, ...], **asked: Any) -> None:
    """Open a run, a trace, two traces, or all ranks of a job in Perfetto (ui.perfetto.dev).

    Eager and compiled of a run, A and B, or the ranks of a job are merged into one trace with the findings in it
    (docs/perfetto.md). The trace is served from 127.0.0.1:9001 to Perfetto's page alone until it is fetched or you
    press Ctrl-C. It does not leave this machine (docs/security.md).
    """
    from tracekit.cli.opening import merge_and_serve

    merge_and_serve(places, **asked)
