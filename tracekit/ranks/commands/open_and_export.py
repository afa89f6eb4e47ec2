"""What `tracekit open` and `tracekit export` make of the ranks of a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.cli.exporting import write_table
from tracekit.cli.output import check_apart, check_output_path, console_beside
from tracekit.printing import echo
from tracekit.ranks.commands.merged_ranks import merge_ranks, write_ranks
from tracekit.ranks.listing import list_parts
from tracekit.ranks.reading.loading import RanksReading
from tracekit.ranks.reading.recordings import find_recordings
from tracekit.ranks.reading.telling import join_recordings
from tracekit.ranks.report.words import note_sentences
from tracekit.ranks.telling import notes_of
from tracekit.reading.traces import parse_steps

if TYPE_CHECKING:
    from tracekit.model.run import FormName


def merge(places: tuple[str, ...], form: FormName | None, window: str, steps: str | None, out: Path | None) -> Path:
    """One trace of all ranks for Perfetto, and where it lies."""
    return merge_ranks(places, form, RanksReading(window, parse_steps(steps)), out)


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
        write_ranks(joined, perfetto, is_named=True)
    else:
        for sentence in note_sentences(notes_of(joined)):
            echo(f"note: {sentence}", err=True)
