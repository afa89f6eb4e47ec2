"""`tracekit digest`: what `tracekit ranks` needs of traces, as small files."""

from __future__ import annotations

from pathlib import Path

import click

from tracekit.cli.options import WIDE_HELP, with_steps, with_window
from tracekit.cli.output import check_output_path, console_beside, is_stream, say
from tracekit.errors import TracekitError
from tracekit.printing import echo
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
def digest(
    context: click.Context, places: tuple[str, ...], out: str | None, window: str, steps: str | None, engine: str
) -> None:
    """Write what `tracekit ranks` needs of traces: kernels, collectives, idle time by cause.

    A digest is a file of some 100 kB, which `tracekit ranks` takes in the trace's place. FOLDER, FILE and --out
    may be URLs (s3, gs, hf), the first two patterns. Digests that agree with their traces are kept: the same command
    goes on after an interrupt.
    """
    from tracekit.ranks.reading.digesting import find_traces, make_digest, make_digests, plan_digests
    from tracekit.ranks.reading.loading import RanksReading, memory_to_read
    from tracekit.ranks.reading.recordings import DIGEST, recording_name
    from tracekit.tracefile.places import plain, put
    from tracekit.walks.engines import opened_engine
    from tracekit.walks.reading import parse_steps

    traces, steps_asked = find_traces(places), parse_steps(steps)
    if out in ("", "-"):
        raise TracekitError(
            f"--out {out!r} is no folder and no file: leave it out, or pass a folder, as in --out digests"
        )
    out = plain(out) if out is not None else None
    if out is None or out.endswith(DIGEST) or is_stream(Path(out)):
        if len(traces) > 1:
            raise TracekitError(f"{len(traces):,} traces: pass a folder for their digests, as in --out digests")
        there = out or f"{recording_name(traces[0])}{DIGEST}"
        check_output_path("--out", there, traces[0])
        put(there, make_digest(traces[0], RanksReading(window, steps_asked)))
        say(console_beside(None), f"written: {there}")
        return
    tasks = plan_digests(traces, out)
    check_output_path("--out", tasks[0].place)
    with opened_engine(engine, memory_to_read(traces)) as executor:
        came = make_digests(tasks, RanksReading(window, steps_asked, cached=False), say_refused, executor)

    from tracekit.ranks.report.words import digested

    say(console_beside(None), digested(came, out))
    if came.failed:
        context.exit(1)


def say_refused(error: TracekitError) -> None:
    echo(f"error: {' '.join(str(error).split())}", err=True)
