"""The bars of a timeline in few bytes, as a page holds them.

The packed bytes hold the GPU's work, its idle gaps and the host thread, each column by column: starts (differences),
durations (both in steps of 10 ns) as 32 bits, labels as 16 bits; of work also the kernel group (65535: none) as 16 bits
and the lane as 8. Of gaps that are the holes in the work only labels are held. Of each column first come the lowest
bytes of all numbers, then the next: that packs best.
"""

import json

import numpy as np
from msgspec.structs import replace

from tracekit.interval import Floats, Ints
from tracekit.model.timeline import Bars, Label, StepTimeline
from tracekit.names import short_kernel_name
from tracekit.report.words.common import family_kind

#: Ticks of time are 10 ns.
TICKS_PER_US = 100
NO_GROUP = 65_535
#: Starts, durations and labels of bars.
Columns = tuple[Floats, Floats, Ints]
#: Streams with a lane of their own; the others share the last one.
MOST_LANES = 5
#: What is drawn together may have pauses of this share of its length.
PAUSE = 0.1


def bars_of(timeline: StepTimeline) -> tuple[Bars, Bars, Bars]:
    """Work, gaps and host."""
    return timeline.work, timeline.gaps, timeline.host


def named(timeline: StepTimeline) -> list[list[str]]:
    """Each label's name as a page shows it, and its kind."""
    return [[short_kernel_name(label.name), family_kind(label.kind, label.name)] for label in timeline.labels]


def json_bytes(told: object) -> int:
    """How long it is where a page holds it: marks of HTML are written by their numbers."""
    text = json.dumps(told, separators=(",", ":"))
    return len(text) + 5 * sum(map(text.count, "<>&"))


def with_longest_bars(timeline: StepTimeline, most: int) -> StepTimeline:
    """With so many of each kind. The others are counted in `left_out`."""
    kept = [
        sorted(sorted(range(len(bars.labels)), key=bars.durations_us.__getitem__, reverse=True)[:most])
        for bars in bars_of(timeline)
    ]
    work, gaps, host = (
        Bars(
            starts_us=tuple(bars.starts_us[at] for at in places),
            durations_us=tuple(bars.durations_us[at] for at in places),
            labels=tuple(bars.labels[at] for at in places),
            lanes=tuple(bars.lanes[at] for at in places),
            left_out=bars.left_out + len(bars.labels) - len(places),
        )
        for bars, places in zip(bars_of(timeline), kept, strict=True)
    )
    positions = tuple(timeline.positions[at] for at in kept[0])
    return _with_labels_in_use(replace(timeline, work=work, positions=positions, gaps=gaps, host=host))


def as_columns(bars: Bars) -> Columns:
    return np.array(bars.starts_us), np.array(bars.durations_us), np.array(bars.labels)


def with_short_events_together(timeline: StepTimeline, host: Columns, least_us: float) -> StepTimeline:
    """With one bar for neighbouring host events that are shorter than that and begin in the same stretch of that
    length, short pauses between them included. It has the cause that took most of their time, and the name of the
    longest event of that cause. `host` are its host events as columns."""
    starts, lengths, labels = host
    if not len(labels):
        return timeline
    ends, first = starts + lengths, first_together(starts, lengths, least_us)
    last = np.append(first[1:], len(starts)) - 1
    bar = np.repeat(np.arange(len(first)), last - first + 1)
    causes = {cause: number for number, cause in enumerate({label.kind for label in timeline.labels})}
    cause = np.array([causes[label.kind] for label in timeline.labels])[labels]
    taken = np.bincount(bar * len(causes) + cause, lengths, len(first) * len(causes)).reshape(len(first), -1)
    of_leading = np.where(cause == taken.argmax(axis=1)[bar], lengths, -1.0)
    # Of equally long ones the last.
    longest = np.flatnonzero(of_leading == np.maximum.reduceat(of_leading, first)[bar])
    leading = labels[longest[np.searchsorted(longest, last, side="right") - 1]]
    numbers = {label: number for number, label in enumerate(timeline.labels)}
    told, several = np.arange(len(numbers)), np.flatnonzero(last > first)
    for label in dict.fromkeys(leading[several].tolist()):
        name, kind = timeline.labels[label].name, timeline.labels[label].kind
        told[label] = numbers.setdefault(Label(f"{name} and others", kind), len(numbers))
    leading[several] = told[leading[several]]
    begins, took, leads = (each.tolist() for each in (starts[first], ends[last] - starts[first], leading))
    bars = Bars(tuple(begins), tuple(took), tuple(leads), (0,) * len(first), timeline.host.left_out)
    return _with_labels_in_use(replace(timeline, labels=tuple(numbers), host=bars))


