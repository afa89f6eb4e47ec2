"""The sides on one axis of time, as the page's script draws them: packed into little room.

The packed bytes hold, side by side, the GPU's work, its idle gaps and the host thread, each column by column:
starts (differences), durations (both in steps of 10 ns) as 32 bits, labels as 16 bits; of work also the kernel group
(65535: none) as 16 bits and the lane as 8. All little-endian.
"""

import base64
import gzip
import json
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from tracekit.model.analysis import FAMILIES, IDLE_CAUSES
from tracekit.model.comparison import Comparison, Side
from tracekit.model.timeline import Bars, StepTimeline
from tracekit.names import clipped, printable, short_kernel_name
from tracekit.numbers import counted, duration, percent
from tracekit.report.document import Timelines
from tracekit.report.sections.groups import distinct_places, group_label
from tracekit.report.sides import Sides, both_sides, side_name
from tracekit.report.words.common import FAMILY_WORDS, cause_words, family_kind

#: Ticks of time are 10 ns.
TICKS_PER_US = 100
NO_GROUP = 65_535

#: Streams with a lane of their own; the others share the last one.
MOST_LANES = 5

#: Of all sides together, packed, before base64 makes it a third longer.
MOST_BYTES = 750_000
#: Of the names of all sides, and of those of all groups, as they stand in the page.
MOST_NAME_BYTES = 400_000
MOST_GROUP_BYTES = 300_000

#: Fewer bars of a kind say nothing any more: a timeline that does not fit with these is as large as its names.
FEWEST_BARS = 64

#: These share their colour with others, and are told by their texture.
RARE_FAMILIES = ("communication", "memcpy", "memset")
RARE_CAUSES = ("gc", "profiler")

COLOURED = (
    "Kernels are coloured by family; idle gaps and the host, which are hatched, by cause. These are two scales: what "
    "has the same colour plain and hatched has nothing to do with each other."
)
GROUPS_LIGHT_UP = "Pointing at a kernel lights up its whole group on both sides: what it replaced, or what replaced it."
NAMES_LIGHT_UP = "Pointing at a kernel lights up all kernels of its name."
#: What grey gaps are, and where they are told apart.
UNATTRIBUTED = (
    "Unattributed{share}: the light recording, which is drawn because it distorts least, holds no operators and so "
    "does not say of a gap whether the host was in Python, operator dispatch or guards. Of all gaps together that is "
    "known: tables of idle time and waterfalls divide it in the proportions of the rich recording, and have no such "
    "part."
)
UNATTRIBUTED_NOT_DIVIDED = "Unattributed{share}: this recording does not say what the host did meanwhile."
MEDIAN_STEP = "Of a side's recorded steps the one of median length is drawn, of two the shorter."
BY_NAMES = "Kernels were told by names alone, so nothing lights up."

#: Letter and side of what is drawn, with its timeline.
Drawn = tuple[tuple[str, Side, StepTimeline], ...]


def texture(kind: str) -> str:
    """What lies over the colour of a kernel family or a cause of idle time: nothing where it is empty. There are more
    kinds than colours that everybody can tell apart."""
    if kind in IDLE_CAUSES:
        return "cross" if kind in RARE_CAUSES else "diagonal"
    if kind in FAMILY_WORDS and kind not in FAMILIES:
        return "columns"
    return "lines" if kind in RARE_FAMILIES else ""


def timelines(comparison: Comparison) -> Timelines | None:
    """A above B, in which kernel groups light up. None where a side has nothing to draw."""
    sides = _with_timelines(both_sides(comparison))
    if len(sides) < 2:
        return None
    groups = comparison.groups[:NO_GROUP]
    numbers = [
        {at: number for number, places in enumerate(of_side) for at in places}
        for of_side in ([group.a_at for group in groups], [group.b_at for group in groups])
    ]
    told = [
        [group_label(group), clipped(place, 90), [len(group.a_at), len(group.b_at)]] if group.a_at or group.b_at else 0
        for group, place in zip(groups, distinct_places(groups), strict=True)
    ]
    notes = [] if any(group.a_at or group.b_at for group in comparison.groups) else [BY_NAMES]
    numbers, told, dark = _lit_within_room(numbers, told)
    notes += [f"{counted(dark, 'group')} with smaller changes, for the page's size, do not light up."] if dark else []
    return _drawn(_thinned(sides), numbers, told, GROUPS_LIGHT_UP, *notes)


