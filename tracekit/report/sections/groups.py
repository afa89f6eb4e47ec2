"""Which kernels of the two sides do the same work, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from tracekit.model.comparison import Comparison, Coverage, GroupMember, KernelGroup
from tracekit.model.rates import Rates
from tracekit.names import clipped, clipped_within, printable, short_kernel_name
from tracekit.numbers import MISSING, count, duration, duration_change, percent, size
from tracekit.report.document import Column, Name, Table
from tracekit.report.places import clipped_before, distinct_places
from tracekit.report.sections.kernels import kernel_name
from tracekit.report.words.common import INEXACT, became, kinds_told, legend, shared_scope, ways_told
from tracekit.report.words.groups import evidence_sentences, label_words

#: Smaller shares of GPU time are not told.
LEAST_SHARE = 0.0005
#: Modules and lines named of one group.
MOST_PLACES = 4
#: Sentences of evidence of one group, and characters of each.
MOST_EVIDENCE = 8
LONGEST_EVIDENCE = 500

#: What is said of operators that are not the recording's own.
BORROWED = {
    "rich": "took its operators from the rich recording of the same form",
    "lent": "took its operators from the trace that was given for it",
    "none": "knows no operators: its kernels are told by their names",
}


def group_table(comparison: Comparison, limit: int = 12) -> Table | None:
    """The groups with the largest change, the rest in one line; None for a CPU run."""
    if not comparison.groups:
        return None
    shown, rest = comparison.groups[:limit], comparison.groups[limit:]
    places = distinct_places(comparison.groups)
    rows = [_row(group, place) for group, place in zip(shown, places, strict=False)]
    if rest:
        rows.append(_rest(rest))
    texts = (Column(each, numeric=False) for each in ("Kernels", "Where", "What became of them", "Told by"))
    return Table(
        caption=f"Kernel groups, {shared_scope(comparison)}",
        columns=(*texts, *map(Column, ("count A", "count B", "time A", "time B", "Change"))),
        rows=tuple(rows),
        note=f"{group_note(comparison)} {_legend(comparison.groups)}",
    )


def _legend(groups: Iterable[KernelGroup]) -> str:
    groups = tuple(groups)
    kinds, ways = legend(kinds_told(groups)), legend(ways_told(groups))
    return f"What became of them: {kinds}. Told by: {ways}."


def group_note(comparison: Comparison) -> str:
    """That the groups are a partition, how they were told, and how much of each side's time was matched."""
    note = f"Every kernel and copy of both sides is in exactly one group. {_told_by(comparison)}"
    inexact = any(not group.exact for group in comparison.groups if group.kind != "unmatched")
    note += f" {INEXACT}: linked by elimination or by names alone, not kernel by kernel." if inexact else ""
    return f"{note} {_covered(comparison.coverage)}" if comparison.coverage else note


def _covered(coverage: Coverage) -> str:
    """How much of the GPU time was matched, how much of it by elimination, and how much is known to stand alone."""
    matched = f"Matched: {percent(coverage.a_time_matched)} of A's GPU time, {percent(coverage.b_time_matched)} of B's"
    shares = (
        (f"{INEXACT}", coverage.a_time_inexact, coverage.b_time_inexact),
        ("gone or new", coverage.a_time_alone, coverage.b_time_alone),
    )
    more = (f"{what} {percent(a)} and {percent(b)}" for what, a, b in shares if max(a, b) >= LEAST_SHARE)
    return "; ".join((matched, *more)) + "."


def _told_by(comparison: Comparison) -> str:
    ways = {group.how for group in comparison.groups}
    if "names" in ways:
        return "Groups are told by names and order, or by family only, which can pair equal kernels wrongly."
    lent = {
        side.label: BORROWED[side.sequence.operators]
        for side in (comparison.a, comparison.b)
        if side.sequence and side.sequence.operators in BORROWED
    }
    borrowed = "".join(f" {label} {words}." for label, words in lent.items())
    exactly = (
        "Groups are told by provenance: what Inductor and the eager form were asked, while they ran, of where each"
        " kernel came from."
    )
    if ways == {"provenance"}:
        return f"xN: the same few kernels N times. {exactly}"
    if "provenance" in ways:
        return f"xN: the same few kernels N times. {exactly} Alignment of operators and shapes took the rest."
    return (
        "xN: the same few kernels N times. Library calls with the same shapes tie the sides together, and between them "
        f"operators and the names of Triton kernels.{borrowed}"
    )


