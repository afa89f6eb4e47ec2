"""What one recording says: where its time goes, by family of kernels and cause of idle time, and what to try."""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath

from tracekit.model.comparison import Bound, Side
from tracekit.model.idle_estimate import Between
from tracekit.model.single_run import NothingCompiled, Remedy, SingleRun
from tracekit.names import clipped, clipped_within
from tracekit.numbers import count, counted, duration, percent
from tracekit.report.composition.overview import MOST_NOTES, advice_of, hidden
from tracekit.report.composition.overview_account import (
    COMPUTE,
    EXPOSED,
    KERNELS,
    LESS_THAN_NONE,
    OTHER,
    REST,
    WINDOWS,
)
from tracekit.report.document import Account, AccountRow, Advice, Line, Overview, Table, columns, filled_table
from tracekit.report.sections.idle import UNEXPLAINED, idle_causes
from tracekit.report.sections.kernels import kernel_name, times_by_family
from tracekit.report.sides import with_letters
from tracekit.report.words import common as words
from tracekit.report.words import not_compiled, short

#: Families of kernels, causes of idle time and kernels that find room.
MOST_FAMILIES, MOST_CAUSES, MOST_KERNELS = 4, 3, 6
#: Reasons beside the first why nothing was compiled, and what may mend it.
MOST_REASONS, MOST_REMEDIES = 2, 5
#: What is left of a whole is shown from this share of it on.
LEAST_REST = 0.0005
#: Characters of a kernel's name where there is much room, of a note, and of the file's name.
NAME, NOTE, FILE = 160, 96, 40


def side_overview(single: SingleRun, top: int = MOST_KERNELS) -> Overview:
    """`top` is how many kernels are listed."""
    side, nothing = single.side, single.nothing_compiled
    headline, *figures = _answer(side)
    found = [clipped_within(each.long(), NOTE) for each in side.health]
    notes = (*short.headline_notes(single.notes), *found)
    if nothing is not None:
        return Overview(
            subject=words.subject(side),
            headline=not_compiled.HEADLINE,
            result=("", "inconclusive"),
            evidence=f"eager: {' · '.join((headline, *figures))}",
            notes=notes[:MOST_NOTES],
            why=tuple(_why(nothing)),
            advice=tuple(map(_remedy, nothing.remedies[:MOST_REMEDIES])),
            hidden=max(len(single.notes) + len(found) + len(single.findings) - min(len(notes), MOST_NOTES), 0),
        )
    advice = tuple(advice_of(single.findings, side, side.bound))
    return Overview(
        subject=f"{clipped_within(PurePath(side.path).name, FILE)} · {words.subject(side)}",
        headline=headline,
        walls=" · ".join(figures),
        notes=notes[:MOST_NOTES],
        account=_account(side),
        bottleneck=_bottleneck(side, side.bound) if side.bound else "",
        graph_breaks=short.costly_breaks(single.findings),
        tables=tuple(filter(None, (_kernels(side, top), _operators(side, top)))),
        advice=advice,
        hidden=hidden((*single.notes, *found), single.findings, notes, advice),
    )


def _why(nothing: NothingCompiled) -> Iterator[Line]:
    """The first reason why nothing was compiled with the user's own line, and where others are."""
    for first in nothing.reasons[:1]:
        yield Line(not_compiled.title(first), "bold")
        yield Line(f"  {clipped(not_compiled.torch_words(first), NOTE)}")
        yield Line(f"  {clipped_within(not_compiled.place(first), NOTE)}")
        code = not_compiled.code_lines(nothing.source) if nothing.source else filter(None, (first.line,))
        yield from (Line(f"    {clipped(line, NOTE - 2)}", "cyan") for line in code)
    more = nothing.reasons[1:]
    for each in more[:MOST_REASONS]:
        yield Line(f"  also {clipped_within(f'{not_compiled.place(each)}: {not_compiled.what(each)}', NOTE - 5)}")
    if len(more) > MOST_REASONS:
        yield Line(f"  and {len(more) - MOST_REASONS} more")
    if not nothing.reasons:
        yield Line(not_compiled.UNTOLD, "bold")


def _remedy(remedy: Remedy) -> Advice:
    words = not_compiled.advice_words(remedy)
    return Advice(remedy.option or words, words if remedy.option else "", "", False, remedy.command or "")


