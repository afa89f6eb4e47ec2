"""The sides on one axis of time, as the page's script draws them."""

import base64
import gzip
from pathlib import PurePath
from typing import Any

from tracekit.model.analysis import FAMILIES, IDLE_CAUSES
from tracekit.model.comparison import Comparison, Side
from tracekit.model.timeline import StepTimeline
from tracekit.names import clipped, printable, short_kernel_name
from tracekit.numbers import counted, duration, percent
from tracekit.report.document import Timelines
from tracekit.report.sections.groups import distinct_places, group_label
from tracekit.report.timeline_bytes import (
    MOST_LANES,
    NO_GROUP,
    as_columns,
    bars_of,
    first_together,
    gaps_are_holes,
    json_bytes,
    named,
    packed,
    with_longest_bars,
    with_short_events_together,
)
from tracekit.report.words.common import FAMILY_WORDS, Sides, both_sides, cause_words, family_kind, side_name

#: Of all sides together, packed, before base64 makes it a third longer; the same of the rich recordings.
MOST_BYTES = 750_000
MOST_RICH_BYTES = 120_000
#: Of the names of all sides, and of those of all groups, as they stand in the page.
MOST_NAME_BYTES = 400_000
MOST_GROUP_BYTES = 300_000
#: Fewer bars of a kind say nothing any more: a timeline that does not fit with these is as large as its names.
FEWEST_BARS = 64
#: A bar takes two to four, packed.
LEAST_BYTES_A_BAR = 1.5
#: Host events that are shorter are the first to be drawn together.
LEAST_TOGETHER_US = 5.0
#: These share their colour with others, and are told by their texture.
RARE_FAMILIES = ("communication", "memcpy", "memset")
RARE_CAUSES = ("compile", "memory", "gc", "profiler")
COLOURED = "Kernels are coloured by family, idle gaps and the host (hatched) by cause."
GROUPS_LIGHT_UP = "Hovering {a_what} highlights its {what} group on both sides. A click pins it."
NAMES_LIGHT_UP = "Hovering {a_what} highlights all {what}s of its name. A click pins it."
#: Of CPU runs: outermost operators, what is between them, and the innermost.
COLOURED_ON_CPU = "Outermost operators are coloured by family, the rest (hatched) by what the thread did."
KEYS_ON_CPU = ("Operators, by family", "Between operators and innermost events, hatched")
#: What grey gaps are, and where they are told apart.
UNATTRIBUTED = "Unattributed ({shares}): {why}"
ALIKE = "the kernel-only trace has no operators. "
DIVIDED = "Tables of idle time divide it as in the full trace."
UNKNOWN = "the trace does not record what the host did meanwhile."
BY_NAMES = "Kernels were matched by name only: hovering highlights nothing."
LENGTHENED = "Recording operators lengthens idle gaps."
TOGETHER = "{events:,} host events are drawn as {bars:,} bars: short ones are merged."
MEDIAN_STEP = "The step of median length is drawn."
#: Of the recordings that a run has; of another nothing is known.
TRACES = {"light": "kernel-only trace", "rich": "full trace"}
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
        [group_label(group), clipped(place, 90), [len(group.a_at), len(group.b_at)], max(round(group.repeats), 1)]
        if group.a_at or group.b_at
        else 0
        for group, place in zip(groups, distinct_places(groups), strict=True)
    ]
    notes = [] if any(group.a_at or group.b_at for group in comparison.groups) else [BY_NAMES]
    return _drawn(_thinned(sides), numbers, told, notes, linked=True)


def timelines_by_name(sides: Sides) -> Timelines | None:
    """Any number of sides, in which kernels of one name light up. None where none has anything to draw; a side that
    has nothing is left out, and said to be."""
    there = _with_timelines(sides)
    shown: list[tuple[str, Side, StepTimeline]] = []
    room, name_room = MOST_BYTES, MOST_NAME_BYTES
    for letter, side, timeline in (_thinned((each,))[0] for each in there):
        # Groups change little of the size.
        room -= len(gzip.compress(packed(timeline, {})))
        name_room -= json_bytes(named(timeline))
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
    missing = [side_name(letter, side) for letter, side in sides if side.timeline is None]
    too_large = [side_name(letter, side) for letter, side, _ in there[len(shown) :]]
    told = [f"{', '.join(missing)}: nothing to draw."] if missing else []
    told += [f"Left out to limit the page size: {', '.join(too_large)}; analyze --html draws one."] if too_large else []
    return _drawn(tuple(shown), numbers, groups, told, linked=False) if shown else None


def _with_timelines(sides: Sides) -> Drawn:
    return tuple((letter, side, side.timeline) for letter, side in sides if side.timeline is not None)


