"""The two sides on one axis of time, as the page's script draws them: packed into little room.

The packed bytes hold, for A and then for B, the GPU's work, its idle gaps and the host thread, each column by column:
starts (differences), durations (both in steps of 10 ns) as 32 bits, labels as 16 bits; of work also the kernel group
(65535: none) as 16 bits and the lane as 8. All little-endian.
"""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracekit.model.analysis import FAMILIES, IDLE_CAUSES
from tracekit.model.comparison import Comparison, Side
from tracekit.model.timeline import Bars, StepTimeline
from tracekit.numbers import duration
from tracekit.report.names import clipped, printable, short_kernel_name
from tracekit.report.places import distinct_places
from tracekit.report.sections.groups import group_label
from tracekit.report.words import cause_words

#: Ticks of time are 10 ns.
TICKS_PER_US = 100
NO_GROUP = 65_535

#: Streams with a lane of their own; the others share the last one.
MOST_LANES = 5


@dataclass(frozen=True, slots=True)
class Timelines:
    """`data` goes into the page as JSON; `families` and `causes` are those that occur, with their words. `notes` say
    what a reader must know."""

    data: dict[str, Any]
    families: dict[str, str]
    causes: dict[str, str]
    notes: tuple[str, ...]


def timelines(comparison: Comparison) -> Timelines | None:
    """None where a side has nothing to draw."""
    a, b = comparison.a.timeline, comparison.b.timeline
    if a is None or b is None:
        return None
    groups = comparison.groups[:NO_GROUP]
    places = distinct_places(groups)
    numbers = (
        {at: number for number, group in enumerate(groups) for at in group.a_at},
        {at: number for number, group in enumerate(groups) for at in group.b_at},
    )
    packed = b"".join(_packed(timeline, of) for timeline, of in zip((a, b), numbers, strict=True))
    kinds = {a.labels[at].kind for at in _occurring(a)} | {b.labels[at].kind for at in _occurring(b)}
    return Timelines(
        data={
            "sides": [
                _side(letter, side, each) for letter, side, each in (("A", comparison.a, a), ("B", comparison.b, b))
            ],
            "groups": [
                [group_label(group), clipped(place, 90), len(group.a_at), len(group.b_at)]
                if group.a_at or group.b_at
                else 0
                for group, place in zip(groups, places, strict=True)
            ],
            "words": {kind: cause_words(kind) for kind in sorted(kinds)},
            "packed": base64.b64encode(gzip.compress(packed, mtime=0)).decode(),
        },
        families={kind: kind for kind in FAMILIES if kind in kinds},
        causes={kind: cause_words(kind) for kind in IDLE_CAUSES if kind in kinds},
        notes=tuple(_notes(comparison, a, b)),
    )


def _occurring(timeline: StepTimeline) -> set[int]:
    return {*timeline.work.labels, *timeline.gaps.labels, *timeline.host.labels}


def _side(letter: str, side: Side, timeline: StepTimeline) -> dict[str, Any]:
    lanes = [f"stream {stream}" if stream is not None else "GPU" for stream in timeline.streams]
    if len(lanes) > MOST_LANES:
        lanes = [*lanes[: MOST_LANES - 1], f"{len(lanes) - MOST_LANES + 1} more streams"]
    return {
        "title": f"{letter}: {clipped(printable(side.label), 40)}",
        "length": round(timeline.length_us, 2),
        "lanes": lanes,
        "labels": [[short_kernel_name(label.name), label.kind] for label in timeline.labels],
        "counts": [len(bars.labels) for bars in (timeline.work, timeline.gaps, timeline.host)],
    }


def _packed(timeline: StepTimeline, groups: dict[int, int]) -> bytes:
    work = timeline.work
    of_groups = np.array([groups.get(at, NO_GROUP) for at in timeline.positions], dtype="<u2")
    lanes = np.minimum(np.array(work.lanes, dtype=np.int64), MOST_LANES - 1).astype("<u1")
    return b"".join(
        (_columns(work), of_groups.tobytes(), lanes.tobytes(), _columns(timeline.gaps), _columns(timeline.host))
    )


def _columns(bars: Bars) -> bytes:
    starts = np.maximum(np.rint(np.array(bars.starts_us, dtype=float) * TICKS_PER_US), 0).astype(np.int64)
    durations = np.rint(np.array(bars.durations_us, dtype=float) * TICKS_PER_US).astype(np.int64)
    differences = np.diff(starts, prepend=0)
    return b"".join(
        (
            np.clip(differences, 0, 2**32 - 1).astype("<u4").tobytes(),
            np.clip(durations, 0, 2**32 - 1).astype("<u4").tobytes(),
            np.array(bars.labels, dtype="<u2").tobytes(),
        )
    )


def _notes(comparison: Comparison, a: StepTimeline, b: StepTimeline) -> list[str]:
    spans = [_span(letter, each) for letter, each in (("A", a), ("B", b))]
    notes = [f"{' and '.join(spans)}, as recorded with the profiler on, each from its own start."]
    left_out = sum(bars.left_out for each in (a, b) for bars in (each.work, each.gaps, each.host))
    notes.append(f"{left_out:,} events, the shortest, are not drawn." if left_out else "No event is left out.")
    others = max(a.other_devices, b.other_devices)
    if others:
        notes.append(f"Only the first GPU is drawn, not the other {others}.")
    if not any(group.a_at or group.b_at for group in comparison.groups):
        notes.append("Kernels were told by names alone, so nothing lights up.")
    return notes


def _span(letter: str, timeline: StepTimeline) -> str:
    what = "the whole recording" if timeline.step is None else f"step {timeline.step}"
    return f"{letter}: {what}, {duration(timeline.length_us)}"
