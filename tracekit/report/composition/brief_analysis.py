"""One recording in thirty lines: where its time goes, by family of kernels and cause of idle time, and what to try."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from tracekit.model.comparison import Side
from tracekit.model.single_run import NothingCompiled, SingleRun
from tracekit.names import clipped, clipped_within, printable, short_kernel_name
from tracekit.numbers import count, duration, percent
from tracekit.report.composition.brief import BLANK, WIDTH, advice_lines, last_lines, more, scale_of
from tracekit.report.document import Column, Line, Summary, Table
from tracekit.report.words import common as words
from tracekit.report.words import not_compiled as why
from tracekit.report.words import short
from tracekit.report.words.health import health_sentence

#: Families of kernels, causes of idle time, notes and kernels that find room.
MOST_FAMILIES, MOST_CAUSES, MOST_NOTES, MOST_KERNELS = 4, 3, 3, 6
#: Reasons beside the first why nothing was compiled, and what to change.
MOST_REASONS, MOST_REMEDIES = 2, 6
#: Characters beside kernels' names.
BESIDE_NAMES = 24


def verdict_lines(single: SingleRun) -> tuple[Line, ...]:
    told = Line(f"  {_headline(single.side)}", "bold")
    if single.nothing_compiled is None:
        return (told,)
    return Line(f"  {why.HEADLINE}", "bold yellow"), Line(f"  eager: {told.text.strip()}")


def reason_lines(nothing: NothingCompiled, width: int = WIDTH) -> Iterator[Line]:
    """Why nothing was compiled, the user's own line, and what to change."""
    for first in nothing.reasons[:1]:
        yield Line(why.title(first), "bold")
        yield Line(f"  {clipped(why.torch_words(first), width - 2)}")
        yield Line(f"  {clipped_within(why.place(first), width - 2)}", unbroken=True)
        source = why.code_lines(nothing.source, width - 4) if nothing.source else filter(None, (first.line,))
        yield from (Line(f"    {clipped(printable(each), width - 4)}", "cyan") for each in source)
    more = nothing.reasons[1:]
    for each in more[:MOST_REASONS]:
        yield Line(f"  also {clipped_within(f'{why.place(each)}: {why.what(each)}', width - 7)}")
    if len(more) > MOST_REASONS:
        yield Line(f"  and {len(more) - MOST_REASONS} more")
    if not nothing.reasons:
        yield Line(f"{why.UNTOLD[:1].upper()}{why.UNTOLD[1:]}", "bold")
    yield BLANK
    yield Line("What to change", "bold")
    for number, remedy in enumerate(nothing.remedies[:MOST_REMEDIES], 1):
        yield Line(f"  {number}  {why.remedy_words(remedy)}")


def analysis_brief(
    single: SingleRun, page: str | None, commands: Sequence[str] = (), top: int | None = None, width: int = WIDTH
) -> Summary:
    """At most thirty lines at 100 columns. `page` is where the page lies, if one was written, `commands` are worth
    typing next, `top` is how many kernels are listed: more lines for more than `MOST_KERNELS`."""
    side, nothing = single.side, single.nothing_compiled
    found = [clipped_within(printable(health_sentence(each)), WIDTH - 4) for each in side.health]
    notes = [*short.headline_notes(single.notes), *found]
    advice = tuple(advice_lines(single.findings, side))
    hidden = len(notes) + len(single.findings) - min(len(notes), MOST_NOTES) - len(advice)
    if nothing is not None:
        return (
            Line(clipped_within(words.subject(side), WIDTH), "dim"),
            BLANK,
            *verdict_lines(single),
            *(Line(note, "", "  ! ", "yellow") for note in notes[:MOST_NOTES]),
            BLANK,
            *reason_lines(nothing, width),
            BLANK,
            *last_lines(*([f"Report {page}"] if page else []), *commands, more(len(notes[MOST_NOTES:])), width=width),
        )
    kernels: list[Line | Table] = [*_kernels(side, top or MOST_KERNELS, width - BESIDE_NAMES)]
    return (
        Line(f"{clipped_within(printable(PurePath(side.path).name), 40)} · {words.subject(side)}", "dim"),
        BLANK,
        *verdict_lines(single),
        *(Line(note, "", "  ! ", "yellow") for note in notes[:MOST_NOTES]),
        BLANK,
        *_account(side),
        *([Line(f"Bottleneck: {short.bottleneck(side, single.bound)}")] if single.bound else []),
        *((BLANK, *kernels) if kernels else ()),
        *((BLANK, Line("Try next", "bold"), *advice) if advice else ()),
        BLANK,
        *last_lines(*([f"Report {page}"] if page else []), *commands, more(hidden), width=width),
    )


def _headline(side: Side) -> str:
    """`3.39 ms per call    GPU idle 76 %    200 kernels, 200 launches`."""
    told = [f"{duration(side.wall_us)} per call"] if side.wall_us is not None else []
    if side.idle_share is not None:
        told.append(f"GPU idle {percent(side.idle_share, 0)}")
    elif side.recorded_idle_share is not None:
        told.append(
            f"GPU busy {percent(1 - side.recorded_idle_share, 0)} as recorded; the profiler lengthens idle time"
        )
    if side.kernels_per_step is not None:
        launches = f", {count(side.launches_per_step)} launches" if side.launches_per_step is not None else ""
        told.append(f"{count(side.kernels_per_step)} kernels{launches}")
    return "    ".join(told) or "no GPU activity was recorded"


def _account(side: Side) -> Iterator[Table]:
    """GPU time by family of kernels, idle time by cause."""
    kernels, basis = side.analysis.kernels, "trace" if side.unprofiled_idle_us is None else "unprofiled"
    if side.busy_us is None or kernels is None:
        return
    idle = side.unprofiled_idle_us if basis == "unprofiled" else side.recorded_idle_us
    causes = (side.calibrated_idle_by_cause() if basis == "unprofiled" else None) or side.idle_by_cause()
    whole = side.busy_us + (idle or 0.0)
    unit, scale, decimals = scale_of(whole)
    families = sorted(kernels.by_family, key=lambda each: -each.total_us)
    rows: list[tuple[str, float]] = [("  GPU kernels", side.busy_us)]
    rows += [(f"    {each.family}", each.total_us / side.steps) for each in families[:MOST_FAMILIES]]
    rows += [("  GPU idle", idle)] if idle is not None else []
    by_time = sorted(causes.items(), key=lambda item: -item[1])
    rows += [(f"    {short.CAUSES.get(cause, cause)}", us) for cause, us in by_time[:MOST_CAUSES] if us]
    what = {"steps": "call", "span": "span", "whole": "recording"}[side.analysis.window.kind]
    recorded = "" if basis == "unprofiled" else " as recorded,"
    columns = (Column(f"Where a {what} goes,{recorded} {unit}", numeric=False), Column(""), Column("share"))
    shown = ((name, f"{us / scale:,.{decimals}f}", percent(us / whole, 0) if whole else "") for name, us in rows)
    yield Table("", columns, tuple(shown))


def _kernels(side: Side, top: int, room: int) -> Iterator[Table]:
    kernels = side.analysis.kernels
    if kernels is None or not kernels.by_name:
        return
    rows = tuple(
        (
            clipped_within(short_kernel_name(each.name, 2 * room), room),
            count(each.count / side.steps),
            duration(each.total_us / side.steps),
        )
        for each in kernels.by_name[:top]
    )
    columns = (
        Column(f"Largest of {kernels.unique:,} kernels, {words.scope(side)}", numeric=False),
        Column("count"),
        Column("time"),
    )
    yield Table("", columns, rows)