def _with_operators(sides: Drawn) -> Drawn | None:
    """The rich recordings of these sides; short host events are drawn together where the page has no room for each.
    None where one is missing, or where its kernels alone are too much, and of a CPU, which has operators anyway."""
    if _on_cpu(sides):
        return None
    rich = tuple((letter, side, side.rich_timeline) for letter, side, _ in sides if side.rich_timeline is not None)
    if len(rich) < len(sides):
        return None
    together, least_us = rich, LEAST_TOGETHER_US
    kept = sum(len(each.work.labels) + len(each.gaps.labels) for *_, each in rich)
    hosts = [as_columns(each.host) for *_, each in rich]
    while not (fits := _fits(together, MOST_RICH_BYTES)) and least_us < max(each.length_us for *_, each in rich):
        if _may_fit(kept + sum(len(first_together(*host[:2], least_us)) for host in hosts), MOST_RICH_BYTES):
            together = tuple(
                (letter, side, with_short_events_together(each, host, least_us))
                for (letter, side, each), host in zip(rich, hosts, strict=True)
            )
        least_us *= 1.5
    return together if fits else None


def _on_cpu(sides: Drawn) -> bool:
    return all(side.on_cpu for _, side, _ in sides)


def _thinned(sides: Drawn) -> Drawn:
    """The sides with the longest bars of each kind, as many as leave the page small enough. What is left out is counted
    in `left_out`."""
    most = max((len(bars.labels) for *_, each in sides for bars in bars_of(each)), default=0)
    thin = sides
    while most > FEWEST_BARS and not _fits(thin, MOST_BYTES):
        most = most * 2 // 3
        thin = tuple((letter, side, with_longest_bars(each, most)) for letter, side, each in sides)
    return thin


def _fits(sides: Drawn, room: int) -> bool:
    timelines = [timeline for *_, timeline in sides]
    # Packing what cannot fit takes a while.
    if not _may_fit(sum(len(bars.labels) for each in timelines for bars in bars_of(each)), room):
        return False
    if sum(json_bytes(named(each)) for each in timelines) > MOST_NAME_BYTES:
        return False
    whole = b"".join(packed(each, {}) for each in timelines)
    return len(whole) < room or len(gzip.compress(whole)) <= room


def _may_fit(bars: int, room: int) -> bool:
    return bars * LEAST_BYTES_A_BAR <= room


def _lit_within_room(numbers: list[dict[int, int]], groups: list[Any]) -> tuple[list[dict[int, int]], list[Any], int]:
    """What lights up together: for each side the number of the group at each place of its sequence, and of each group
    its name, its place in the model, how many of each side's activities are in it, and how often the same few recur
    (0: nothing lights up). The first of the groups, as many as leave the page small enough, and how many that light up
    are left out."""
    room = MOST_GROUP_BYTES
    for kept, group in enumerate(groups):
        room -= json_bytes(group) + 1
        if room < 0:
            left = [{at: number for at, number in each.items() if number < kept} for each in numbers]
            return left, groups[:kept], sum(map(bool, groups[kept:]))
    return numbers, groups, 0


def _drawn(
    light: Drawn, numbers: list[dict[int, int]], groups: list[Any], notes: list[str], *, linked: bool
) -> Timelines:
    """`linked` are sides whose kernel groups light up; of others kernels of one name do."""
    numbers, groups, dark = _lit_within_room(numbers, groups)
    left = f"{counted(dark, 'group')} with smaller changes" if linked else counted(dark, "name")
    notes = [*notes, f"{left} are not highlighted, to limit the page size."] if dark else notes
    rich, on_cpu = _with_operators(light), _on_cpu(light)
    what, a_what = ("operator", "an operator") if on_cpu else ("kernel", "a kernel")
    words = {**FAMILY_WORDS, "op_dispatch": "operators"} if on_cpu else FAMILY_WORDS
    # The full trace first: its gaps have causes.
    drawn = (rich, light) if rich else (light,)
    labels = {
        each.labels[at] for sides in drawn for _, _, each in sides for bars in bars_of(each) for at in bars.labels
    }
    kinds = {family_kind(label.kind, label.name) for label in labels}
    letters = [letter for letter, _, _ in light]
    above = f"{' above '.join(letters)} on one axis of time. " if len(light) > 1 else ""
    return Timelines(
        data={
            "recordings": [_recording(sides, numbers, with_operators=sides is rich) for sides in drawn],
            "groups": groups,
            "linked": linked,
            "what": what,
            "between": "between" if on_cpu else "idle",
            "words": {kind: words.get(kind) or cause_words(kind) for kind in sorted(kinds)},
            "textures": {kind: texture(kind) for kind in sorted(kinds)},
        },
        families={kind: words for kind, words in FAMILY_WORDS.items() if kind in kinds},
        causes={kind: words.get(kind) or cause_words(kind) for kind in IDLE_CAUSES if kind in kinds},
        intro=f"{above}{COLOURED_ON_CPU if on_cpu else COLOURED}"
        f" {(GROUPS_LIGHT_UP if linked else NAMES_LIGHT_UP).format(what=what, a_what=a_what)}",
        title=f"Timelines of {' and '.join(letters)}" if len(light) > 1 else "Timeline",
        stepped=f" of {letters[-1]}" if len(light) > 1 else "",
        recordings=tuple(
            (
                _unattributed(sides, UNKNOWN if sides is rich else ALIKE + DIVIDED),
                *_notes(sides, with_operators=sides is rich),
            )
            for sides in drawn
        ),
        notes=tuple(notes),
        what=what,
        **({"keys": KEYS_ON_CPU} if on_cpu else {}),
    )


