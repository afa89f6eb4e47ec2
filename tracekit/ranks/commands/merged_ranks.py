"""The recordings of many ranks in one trace for Perfetto, on one clock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.cli.output import check_output_path
from tracekit.console import PrintableConsole
from tracekit.measure.progress import shown
from tracekit.printing import echo
from tracekit.ranks.drawing import draw_ranks
from tracekit.ranks.reading.recordings import MERGED, find_recordings
from tracekit.ranks.reading.telling import join_recordings
from tracekit.ranks.report.words import note_sentences
from tracekit.ranks.telling import notes_of
from tracekit.tracefile.perfetto import slimmed, write_picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracekit.model.run import FormName
    from tracekit.ranks.joined import Joined
    from tracekit.ranks.reading.loading import RanksReading


def merge_ranks(places: Sequence[str], form: FormName | None, reading: RanksReading, out: Path | None) -> Path:
    """Writes one trace of all ranks; says where it lies, what it does not show, and what is wrong with the recordings.

    Raises TracekitError where none can be read, and for whatever keeps the file from being written.
    """
    found = find_recordings(places, form)
    check_output_path("--out", str(out) if out else None, *found)
    first = Path(places[0])
    folder = first if first.is_dir() else first.parent if first.exists() else Path("traces")
    path = out or folder / MERGED
    write_ranks(join_recordings(found, reading), path, is_named=out is not None)
    return path


def write_ranks(joined: Joined, path: Path, *, is_named: bool) -> None:
    """What is said goes beside the trace where that is standard output."""
    with shown(PrintableConsole(stderr=True)) as progress:
        progress.phase("drawing the ranks")
        picture = slimmed(draw_ranks(joined))
        progress.phase("writing the merged trace")
        json_bytes = write_picture(picture, path, is_named=is_named)
    ranks = f"{len(picture.panels)} ranks, {json_bytes / 1e6:.1f} MB unpacked"
    for line in (f"written: {path} ({ranks})", *note_sentences(notes_of(joined)), *picture.notes):
        echo(line, err=not path.is_file())
