"""Where the time went, part by part."""

from __future__ import annotations

from collections import Counter

from tracekit.model.comparison import Comparison, Side, WaterfallPart
from tracekit.model.groups import Label
from tracekit.names import short_kernel_name
from tracekit.numbers import duration, duration_change, percent
from tracekit.report.document import Column, Table
from tracekit.report.sections.groups import distinct_places
from tracekit.report.words.common import cause_words, shared_scope
from tracekit.report.words.groups import label_words

#: What the two ends go by.
Names = tuple[str, str]
LETTERS: Names = ("A", "B")


def part_label(part: WaterfallPart, limit: int = 64) -> str:
    words = label_words(part.label)
    return f"idle: {cause_words(words)}" if part.kind == "idle" else f"GPU: {short_kernel_name(words, limit)}"


def part_labels(comparison: Comparison, limit: int = 64) -> tuple[str, ...]:
    """The label of each part; what several groups are called alike is followed by the module."""
    parts = comparison.waterfall.parts if comparison.waterfall else ()
    labels = [part_label(part, limit) for part in parts]
    repeated = Counter(labels)
    if not any(number > 1 for number in repeated.values()):
        return tuple(labels)
    # The place of the group that a part was made from, by the part's label and change.
    places: dict[tuple[Label, float], str] = {}
    for group, place in zip(comparison.groups, distinct_places(comparison.groups), strict=True):
        places.setdefault((group.label, group.delta_us), place)
    return tuple(
        f"{label}, {place}" if repeated[label] > 1 and (place := places.get((part.label, part.delta_us), "")) else label
        for part, label in zip(parts, labels, strict=True)
    )


def waterfall_table(comparison: Comparison, names: Names = LETTERS) -> Table | None:
    """From A's time to B's, which go by these names; None when the sides have no waterfall."""
    waterfall = comparison.waterfall
    if waterfall is None:
        return None
    calibrated = waterfall.basis == "unprofiled"
    ends = "unprofiled wall time" if calibrated else "recorded window"
    level, rows = waterfall.a_us, [(f"{_end(names[0], comparison.a)}, {ends}", "", duration(waterfall.a_us), "")]
    for part, label in zip(waterfall.parts, part_labels(comparison), strict=True):
        level += part.delta_us
        recorded = part.recorded_delta_us
        shown = duration_change(recorded) if recorded is not None else ""
        rows.append((label, duration_change(part.delta_us), duration(level), shown))
    rows.append(("residual, not explained", duration_change(waterfall.residual_us), duration(waterfall.b_us), ""))
    rows.append((f"{_end(names[1], comparison.b)}, {ends}", "", duration(waterfall.b_us), ""))
    columns = (Column("Part", numeric=False), Column("Change"), Column("Time so far"), Column("As recorded"))
    kept = len(columns) if calibrated else len(columns) - 1
    return Table(
        caption=f"From {names[0]} to {names[1]}, {shared_scope(comparison, names)}",
        columns=columns[:kept],
        rows=tuple(row[:kept] for row in rows),
        note=waterfall_note(comparison, names),
    )


def _end(name: str, side: Side) -> str:
    return name if name == side.label else f"{name}: {side.label}"


def waterfall_note(comparison: Comparison, names: Names = LETTERS) -> str:
    """That it closes, what became of the time that recording added, and what the residual holds where that is known."""
    closes = f"The changes add up: {names[0]}, every part and the residual make {names[1]}."
    waterfall = comparison.waterfall
    if waterfall is None or waterfall.basis == "trace":
        return closes
    sides = [
        (f"{letter}'s", side.lengthened_idle_us)
        for letter, side in zip(names, (comparison.a, comparison.b), strict=True)
    ]
    added = [f"{duration(us)} to {whose} idle time" for whose, us in sides if us is not None and us > 0]
    lacking = [f"{duration(-us)} of {whose} idle time" for whose, us in sides if us is not None and us < 0]
    # Idle time is the rest of the call, and can be trusted as far as GPU time.
    differs = [
        f"{duration(us)} ({percent(us / side.busy_us)}) of {letter}'s"
        for letter, side in zip(names, (comparison.a, comparison.b), strict=True)
        if (us := side.busy_differs_us) is not None and side.busy_us
    ]
    told = [closes]
    if differs:
        told.append(
            f"Two recordings differ by {' and '.join(differs)} GPU time: so much of the GPU parts may be noise."
        )
    if comparison.verdict.basis == "processes":
        told.append("It is of the run's own process, the one that was recorded, and not of all that were timed.")
    if added:
        told.append(
            f"Recording added {' and '.join(added)}. Idle parts are without it, under the assumption that recording"
            " lengthened all the host's causes alike and the GPU's own not."
        )
    if lacking:
        told.append(f"Recordings do not show {' and '.join(lacking)}: that is in the residual.")
    return " ".join(told)