def _recording(sides: Drawn, numbers: list[dict[int, int]], *, with_operators: bool) -> dict[str, Any]:
    told = []
    for letter, side, timeline in sides:
        kind = "thread" if side.on_cpu else "stream"
        lanes = [f"{kind} {stream}" if stream is not None else "GPU" for stream in timeline.streams]
        if len(lanes) > MOST_LANES:
            lanes = [*lanes[: MOST_LANES - 1], f"{len(lanes) - MOST_LANES + 1} more {kind}s"]
        name = f"{letter}{': ' if letter else ''}{clipped(printable(side.label), 40)}"
        # Without steps it is the whole recording that is drawn, which no call is. `369.4 ms with profiler (295.8 ms
        # without)`.
        is_call = side.wall_us is not None and timeline.step is not None
        without = f" ({duration(side.wall_us)} without)" if is_call else ""
        recorded = "profiler and operators" if with_operators else "profiler"
        fields = {
            "letter": letter,
            "name": name,
            "title": f"{name}, {duration(timeline.length_us)} with {recorded}{without}",
            "length": round(timeline.length_us, 2),
            "lanes": lanes,
            "labels": named(timeline),
            "counts": [len(bars.labels) for bars in bars_of(timeline)],
            "holes": gaps_are_holes(timeline),
        }
        told.append(fields)
    whole = b"".join(packed(timeline, of) for (_, _, timeline), of in zip(sides, numbers, strict=True))
    return {"sides": told, "packed": base64.b64encode(gzip.compress(whole, mtime=0)).decode()}


def _unattributed(sides: Drawn, why: str) -> str:
    """What is meant by gaps without a cause, and how much of the idle time drawn they take; empty where there are
    none. `why` there are such where a rich recording knows more."""
    shares = []
    for letter, side, timeline in sides:
        gaps = timeline.gaps
        each = zip(gaps.durations_us, gaps.labels, strict=True)
        if grey_us := sum(us for us, label in each if timeline.labels[label].kind == "unattributed"):
            whose = f"{letter}'s" if letter else "the"
            shares.append(f"{percent(grey_us / sum(gaps.durations_us), 0)} of {whose} idle time")
            why = why if side.rich else UNKNOWN
    return UNATTRIBUTED.format(shares=", ".join(shares), why=why) if shares else ""


def _notes(sides: Drawn, *, with_operators: bool) -> list[str]:
    spans: dict[str, list[str]] = {}
    several = False
    for letter, side, timeline in sides:
        # Which of its form's recordings the side was read from is not known of a bare trace.
        name, recordings = PurePath(side.path).name, side.form.recordings if side.form else ()
        kind = (
            "rich" if with_operators else next((one.kind for one in recordings if PurePath(one.path).name == name), "")
        )
        steps = (side.rich if with_operators and side.rich else side.analysis).window.steps
        several = several or steps > 1
        of_all = f" of {steps:,}" if steps > 1 else ""
        what = "whole" if timeline.step is None else f"step {timeline.step}{of_all}"
        trace = "trace" if side.on_cpu else TRACES.get(kind, "trace")
        spans.setdefault(f"{trace}, {what}", []).append(letter)
    words = "; ".join(f"{', '.join(of)}: {span}" if len(spans) > 1 else span for span, of in spans.items())
    each_own = ", each side from its own start" if len(sides) > 1 else ""
    notes = [f"{words[:1].upper()}{words[1:]}{each_own}."]
    notes += [MEDIAN_STEP] if several else []
    notes += [LENGTHENED] if with_operators else []
    recorded = sum(len(side.rich_timeline.host.labels) for _, side, _ in sides if with_operators and side.rich_timeline)
    bars = sum(len(timeline.host.labels) for *_, timeline in sides)
    left_out = sum(bars.left_out for *_, timeline in sides for bars in bars_of(timeline))
    if bars < recorded:
        notes.append(TOGETHER.format(events=recorded, bars=bars))
    if left_out or bars >= recorded:
        notes.append(f"{left_out:,} events, the shortest, are not drawn." if left_out else "No event is left out.")
    more = max(timeline.other_devices for *_, timeline in sides)
    return [*notes, f"Only the first GPU is drawn, not the other {more}."] if more else notes
