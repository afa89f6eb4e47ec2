"""What `tracekit digest` reads and writes."""

from __future__ import annotations

from pathlib import Path

from tracekit.cli.output import check_output_path, console_beside, is_stream, say
from tracekit.errors import TracekitError
from tracekit.measure.engines import opened_engine
from tracekit.numbers import size
from tracekit.printing import echo
from tracekit.ranks.reading.digesting import find_traces, make_digest, make_digests, plan_digests
from tracekit.ranks.reading.loading import RanksReading, memory_to_read
from tracekit.ranks.reading.recordings import DIGEST, recording_name
from tracekit.reading.traces import parse_steps
from tracekit.tracefile.places import plain, put


def write_digests(places: tuple[str, ...], out: str | None, window: str, steps: str | None, engine: str) -> bool:
    """Whether there is a digest of every trace now; which could not be read is said."""
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
        return True
    tasks = plan_digests(traces, out)
    check_output_path("--out", tasks[0].place)
    with opened_engine(engine, memory_to_read(traces)) as executor:
        came = make_digests(tasks, RanksReading(window, steps_asked, cached=False), say_refused, executor)

    counts = f"{came.made:,} digested, {came.kept:,} skipped, {came.failed:,} failed"
    say(console_beside(None), f"{counts} -> {out} ({size(came.bytes)})")
    return not came.failed


def say_refused(error: TracekitError) -> None:
    echo(f"error: {' '.join(str(error).split())}", err=True)