def _answer(side: Side) -> list[str]:
    """`3.39 ms per call`, `GPU idle 76 %`, `200 kernels, 200 launches`."""
    told = [f"{duration(side.wall_us)} per call"] if side.wall_us is not None else []
    if side.idle_share is not None:
        told.append(f"GPU idle {percent(side.idle_share, 0)}")
    elif side.recorded_idle_share is not None:
        told.append(f"GPU idle {percent(side.recorded_idle_share, 0)} with profiler, less without")
    if side.kernels_per_step is not None:
        exposed = ""
        if side.analysis.communication and side.span_us:
            exposed = f"exposed communication {percent(side.exposed_us / side.span_us, 0)}, "
        launches = f", {count(side.launches_per_step)} launches" if side.launches_per_step is not None else ""
        told.append(f"{exposed}{count(side.kernels_per_step)} kernels{launches}")
    if side.analysis.cpu is not None:
        operators = counted(round(side.analysis.cpu.operator_count / side.steps), "operator")
        told.append(f"{operators}, {duration(side.analysis.cpu.operator_us / side.steps)} {words.scope(side)}")
    return told or ["no GPU activity was recorded"]


def _account(side: Side) -> Account | None:
    """GPU time by family of kernels, exposed communication, idle time by cause."""
    profiled = side.unprofiled_idle_us is None
    if side.compute_us is None or side.analysis.kernels is None:
        return None
    communicates = side.analysis.communication is not None
    idle = side.recorded_idle_us if profiled else side.unprofiled_idle_us
    times = times_by_family(with_letters(side))
    families = ((family, us) for family, ((_, us),) in times.items() if family != "communication")
    whole = COMPUTE if communicates else KERNELS
    rows = [AccountRow(whole, 0, (side.compute_us,)), *_families(families, side.compute_us)]
    if communicates:
        rows.append(AccountRow(f"{EXPOSED}, waiting included", 0, (side.exposed_us,)))
    if idle is not None:
        rows += [AccountRow("GPU idle", 0, (idle,)), *_causes(idle_causes(side, profiled=profiled), idle)]
    title = f"Where a {WINDOWS[side.analysis.window.kind]} goes{', with profiler' if profiled else ''}"
    return Account(title, (side.label,), tuple(rows))


def _bottleneck(side: Side, bound: Bound) -> str:
    what, why = short.bottleneck(side, bound)
    told = why if what == short.UNKNOWN else f"{what}: {why}"
    return f"{told[:1].upper()}{told[1:]}"


def _families(families: Iterable[tuple[str, float]], whole_us: float) -> Iterator[AccountRow]:
    """The largest families, and what is left of all GPU time."""
    shown = [family for family in sorted(families, key=lambda each: -each[1])[:MOST_FAMILIES] if family[1]]
    yield from (AccountRow(name, 1, (us,)) for name, us in shown)
    left = whole_us - math.fsum(us for _, us in shown)
    if abs(left) >= LEAST_REST * whole_us:
        # Kernels that run beside each other take less together than each by itself.
        yield AccountRow(REST if left >= 0 else LESS_THAN_NONE, 1, (left,))


def _causes(causes: Mapping[str, Between], whole_us: float) -> Iterator[AccountRow]:
    """The largest causes, all others, and what they leave of idle time."""
    ranked = sorted(causes, key=lambda cause: -causes[cause].us)
    shown = {words.cause_words(cause): causes[cause] for cause in ranked[:MOST_CAUSES] if causes[cause].us}
    rest = [causes[cause] for cause in ranked[MOST_CAUSES:]]
    rows = [AccountRow(name, 1, (each.us,), half_us=(each.half_us,)) for name, each in shown.items()]
    unexplained_us = whole_us - math.fsum(each.us for each in causes.values())
    for name, us, parts in (
        (OTHER, math.fsum(each.us for each in rest), rest),
        (UNEXPLAINED, unexplained_us, causes.values()),
    ):
        if abs(us) >= LEAST_REST * whole_us:
            # As certain as its least certain part.
            rows.append(AccountRow(name, 1, (us,), half_us=(max((each.half_us for each in parts), default=0.0),)))
    yield from rows


def _kernels(side: Side, top: int) -> Table | None:
    """The kernels with the largest total time; None of a CPU run."""
    kernels = side.analysis.kernels
    if kernels is None:
        return None
    rows = (
        (kernel_name(each.name, NAME), words.family_words(each), count(each.count / side.steps), duration(us))
        for each in kernels.by_name[:top]
        for us in [each.total_us / side.steps]
    )
    heads = columns(f"Largest of {kernels.unique:,} kernels, {words.scope(side)}", "family", figures=("count", "time"))
    return filled_table("", heads, rows)


def _operators(side: Side, top: int) -> Table | None:
    """The operators with the most time of their own; None of a GPU run."""
    if (cpu := side.analysis.cpu) is None:
        return None
    rows = (
        (clipped(each.name, NAME), count(each.count / side.steps), duration(each.self_us / side.steps))
        for each in cpu.top[:top]
    )
    return filled_table("", columns(f"Operators, {words.scope(side)}", figures=("count", "self time")), rows)
