"""Two recordings in one trace for Perfetto, with what was found in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tracekit.model.progress import Progress, Silent
from tracekit.walks.pairs import load_sides
from tracekit.walks.reading import Reading

if TYPE_CHECKING:
    from tracekit.model.comparison import Side
    from tracekit.model.run import FormName, RecordingKind
    from tracekit.model.timeline import Matching, Panel

SILENT = Silent()
NOT_MATCHED = "kernels could not be matched one by one, so there are no groups and no arrows"


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged trace: where it lies, its size unpacked, and what it does not show."""

    path: Path
    json_bytes: int
    notes: tuple[str, ...]
    sides: tuple[Side, Side]


def merge(
    a: str,
    b: str | None,
    *,
    form: FormName | None = None,
    recording: RecordingKind | None = None,
    reading: Reading,
    out: Path | None = None,
    progress: Progress = SILENT,
) -> Merged:
    """Writes one trace of A and B, or of the two forms of the run folder A, and says where; `progress` is told how far
    it is.

    Of a run it shows the light recording, whose gaps are the truer ones, unless `recording` says otherwise. Raises
    TracekitError for whatever keeps one of them from being read or the file from being written.
    """
    from tracekit.analysis.drawing import draw_arrows
    from tracekit.comparison.matching.groups import match_work
    from tracekit.model.timeline import Picture
    from tracekit.tracefile.perfetto import write_picture
    from tracekit.tracefile.slimming import slimmed

    reading = replace(reading, shapes=True, cpu=True)
    forms = (form, form) if b is not None else (None, None)
    progress.phase("reading the recordings")
    one, other, run = load_sides(a, b, forms, reading)
    progress.phase("matching kernels")
    matching = match_work(one, other)
    progress.phase(f"drawing {one.label}")
    panel_a = _panel(one, "a", matching, recording, reading)
    progress.phase(f"drawing {other.label}")
    panel_b = _panel(other, "b", matching, recording, reading)
    arrows = draw_arrows(matching, panel_a, panel_b)
    picture = slimmed(Picture((panel_a, panel_b), arrows, () if matching else (NOT_MATCHED,)))
    if out is None:
        # In the run's folder, else beside A, which may be a file; what came from elsewhere is kept in `traces`.
        name = "perfetto-rich.json.gz" if recording == "rich" else "perfetto.json.gz"
        both = re.sub(r"[^\w.-]+", "-", f"{one.label}-vs-{other.label}")
        beside = Path(a).parent if Path(a).exists() else Path("traces")
        path = Path(a) / name if run is not None else beside / f"{both}.{name}"
    else:
        path = out
    progress.phase("writing the merged trace")
    return Merged(path, write_picture(picture, path, is_named=out is not None), picture.notes, (one, other))


def _panel(
    side: Side, which: Literal["a", "b"], matching: Matching | None, recording: RecordingKind | None, reading: Reading
) -> Panel:
    from tracekit import store
    from tracekit.analysis import holds_window
    from tracekit.analysis.drawing import draw_panel, known_of
    from tracekit.report.words.groups import label_words

    shown = side.path
    if side.form is not None and recording is not None:
        shown = str(store.recording_path(Path(side.path).parent, side.form, recording))
    trace = reading.read(shown)
    if trace.path != side.path and (reading.steps or not holds_window(trace, reading.window)):
        # The other recording of a form has other steps, each like those that were asked for.
        reading = replace(reading, steps=None, window="auto")
    known = known_of(matching, which, label_words)
    return draw_panel(trace, side.label, window=reading.window, steps=reading.steps, known=known, wall_us=side.wall_us)
