"""The sides on one axis of time, as the page's script draws them: packed into little room.

The packed bytes hold, side by side, the GPU's work, its idle gaps and the host thread, each column by column:
starts (differences), durations (both in steps of 10 ns) as 32 bits, labels as 16 bits; of work also the kernel group
(65535: none) as 16 bits and the lane as 8. All little-endian.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass, replace
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
from tracekit.report.thinning import thinned
from tracekit.report.words.common import cause_words

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
UNATTRIBUTED_ALONE = "Unattributed{share}: this recording does not say what the host did meanwhile."
MEDIAN_STEP = "Of a side's recorded steps the one of median length is drawn, of two the shorter."
BY_NAMES = "Kernels were told by names alone, so nothing lights up."


@dataclass(frozen=True, slots=True)
class Lit:
    """What lights up together: for each side the number of the group at each place of its sequence, and of each group
    its name, its place in the model, and how many of each side's activities are in it (0: nothing lights up)."""

    numbers: tuple[dict[int, int], ...]
    groups: list[Any]


def texture(kind: str) -> str:
    """What lies over the colour of a kernel family or a cause of idle time: nothing where it is empty. There are more
    kinds than colours that everybody can tell apart."""
    if kind in IDLE_CAUSES:
        return "cross" if kind in RARE_CAUSES else "diagonal"
    return "lines" if kind in RARE_FAMILIES else ""


def timelines(comparison: Comparison) -> Timelines | None:
    """A above B, in which kernel groups light up. None where a side has nothing to draw."""
    groups = comparison.groups[:NO_GROUP]
    places = distinct_places(groups)
    lit = Lit(
        (
            {at: number for number, group in enumerate(groups) for at in group.a_at},
            {at: number for number, group in enumerate(groups) for at in group.b_at},
        ),
        [
            [group_label(group), clipped(place, 90), [len(group.a_at), len(group.b_at)]]
            if group.a_at or group.b_at
            else 0
            for group, place in zip(groups, places, strict=True)
        ],
    )
    by_names = not any(group.a_at or group.b_at for group in comparison.groups)
    lit, dark = _lit_within_room(lit)
    told = [f"{counted(dark, 'group')} with smaller changes, for the page's size, do not light up."] if dark else []
    return _drawn(_thinned(both_sides(comparison)), lit, GROUPS_LIGHT_UP, *([BY_NAMES] if by_names else []), *told)


def timelines_by_name(sides: Sides) -> Timelines | None:
    """Any number of sides, in which kernels of one name light up. None where none has anything to draw; a side that
    has nothing is left out, and said to be."""
    there = tuple((letter, side) for letter, side in sides if side.timeline is not None)
    shown = _fitting(there)
    names: dict[str, list[int]] = {}
    numbers = []
    for index, (_, side) in enumerate(shown):
        numbers.append(_numbered_by_name(side, names, index, len(shown)))
    lit = Lit(tuple(numbers), [[short_kernel_name(name), "", counts] for name, counts in names.items()][:NO_GROUP])
    lit, dark = _lit_within_room(lit)
    missing = [side_name(*each) for each in sides if each not in there]
    too_large = [side_name(*each) for each in there[len(shown) :]]
    told = [f"{', '.join(missing)}: nothing to draw."] if missing else []
    told += [f"Left out, for the page's size: {', '.join(too_large)}; analyze --html draws one."] if too_large else []
    told += [f"{counted(dark, 'name')}, for the page's size, light up nothing."] if dark else []
    return _drawn(shown, lit, NAMES_LIGHT_UP, *told) if shown else None


def _fitting(sides: Sides) -> Sides:
    """The first of the sides, as many as leave the page small enough."""
    shown: list[tuple[str, Side]] = []
    room = MOST_BYTES
    names = MOST_NAME_BYTES
    for letter, side in (_thinned((each,))[0] for each in sides):
        # Groups change little of the size.
        room -= len(gzip.compress(_packed(side.timeline, {}))) if side.timeline else 0
        names -= _json_bytes(_named(side.timeline)) if side.timeline else 0
        if min(room, names) < 0 and shown:
            break
        shown.append((letter, side))
    return tuple(shown)


def _thinned(sides: Sides) -> Sides:
    """The sides, whose timelines have lost their shortest bars where all of them would make the page too large."""
    drawn = tuple(side.timeline for _, side in sides if side.timeline is not None)
    if len(drawn) < len(sides):
        return sides
    kept = thinned(drawn, _fits)
    return tuple((letter, replace(side, timeline=each)) for (letter, side), each in zip(sides, kept, strict=True))


def _fits(drawn: tuple[StepTimeline, ...]) -> bool:
    names = sum(_json_bytes(_named(each)) for each in drawn)
    return names <= MOST_NAME_BYTES and len(gzip.compress(b"".join(_packed(each, {}) for each in drawn))) <= MOST_BYTES


def _named(timeline: StepTimeline) -> list[list[str]]:
    return [[short_kernel_name(label.name), label.kind] for label in timeline.labels]


def _json_bytes(told: object) -> int:
    """How long it is where a page holds it: marks of HTML are written by their numbers."""
    text = json.dumps(told, separators=(",", ":"))
    return len(text) + 5 * sum(map(text.count, "<>&"))


def _lit_within_room(lit: Lit) -> tuple[Lit, int]:
    """The first of the groups, as many as leave the page small enough, and how many that light up are left out."""
    room = MOST_GROUP_BYTES
    for kept, group in enumerate(lit.groups):
        room -= _json_bytes(group) + 1
        if room < 0:
            numbers = tuple({at: number for at, number in each.items() if number < kept} for each in lit.numbers)
            return Lit(numbers, lit.groups[:kept]), sum(map(bool, lit.groups[kept:]))
    return lit, 0


