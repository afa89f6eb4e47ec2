"""Two recordings in one trace for Perfetto, with what was found in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from tracekit import store
from tracekit.analysis import holds_window
from tracekit.analysis.drawing import ARROWS_ARE, draw_arrows, draw_panel, known_of
from tracekit.cli.output import check_output_path
from tracekit.comparison.matching.groups import match_work
from tracekit.measure.progress import console_of_its_own, shown
from tracekit.model.picture import Picture
from tracekit.printing import echo
from tracekit.reading.pairs import load_sides
from tracekit.reading.sides import raise_if_damaged
from tracekit.report.words.groups import label_words
from tracekit.tracefile.perfetto import slimmed, write_picture

if TYPE_CHECKING:
    from tracekit.model.comparison import Side
    from tracekit.model.matching import Matching
    from tracekit.model.picture import Panel
    from tracekit.model.run import FormName, RecordingKind
    from tracekit.reading.traces import Reading

NOT_MATCHED = "kernels could not be matched one by one: no groups, no arrows"


def merge(
    a: Path, b: Path | None, form: FormName | None, recording: RecordingKind | None, reading: Reading, out: Path | None
) -> Path:
    """Writes one trace of A and B, or of the two forms of the run folder A; says how far it is, where the trace lies
    and what it does not show.

    Of a run it shows the light recording, whose gaps are the truer ones, unless `recording` says otherwise. Raises
    TracekitError for whatever keeps one of them from being read or the file from being written.
    """
    # What the merged trace is made of is not replaced. A folder of a run may hold it all the same.
    read: list[Path] = []
    for place in (a, b):
        if place is not None and place.is_dir():
            read += [path for path in place.iterdir() if not path.name.startswith("perfetto")]
        elif place is not None:
            read.append(place)
    check_output_path("--out", str(out) if out else None, *map(str, read))
    reading = replace(reading, shapes=True, cpu=True)
    with shown(console_of_its_own()) as progress:
        progress.phase("reading the recordings")
        one, other, run = load_sides(str(a), str(b) if b else None, (form, form) if b else (None, None), reading)
        progress.phase("matching kernels")
        matching = match_work(one, other)
        progress.phase(f"drawing {one.label}")
        panel_a = _panel(one, "a", matching, recording, reading)
        progress.phase(f"drawing {other.label}")
        panel_b = _panel(other, "b", matching, recording, reading)
        arrows = draw_arrows(matching, panel_a, panel_b)
        picture = slimmed(Picture((panel_a, panel_b), arrows, ARROWS_ARE, () if matching else (NOT_MATCHED,)))
        # Unless a place was named, in the run's folder, else beside A, which may be a file; what came from elsewhere is
        # kept in `traces`.
        name = "perfetto-rich.json.gz" if recording == "rich" else "perfetto.json.gz"
        both = re.sub(r"[^\w.-]+", "-", f"{one.label}-vs-{other.label}")
        beside = a.parent if a.exists() else Path("traces")
        path = out or (a / name if run is not None else beside / f"{both}.{name}")
        progress.phase("writing the merged trace")
        json_bytes = write_picture(picture, path, is_named=out is not None)
    for line in (f"written: {path} ({json_bytes / 1e6:.1f} MB unpacked)", *picture.notes):
        # A pipe that was written into may be standard output.
        echo(line, err=not path.is_file())
    raise_if_damaged(one, other)
    return path


def _panel(
    side: Side, which: Literal["a", "b"], matching: Matching | None, recording: RecordingKind | None, reading: Reading
) -> Panel:
    path = side.path
    if side.form is not None and recording is not None:
        path = str(store.recording_path(Path(path).parent, side.form, recording))
    trace = reading.read(path)
    if trace.path != side.path and (reading.steps or not holds_window(trace, reading.window)):
        # The other recording of a form has other steps, each like those that were asked for.
        reading = replace(reading, steps=None, window="auto")
    known = known_of(matching, which, label_words)
    return draw_panel(trace, side.label, window=reading.window, steps=reading.steps, known=known, wall_us=side.wall_us)