def evidence_table(comparison: Comparison, limit: int = 12) -> Table | None:
    """What shows that library kernels were exchanged, largest change first; None where none were."""
    told = [group for group in comparison.groups if group.evidence][:limit]
    if not told:
        return None
    return Table(
        caption="Library kernels that were exchanged, and what shows it",
        columns=(
            Column("Kernels", numeric=False),
            Column("What became of them", numeric=False),
            Column("Evidence", numeric=False),
            Column("Change"),
        ),
        rows=tuple(
            (group_label(group), became(group), " ".join(told_evidence(group)), duration_change(group.delta_us))
            for group in told
        ),
    )


def told_evidence(group: KernelGroup) -> tuple[str, ...]:
    """The first of the sentences, so that a row stays readable."""
    return tuple(
        clipped(printable(each), LONGEST_EVIDENCE) for each in evidence_sentences(group.evidence[:MOST_EVIDENCE])
    )


def origin_table(comparison: Comparison, limit: int = 12) -> Table | None:
    """Where the groups with the largest change come from in the model; None where nothing of that is known."""
    known = (group for group in comparison.groups if group.kind != "unchanged" and (group.where or group.traffic))
    told = tuple(islice(known, limit))
    if not told:
        return None
    texts = (Column("Kernels", numeric=False), Column("Modules and lines", numeric=False))
    columns = map(Column, ("Traffic A", "Traffic B", "Traffic removed", "Bandwidth B"))
    return Table(
        caption=f"Where they come from, and the memory they move (estimate), {shared_scope(comparison)}",
        columns=(*texts, *columns),
        rows=tuple(_origin(group) for group in told),
        note=(
            "Traffic and bandwidth are estimates: each operator call reads its inputs once and writes its results "
            "once, by the sizes that were recorded or that torch noted. Bandwidth is that of B's longest call, in "
            "brackets its share of the device's published peak. * stands for the number of each block. "
            f"{MISSING} means: not known for all of it."
        ),
    )


def _origin(group: KernelGroup) -> tuple[str, ...]:
    traffic = group.traffic
    a = traffic.eager_bytes if traffic and not traffic.eager_missing else None
    b = traffic.compiled_bytes if traffic and not traffic.compiled_missing else None
    return (
        group_label(group),
        ", ".join(clipped_within(printable(place), 60) for place in group.where[:MOST_PLACES]) or MISSING,
        size(a),
        size(b),
        size(a - b) if a is not None and b is not None else MISSING,
        bandwidth(group.rates) if group.b else MISSING,
    )


def bandwidth(rates: Rates | None) -> str:
    """`3,146 GB/s (65.5 %)`, the share of the device's peak."""
    if rates is None or rates.gb_per_s is None:
        return MISSING
    share = f" ({percent(rates.bandwidth_share)})" if rates.bandwidth_share is not None else ""
    return f"{rates.gb_per_s:,.0f} GB/s{share}"


def _row(group: KernelGroup, place: str) -> tuple[str | Name, ...]:
    return (
        kernel_name(label_words(group.label)) if group.kind == "unchanged" else group_label(group),
        clipped_before(place, 60) or MISSING,
        became(group),
        group.how,
        count(_count(group.a)),
        count(_count(group.b)),
        duration(_time(group.a)),
        duration(_time(group.b)),
        duration_change(group.delta_us),
    )


def group_label(group: KernelGroup) -> str:
    """An unchanged group is called by its kernel's name; the others have labels made of words."""
    label = label_words(group.label)
    return short_kernel_name(label) if group.kind == "unchanged" else clipped(printable(label), 64)


def _rest(rest: tuple[KernelGroup, ...]) -> tuple[str, ...]:
    a = [member for group in rest for member in group.a]
    b = [member for group in rest for member in group.b]
    return (
        f"{len(rest):,} more groups",
        "",
        ", ".join(sorted({group.kind for group in rest})),
        ", ".join(sorted({group.how for group in rest})),
        count(_count(a)),
        count(_count(b)),
        duration(_time(a)),
        duration(_time(b)),
        duration_change(sum(group.delta_us for group in rest)),
    )


def _count(members: list[GroupMember] | tuple[GroupMember, ...]) -> float:
    return sum(member.count for member in members)


def _time(members: list[GroupMember] | tuple[GroupMember, ...]) -> float:
    return sum(member.total_us for member in members)