def timelines_by_name(sides: Sides) -> Timelines | None:
    """Any number of sides, in which kernels of one name light up. None where none has anything to draw; a side that
    has nothing is left out, and said to be."""
    there = _with_timelines(sides)
    shown: list[tuple[str, Side, StepTimeline]] = []
    room, name_room = MOST_BYTES, MOST_NAME_BYTES
    for letter, side, timeline in (_thinned((each,))[0] for each in there):
        # Groups change little of the size.
        room -= len(gzip.compress(_packed(timeline, {})))
        name_room -= _json_bytes(_named(timeline))
        if min(room, name_room) < 0 and shown:
            break
        shown.append((letter, side, timeline))
    names: dict[str, list[int]] = {}
    numbers = []
    for index, (_, _, timeline) in enumerate(shown):
        of_side: dict[int, int] = {}
        order = {name: number for number, name in enumerate(names)}
        for at, label in zip(timeline.positions, timeline.work.labels, strict=True):
            name = timeline.labels[label].name
            names.setdefault(name, [0] * len(shown))[index] += 1
            of_side[at] = order.setdefault(name, len(order))
        numbers.append({at: number for at, number in of_side.items() if number < NO_GROUP})
    groups = [[short_kernel_name(name), "", counts] for name, counts in names.items()][:NO_GROUP]
    numbers, groups, dark = _lit_within_room(numbers, groups)
    missing = [side_name(letter, side) for letter, side in sides if side.timeline is None]
    too_large = [side_name(letter, side) for letter, side, _ in there[len(shown) :]]
    told = [f"{', '.join(missing)}: nothing to draw."] if missing else []
    told += [f"Left out, for the page's size: {', '.join(too_large)}; analyze --html draws one."] if too_large else []
    told += [f"{counted(dark, 'name')}, for the page's size, light up nothing."] if dark else []
    return _drawn(tuple(shown), numbers, groups, NAMES_LIGHT_UP, *told) if shown else None


def _with_timelines(sides: Sides) -> Drawn:
    return tuple((letter, side, side.timeline) for letter, side in sides if side.timeline is not None)


def _thinned(sides: Drawn) -> Drawn:
    """The sides with the longest bars of each kind, as many as leave the page small enough. What is left out is counted
    in `left_out`."""
    timelines = [timeline for _, _, timeline in sides]
    most = max((len(bars.labels) for each in timelines for bars in _bars(each)), default=0)
    while most > FEWEST_BARS and (
        sum(_json_bytes(_named(each)) for each in timelines) > MOST_NAME_BYTES
        or len(gzip.compress(b"".join(_packed(each, {}) for each in timelines))) > MOST_BYTES
    ):
        most //= 2
        timelines = [_with_longest_bars(each, most) for each in timelines]
    return tuple((letter, side, thin) for (letter, side, _), thin in zip(sides, timelines, strict=True))


def _with_longest_bars(timeline: StepTimeline, most: int) -> StepTimeline:
    kept = [
        sorted(sorted(range(len(bars.labels)), key=bars.durations_us.__getitem__, reverse=True)[:most])
        for bars in _bars(timeline)
    ]
    occurring = sorted({bars.labels[at] for bars, places in zip(_bars(timeline), kept, strict=True) for at in places})
    numbers = {label: number for number, label in enumerate(occurring)}
    work, gaps, host = (
        Bars(
            starts_us=tuple(bars.starts_us[at] for at in places),
            durations_us=tuple(bars.durations_us[at] for at in places),
            labels=tuple(numbers[bars.labels[at]] for at in places),
            lanes=tuple(bars.lanes[at] for at in places),
            left_out=bars.left_out + len(bars.labels) - len(places),
        )
        for bars, places in zip(_bars(timeline), kept, strict=True)
    )
    labels, positions = (timeline.labels[each] for each in occurring), (timeline.positions[at] for at in kept[0])
    return replace(timeline, labels=tuple(labels), work=work, positions=tuple(positions), gaps=gaps, host=host)


def _named(timeline: StepTimeline) -> list[list[str]]:
    return [[short_kernel_name(label.name), family_kind(label.kind, label.name)] for label in timeline.labels]


def _json_bytes(told: object) -> int:
    """How long it is where a page holds it: marks of HTML are written by their numbers."""
    text = json.dumps(told, separators=(",", ":"))
    return len(text) + 5 * sum(map(text.count, "<>&"))


def _lit_within_room(numbers: list[dict[int, int]], groups: list[Any]) -> tuple[list[dict[int, int]], list[Any], int]:
    """What lights up together: for each side the number of the group at each place of its sequence, and of each group
    its name, its place in the model, and how many of each side's activities are in it (0: nothing lights up). The first
    of the groups, as many as leave the page small enough, and how many that light up are left out."""
    room = MOST_GROUP_BYTES
    for kept, group in enumerate(groups):
        room -= _json_bytes(group) + 1
        if room < 0:
            left = [{at: number for at, number in each.items() if number < kept} for each in numbers]
            return left, groups[:kept], sum(map(bool, groups[kept:]))
    return numbers, groups, 0


