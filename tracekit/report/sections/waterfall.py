"""Where the time went, part by part."""

from __future__ import annotations

from collections import Counter

from tracekit.model.comparison import Comparison, WaterfallPart
from tracekit.report.names import short_kernel_name
from tracekit.report.numbers import duration, duration_change
from tracekit.report.places import distinct_places
from tracekit.report.table import Column, Table
from tracekit.report.words import cause_words, shared_scope


def part_label(part: WaterfallPart, limit: int = 64) -> str:
    if (part.kind, part.label) == ("idle", "recording"):
        return "idle that only recording added, taken back"
    return f"idle: {cause_words(part.label)}" if part.kind == "idle" else f"GPU: {short_kernel_name(part.label, limit)}"


def part_labels(comparison: Comparison, limit: int = 64) -> tuple[str, ...]:
    """The label of each part; what several groups are called alike is followed by the module."""
    parts = comparison.waterfall.parts if comparison.waterfall else ()
    labels = [part_label(part, limit) for part in parts]
    repeated = Counter(labels)
    return tuple(
        f"{label}, {place}" if repeated[label] > 1 and (place := _place(part, comparison)) else label
        for part, label in zip(parts, labels, strict=True)
    )


def _place(part: WaterfallPart, comparison: Comparison) -> str:
    """Of the group that the part was made from."""
    for group, place in zip(comparison.groups, distinct_places(comparison.groups), strict=True):
        if (group.label, group.delta_us) == (part.label, part.delta_us):
            return place
    return ""


def waterfall_table(comparison: Comparison) -> Table | None:
    """From A's time to B's; None when the sides have no waterfall."""
    waterfall = comparison.waterfall
    if waterfall is None:
        return None
    ends = "unprofiled wall time" if waterfall.basis == "unprofiled" else "recorded window"
    level, rows = waterfall.a_us, [(f"A: {comparison.a.label}, {ends}", "", duration(waterfall.a_us))]
    for part, label in zip(waterfall.parts, part_labels(comparison), strict=True):
        level += part.delta_us
        rows.append((label, duration_change(part.delta_us), duration(level)))
    rows.append(("residual, not explained", duration_change(waterfall.residual_us), duration(waterfall.b_us)))
    rows.append((f"B: {comparison.b.label}, {ends}", "", duration(waterfall.b_us)))
    return Table(
        caption=f"From A to B, {shared_scope(comparison)}",
        columns=(Column("Part", numeric=False), Column("Change"), Column("Time so far")),
        rows=tuple(rows),
        note=waterfall_note(comparison),
    )


def waterfall_note(comparison: Comparison) -> str:
    """That it closes, and what the residual comes from where that is known."""
    closes = "The changes add up: A, every part and the residual make B."
    waterfall = comparison.waterfall
    if waterfall is None or waterfall.basis == "trace":
        return closes
    sides = [
        (f"{letter}'s", side.lengthened_idle_us)
        for letter, side in zip("AB", (comparison.a, comparison.b), strict=True)
    ]
    added = [f"{duration(us)} to {whose} idle time" for whose, us in sides if us is not None and us >= 0]
    lacking = [f"{duration(-us)} of {whose} idle time" for whose, us in sides if us is not None and us < 0]
    told = [f"{closes} Idle parts are as recorded."]
    if added:
        told.append(f"Recording added {' and '.join(added)}, to which causes is not known: one part takes it back.")
    back = next((part.delta_us for part in waterfall.parts if part.label == "recording"), 0.0)
    if abs(back) > abs(waterfall.b_us - waterfall.a_us) / 2:
        told.append("It is more than half of the whole change: single idle parts may be of another sign without it.")
    if lacking:
        told.append(f"Recordings do not show {' and '.join(lacking)}: that is in the residual.")
    return " ".join(told)
