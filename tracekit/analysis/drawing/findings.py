"""Tracks of steps and of idle time."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.analysis.drawing.slices import Row, as_slices, details
from tracekit.analysis.idle import list_gaps, main_cause
from tracekit.analysis.window import Scope, Span, WindowKind
from tracekit.model.analysis import IdleGap, StepUse
from tracekit.model.picture import Track
from tracekit.model.trace import Trace


def draw_steps(
    kind: WindowKind, steps: tuple[StepUse, ...], spans: tuple[Span, ...], wall_us: float | None
) -> tuple[Track, ...]:
    """From the start of each step on the host to its end there or on the GPU. `wall_us` is an unprofiled call's median.
    Empty when the whole trace is the window."""
    rows: list[Row] = []
    word = "step" if kind == "steps" else "span"
    for step, span in zip(steps, spans, strict=True):
        end = span.start_ns + round(step.wall_us * 1000)
        told = details(
            wall_us=step.wall_us,
            busy_us=step.busy_us,
            idle_us=step.idle_us,
            kernels=step.kernels,
            launches=step.launches,
            unprofiled_call_us=wall_us,
        )
        rows.append(("step", f"{word} {step.index}", span.start_ns, end, told, None))
    return (Track("steps", as_slices(rows)),) if rows else ()


def draw_gaps(trace: Trace, scope: Scope) -> tuple[Track, ...]:
    """One track a device: each idle gap, named after the cause that takes most of it."""
    origin = min((int(window[0, 0]) for window in scope.windows.values() if len(window)), default=0)
    gaps = list_gaps(trace, scope)
    return tuple(
        Track(f"idle, GPU {device}", as_slices(_gap_rows([each for each in gaps if each.device == device], origin)))
        for device in sorted({gap.device for gap in gaps})
    )


def _gap_rows(gaps: list[IdleGap], origin_ns: int) -> Iterator[Row]:
    for gap in gaps:
        start = origin_ns + round(gap.start_us * 1000)
        told = details(
            causes_us=gap.causes,
            launched_by=gap.launched_by,
            exposed_by=gap.sync,
            host_us={each.name or "nothing recorded": each.us for each in gap.host},
            where=gap.where.words if gap.where else None,
        )
        yield "idle", main_cause(gap), start, start + round(gap.duration_us * 1000), told, None