def _numbered_by_name(side: Side, names: dict[str, list[int]], index: int, sides: int) -> dict[int, int]:
    """The number of its name for each place of the side; `names` holds the names so far, and how often each occurs."""
    timeline, numbers = side.timeline, {}
    order = {name: number for number, name in enumerate(names)}
    for at, label in zip(timeline.positions, timeline.work.labels, strict=True) if timeline else ():
        name = timeline.labels[label].name if timeline else ""
        counts = names.setdefault(name, [0] * sides)
        counts[index] += 1
        numbers[at] = order.setdefault(name, len(order))
    return {at: number for at, number in numbers.items() if number < NO_GROUP}


def _drawn(sides: Sides, lit: Lit, lights: str, *more: str) -> Timelines | None:
    drawn = [side.timeline for _, side in sides if side.timeline is not None]
    if len(drawn) < len(sides):
        return None
    packed = b"".join(_packed(timeline, of) for timeline, of in zip(drawn, lit.numbers, strict=True))
    kinds = {each.labels[at].kind for each in drawn for at in _occurring(each)}
    letters = [letter for letter, _ in sides]
    above = f"{' above '.join(letters)} on one axis of time. " if len(sides) > 1 else ""
    return Timelines(
        data={
            "sides": [_side(*each, timeline) for each, timeline in zip(sides, drawn, strict=True)],
            "groups": lit.groups,
            "words": {kind: cause_words(kind) for kind in sorted(kinds)},
            "textures": {kind: texture(kind) for kind in sorted(kinds)},
            "packed": base64.b64encode(gzip.compress(packed, mtime=0)).decode(),
        },
        families={kind: kind for kind in FAMILIES if kind in kinds},
        causes={kind: cause_words(kind) for kind in IDLE_CAUSES if kind in kinds},
        intro=f"{above}{COLOURED} {lights}",
        title=f"Timelines of {' and '.join(letters)}" if len(sides) > 1 else "Timeline",
        stepped=f" of {letters[-1]}" if len(sides) > 1 else "",
        legend=_unattributed(sides),
        notes=(*_notes(sides), *more),
    )


def _unattributed(sides: Sides) -> str:
    """What is meant by gaps without a cause, and how much of the idle time drawn they take; empty where there are
    none."""
    shares = {letter: share for letter, side in sides if side.timeline and (share := _grey_share(side.timeline))}
    if not shares:
        return ""
    whose = {letter: f"{letter}'s" if letter else "the" for letter in shares}
    told = [f"{percent(share, 0)} of {whose[letter]} idle time" for letter, share in shares.items()]
    divided = all(side.rich is not None for letter, side in sides if letter in shares)
    return (UNATTRIBUTED if divided else UNATTRIBUTED_ALONE).format(share=f" (gaps with {', '.join(told)})")


def _grey_share(timeline: StepTimeline) -> float:
    """The share of the idle time drawn, 0 to 1, whose gaps have no cause."""
    gaps = timeline.gaps
    causes = (timeline.labels[at].kind for at in gaps.labels)
    grey = sum(us for us, cause in zip(gaps.durations_us, causes, strict=True) if cause == "unattributed")
    return grey / sum(gaps.durations_us) if grey else 0.0


def _occurring(timeline: StepTimeline) -> set[int]:
    return {*timeline.work.labels, *timeline.gaps.labels, *timeline.host.labels}


def _side(letter: str, side: Side, timeline: StepTimeline) -> dict[str, Any]:
    lanes = [f"stream {stream}" if stream is not None else "GPU" for stream in timeline.streams]
    if len(lanes) > MOST_LANES:
        lanes = [*lanes[: MOST_LANES - 1], f"{len(lanes) - MOST_LANES + 1} more streams"]
    return {
        "letter": letter,
        "title": f"{letter}: {clipped(printable(side.label), 40)}" if letter else clipped(printable(side.label), 40),
        "length": round(timeline.length_us, 2),
        "lanes": lanes,
        "labels": _named(timeline),
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


def _notes(sides: Sides) -> list[str]:
    drawn = [side.timeline for _, side in sides if side.timeline is not None]
    each_own = ", each from its own start" if len(drawn) > 1 else ""
    spans = "; ".join(_span(*each, each[1].timeline) for each in sides if each[1].timeline is not None)
    notes = [f"{spans[:1].upper()}{spans[1:]}: as recorded, with the profiler on{each_own}."]
    if any(side.analysis.window.steps > 1 for _, side in sides):
        notes.append(MEDIAN_STEP)
    left_out = sum(bars.left_out for each in drawn for bars in (each.work, each.gaps, each.host))
    notes.append(f"{left_out:,} events, the shortest, are not drawn." if left_out else "No event is left out.")
    others = max(each.other_devices for each in drawn)
    if others:
        notes.append(f"Only the first GPU is drawn, not the other {others}.")
    return notes


def _span(letter: str, side: Side, timeline: StepTimeline) -> str:
    """`A: step 0 (of 2) of the light recording, 8.95 ms`."""
    kind = _recording_kind(side)
    recording = f"the {kind} recording" if kind else "the recording"
    if timeline.step is None:
        what = f"all of {recording}"
    else:
        steps = side.analysis.window.steps
        what = f"step {timeline.step}{f' (of {steps:,})' if steps > 1 else ''} of {recording}"
    return f"{letter}: {what}, {duration(timeline.length_us)}" if letter else f"{what}, {duration(timeline.length_us)}"


def _recording_kind(side: Side) -> str | None:
    """Which of its form's recordings the side was read from; None of a bare trace."""
    name = PurePath(side.path).name
    recordings = side.form.recordings if side.form else ()
    return next((each.kind for each in recordings if PurePath(each.path).name == name), None)
