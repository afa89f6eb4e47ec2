"""The sentences of a report on one side."""

from __future__ import annotations

from tracekit.model.alone import Alone
from tracekit.model.comparison import Side
from tracekit.names import clipped_within, printable
from tracekit.numbers import count, counted, duration, percent
from tracekit.report.sections.alone import compiled_too_late
from tracekit.report.sections.limits import limit_sentence
from tracekit.report.words.common import extent, scope
from tracekit.report.words.notes import other_sentences

LONGEST_LABEL = 60


def headline(side: Side) -> str:
    """What one call takes; of a bare trace how busy it shows the GPU, or how long its operators took."""
    name = f"{side.settings.workload}, {side.label}" if side.settings else side.label
    label = clipped_within(printable(name), LONGEST_LABEL)
    if side.wall_us is not None:
        return f"{label}: {duration(side.wall_us)} a call."
    if side.analysis.gpu is not None:
        return f"{label}: the GPU was busy for {percent(1 - side.analysis.gpu.idle_fraction, 0)} of what was recorded."
    if side.analysis.cpu is not None:
        return f"{label}: operators took {duration(side.analysis.cpu.operator_us / side.steps)} {scope(side)}."
    return f"{label}: nothing that was recorded ran on a GPU."


def sentences(alone: Alone) -> tuple[str, ...]:
    """What stands below the headline: what was read, what limits it."""
    side, window = alone.side, alone.side.analysis.window
    over = extent(side) if window.kind == "whole" else counted(window.steps, extent(side).removesuffix("s"))
    read = f"Read over {over}, {duration(window.span_us)} in all."
    if side.wall_us is None:
        read += " A recording has no unprofiled times: how long a call takes without the profiler is not known."
    limit = limit_sentence(side, alone.bound)
    return (read, *([limit] if limit else []))


def warnings(alone: Alone, notes: tuple[str, ...]) -> tuple[str, ...]:
    """What to know before relying on the figures, `notes` of the run last."""
    late = compiled_too_late(alone.side)
    return (*([late] if late else []), *other_sentences(alone.notes), *notes)


def key_figures(side: Side) -> tuple[tuple[str, str, str], ...]:
    """A few figures to remember: what they are, how large, and a word beside."""
    figures = []
    if side.wall_us is not None and side.form:
        figures.append(("Wall time", duration(side.wall_us), f"median of {count(len(side.form.wall_us))} calls"))
    if side.busy_us is not None:
        figures.append(("GPU busy", duration(side.busy_us), scope(side)))
    if side.idle_share is not None:
        figures.append(("GPU idle", percent(side.idle_share, 0), f"{duration(side.unprofiled_idle_us)} of the call"))
    elif side.recorded_idle_share is not None:
        lost = f"{duration(side.recorded_idle_us)}, lengthened by recording"
        figures.append(("GPU idle, as recorded", percent(side.recorded_idle_share, 0), lost))
    if side.kernels_per_step is not None:
        figures.append(("Kernels", count(side.kernels_per_step), f"{count(side.launches_per_step)} launches"))
    return tuple(figures)
