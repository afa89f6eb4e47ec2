"""What `tracekit open` and `tracekit export` make of the ranks of a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.cli.exporting import write_table
from tracekit.cli.output import check_apart, check_output_path, console_beside
from tracekit.console import PrintableConsole
from tracekit.measure.progress import shown
from tracekit.printing import echo
from tracekit.ranks.drawing import draw_ranks
from tracekit.ranks.listing import list_parts
from tracekit.ranks.reading.loading import RanksReading
from tracekit.ranks.reading.recordings import MERGED, find_recordings
from tracekit.ranks.reading.telling import join_recordings
from tracekit.ranks.report.words import note_sentences
from tracekit.ranks.telling import notes_of
from tracekit.reading.traces import parse_steps
from tracekit.tracefile.perfetto import slimmed, write_picture

if TYPE_CHECKING:
    from tracekit.model.run import FormName
    from tracekit.ranks.joined import Joined


def merge(places: tuple[str, ...], form: FormName | None, window: str, steps: str | None, out: Path | None) -> Path:
    """Writes one trace of all ranks for Perfetto, on one clock, and returns where it lies. Says so, what it does not
    show, and what is wrong with the recordings.

    Raises TracekitError where none can be read, and for whatever keeps the file from being written.
    """
    reading = RanksReading(window, parse_steps(steps))
    found = find_recordings(places, form)
    check_output_path("--out", str(out) if out else None, *found)
    first = Path(places[0])
    folder = first if first.is_dir() else first.parent if first.exists() else Path("traces")
    path = out or folder / MERGED
    _write(join_recordings(found, reading), path, is_named=out is not None)
    return path


def export(
    places: tuple[str, ...],
    form: FormName | None,
    window: str,
    steps: str | None,
    cached: bool,
    collectives: str | None,
    perfetto: Path | None,
) -> None:
    """A table of their collectives, and what `merge` writes."""
    reading = RanksReading(window, parse_steps(steps), cached)
    found = find_recordings(places, form)
    outputs = {"--collectives": collectives, "--perfetto": None if perfetto is None else str(perfetto)}
    for option, path in outputs.items():
        check_output_path(option, path, *found)
    check_apart(outputs)
    joined = join_recordings(found, reading)
    if collectives is not None:
        write_table(list_parts(joined), collectives, console_beside(collectives))
    if perfetto is not None:
        _write(joined, perfetto, is_named=True)
    else:
        for sentence in note_sentences(notes_of(joined)):
            echo(f"note: {sentence}", err=True)


def _write(joined: Joined, path: Path, *, is_named: bool) -> None:
    """What is said goes beside the trace where that is standard output."""
    with shown(PrintableConsole(stderr=True)) as progress:
        progress.phase("drawing the ranks")
        picture = slimmed(draw_ranks(joined))
        progress.phase("writing the merged trace")
        json_bytes = write_picture(picture, path, is_named=is_named)
    ranks = f"{len(picture.panels)} ranks, {json_bytes / 1e6:.1f} MB unpacked"
    for line in (f"written: {path} ({ranks})", *note_sentences(notes_of(joined)), *picture.notes):
        echo(line, err=not path.is_file())