def _drawn(sides: Drawn, numbers: list[dict[int, int]], groups: list[Any], lights: str, *more: str) -> Timelines:
    told = []
    for letter, side, timeline in sides:
        lanes = [f"stream {stream}" if stream is not None else "GPU" for stream in timeline.streams]
        if len(lanes) > MOST_LANES:
            lanes = [*lanes[: MOST_LANES - 1], f"{len(lanes) - MOST_LANES + 1} more streams"]
        label = clipped(printable(side.label), 40)
        fields = {
            "letter": letter,
            "title": f"{letter}: {label}" if letter else label,
            "length": round(timeline.length_us, 2),
            "lanes": lanes,
            "labels": _named(timeline),
            "counts": [len(bars.labels) for bars in _bars(timeline)],
        }
        told.append(fields)
    packed = b"".join(_packed(timeline, of) for (_, _, timeline), of in zip(sides, numbers, strict=True))
    labels = {each.labels[at] for _, _, each in sides for bars in _bars(each) for at in bars.labels}
    kinds = {family_kind(label.kind, label.name) for label in labels}
    letters = [letter for letter, _, _ in sides]
    above = f"{' above '.join(letters)} on one axis of time. " if len(sides) > 1 else ""
    return Timelines(
        data={
            "sides": told,
            "groups": groups,
            "words": {kind: FAMILY_WORDS.get(kind) or cause_words(kind) for kind in sorted(kinds)},
            "textures": {kind: texture(kind) for kind in sorted(kinds)},
            "packed": base64.b64encode(gzip.compress(packed, mtime=0)).decode(),
        },
        families={kind: words for kind, words in FAMILY_WORDS.items() if kind in kinds},
        causes={kind: cause_words(kind) for kind in IDLE_CAUSES if kind in kinds},
        intro=f"{above}{COLOURED} {lights}",
        title=f"Timelines of {' and '.join(letters)}" if len(sides) > 1 else "Timeline",
        stepped=f" of {letters[-1]}" if len(sides) > 1 else "",
        legend=_unattributed(sides),
        notes=(*_notes(sides), *more),
    )


def _unattributed(sides: Drawn) -> str:
    """What is meant by gaps without a cause, and how much of the idle time drawn they take; empty where there are
    none."""
    told, divided = [], True
    for letter, side, timeline in sides:
        gaps = timeline.gaps
        each = zip(gaps.durations_us, gaps.labels, strict=True)
        if grey_us := sum(us for us, label in each if timeline.labels[label].kind == "unattributed"):
            whose = f"{letter}'s" if letter else "the"
            told.append(f"{percent(grey_us / sum(gaps.durations_us), 0)} of {whose} idle time")
            divided = divided and side.rich is not None
    words = UNATTRIBUTED if divided else UNATTRIBUTED_NOT_DIVIDED
    return words.format(share=f" (gaps with {', '.join(told)})") if told else ""


def _bars(timeline: StepTimeline) -> tuple[Bars, ...]:
    return timeline.work, timeline.gaps, timeline.host


def _packed(timeline: StepTimeline, groups: dict[int, int]) -> bytes:
    of_groups = np.array([groups.get(at, NO_GROUP) for at in timeline.positions], dtype="<u2")
    lanes = np.minimum(np.array(timeline.work.lanes, dtype=np.int64), MOST_LANES - 1).astype("<u1")
    work, gaps, host = map(_columns, _bars(timeline))
    return b"".join((work, of_groups.tobytes(), lanes.tobytes(), gaps, host))


def _columns(bars: Bars) -> bytes:
    starts = np.maximum(np.rint(np.array(bars.starts_us, dtype=float) * TICKS_PER_US), 0).astype(np.int64)
    durations = np.rint(np.array(bars.durations_us, dtype=float) * TICKS_PER_US).astype(np.int64)
    ticks = (np.clip(each, 0, 2**32 - 1).astype("<u4").tobytes() for each in (np.diff(starts, prepend=0), durations))
    return b"".join((*ticks, np.array(bars.labels, dtype="<u2").tobytes()))


def _notes(sides: Drawn) -> list[str]:
    """`A: step 0 (of 2) of the light recording, 8.95 ms: as recorded ...`, and what is not drawn."""
    spans = []
    for letter, side, timeline in sides:
        # Which of its form's recordings the side was read from is not known of a bare trace.
        name, recordings = PurePath(side.path).name, side.form.recordings if side.form else ()
        kind = next((f"{each.kind} " for each in recordings if PurePath(each.path).name == name), "")
        steps = side.analysis.window.steps
        of_all = f" (of {steps:,})" if steps > 1 else ""
        what = "all" if timeline.step is None else f"step {timeline.step}{of_all}"
        span = f"{what} of the {kind}recording, {duration(timeline.length_us)}"
        spans.append(f"{letter}: {span}" if letter else span)
    words, each_own = "; ".join(spans), ", each from its own start" if len(sides) > 1 else ""
    notes = [f"{words[:1].upper()}{words[1:]}: as recorded, with the profiler on{each_own}."]
    notes += [MEDIAN_STEP] if any(side.analysis.window.steps > 1 for _, side, _ in sides) else []
    left_out = sum(bars.left_out for _, _, timeline in sides for bars in _bars(timeline))
    notes.append(f"{left_out:,} events, the shortest, are not drawn." if left_out else "No event is left out.")
    others = max(timeline.other_devices for _, _, timeline in sides)
    return [*notes, f"Only the first GPU is drawn, not the other {others}."] if others else notes