def first_together(starts: Floats, lengths: Floats, least_us: float) -> Ints:
    """The first event of each bar that `with_short_events_together` makes of host events."""
    long, reach = lengths >= least_us, np.maximum.accumulate(starts + lengths)
    parted = (np.diff(starts // least_us) != 0) | long[1:] | long[:-1] | (starts[1:] - reach[:-1] > PAUSE * least_us)
    return np.flatnonzero(np.concatenate((np.ones(min(len(starts), 1), dtype=bool), parted)))


def _with_labels_in_use(timeline: StepTimeline) -> StepTimeline:
    used = sorted({label for bars in bars_of(timeline) for label in bars.labels})
    numbers = {label: number for number, label in enumerate(used)}
    work, gaps, host = (
        replace(bars, labels=tuple(numbers[label] for label in bars.labels)) for bars in bars_of(timeline)
    )
    return replace(timeline, labels=tuple(timeline.labels[each] for each in used), work=work, gaps=gaps, host=host)


def packed(timeline: StepTimeline, groups: dict[int, int]) -> bytes:
    """`groups` are the numbers of the kernel groups at places of the side's sequence."""
    of_groups = np.array([groups.get(at, NO_GROUP) for at in timeline.positions])
    lanes = np.minimum(np.array(timeline.work.lanes, dtype=np.int64), MOST_LANES - 1)
    columns = []
    ticks = [_ticks(bars) for bars in bars_of(timeline)]
    for bars, (starts, durations) in zip(bars_of(timeline), ticks, strict=True):
        begins, labels = np.diff(starts, prepend=0), np.array(bars.labels)
        columns.append((_by_bytes(begins, "<u4"), _by_bytes(durations, "<u4"), _by_bytes(labels, "<u2")))
    work, gaps, host = columns
    untold = gaps[2:] if _are_holes(ticks[0], ticks[1], timeline.length_us) else gaps
    return b"".join((*work, _by_bytes(of_groups, "<u2"), _by_bytes(lanes, "<u1"), *untold, *host))


def gaps_are_holes(timeline: StepTimeline) -> bool:
    """Whether the gaps are what the work leaves free, to a tick: the page's script finds those by itself."""
    return _are_holes(_ticks(timeline.work), _ticks(timeline.gaps), timeline.length_us)


def _are_holes(work: tuple[Ints, Ints], gaps: tuple[Ints, Ints], length_us: float) -> bool:
    starts, durations = work
    begin = np.concatenate(([0], np.maximum.accumulate(starts + durations)))
    end = np.concatenate((starts, [round(length_us * TICKS_PER_US)]))
    found, told = np.stack((begin, end - begin))[:, end > begin], np.stack(gaps)
    return found.shape == told.shape and bool((np.abs(found - told) <= 1).all())


def _by_bytes(numbers: Ints, kind: str) -> bytes:
    whole = np.clip(numbers, 0, np.iinfo(kind).max).astype(kind)
    return whole.view("u1").reshape(-1, whole.itemsize).T.tobytes()


def _ticks(bars: Bars) -> tuple[Ints, Ints]:
    starts, durations = (
        np.rint(np.array(each, dtype=float) * TICKS_PER_US).astype(np.int64)
        for each in (bars.starts_us, bars.durations_us)
    )
    return np.maximum(starts, 0), durations
