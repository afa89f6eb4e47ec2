"""What one recording says: where its time goes, by family of kernels and cause of idle time, and what to try."""

from collections.abc import Iterator
from pathlib import PurePath

from tracekit.model.comparison import Side
from tracekit.model.single_run import NothingCompiled, Remedy, SingleRun
from tracekit.names import clipped, clipped_within, printable, short_kernel_name
from tracekit.numbers import count, duration, percent
from tracekit.report.composition.overview import MOST_NOTES, WINDOWS, advice_of, hidden
from tracekit.report.document import Account, AccountRow, Advice, Line, Name, Overview, Table, columns
from tracekit.report.words import common as words
from tracekit.report.words import not_compiled, short
from tracekit.report.words.health import health_sentence

#: Families of kernels, causes of idle time and kernels that find room.
MOST_FAMILIES, MOST_CAUSES, MOST_KERNELS = 4, 3, 6
#: Reasons beside the first why nothing was compiled, and what may mend it.
MOST_REASONS, MOST_REMEDIES = 2, 5
#: Characters of a kernel's name where there is much room, of a note, and of the file's name.
NAME, NOTE, FILE = 160, 96, 40
GAP = "    "


def side_overview(single: SingleRun, top: int = MOST_KERNELS) -> Overview:
    """`top` is how many kernels are listed."""
    side, nothing = single.side, single.nothing_compiled
    headline, _, walls = _headline(side).partition(GAP)
    found = [clipped_within(printable(health_sentence(each)), NOTE) for each in side.health]
    notes = (*short.headline_notes(single.notes), *found)
    if nothing is not None:
        return Overview(
            subject=words.subject(side),
            headline=not_compiled.HEADLINE,
            result=("", "inconclusive"),
            evidence=f"eager: {_headline(side)}",
            notes=notes[:MOST_NOTES],
            why=tuple(_why(nothing)),
            advice=tuple(map(_remedy, nothing.remedies[:MOST_REMEDIES])),
            hidden=max(len(single.notes) + len(found) + len(single.findings) - min(len(notes), MOST_NOTES), 0),
        )
    advice = tuple(advice_of(single.findings, side))
    return Overview(
        subject=f"{clipped_within(printable(PurePath(side.path).name), FILE)} · {words.subject(side)}",
        headline=headline,
        walls=walls,
        notes=notes[:MOST_NOTES],
        account=_account(side),
        bottleneck=f"Bottleneck: {short.bottleneck(side, single.bound)}" if single.bound else "",
        tables=tuple(_kernels(side, top)),
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
        yield from (Line(f"    {clipped(printable(line), NOTE - 2)}", "cyan") for line in code)
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


def _headline(side: Side) -> str:
    """`3.39 ms per call    GPU idle 76 %    200 kernels, 200 launches`."""
    told = [f"{duration(side.wall_us)} per call"] if side.wall_us is not None else []
    if side.idle_share is not None:
        told.append(f"GPU idle {percent(side.idle_share, 0)}")
    elif side.recorded_idle_share is not None:
        told.append(f"GPU idle {percent(side.recorded_idle_share, 0)} with profiler, less without")
    if side.kernels_per_step is not None:
        launches = f", {count(side.launches_per_step)} launches" if side.launches_per_step is not None else ""
        told.append(f"{count(side.kernels_per_step)} kernels{launches}")
    return GAP.join(told) or "no GPU activity was recorded"


def _account(side: Side) -> Account | None:
    """GPU time by family of kernels, idle time by cause."""
    kernels, profiled = side.analysis.kernels, side.unprofiled_idle_us is None
    if side.busy_us is None or kernels is None:
        return None
    idle = side.recorded_idle_us if profiled else side.unprofiled_idle_us
    causes = (None if profiled else side.calibrated_idle_by_cause()) or side.idle_by_cause()
    parts = [part for each in kernels.by_family for part in words.family_parts(each)]
    families = sorted(parts, key=lambda part: -part[-1])[:MOST_FAMILIES]
    rows = [("GPU kernels", 0, side.busy_us), *((family, 1, us / side.steps) for family, _, us in families)]
    if idle is not None:
        largest = sorted(causes.items(), key=lambda item: -item[1])[:MOST_CAUSES]
        rows += [("GPU idle", 0, idle), *((short.CAUSES.get(cause, cause), 1, us) for cause, us in largest if us)]
    title = f"Where a {WINDOWS[side.analysis.window.kind]} goes{', with profiler' if profiled else ''}"
    return Account(title, (side.label,), tuple(AccountRow(name, level, (us,)) for name, level, us in rows))


def _kernels(side: Side, top: int) -> Iterator[Table]:
    kernels = side.analysis.kernels
    if kernels is None or not kernels.by_name:
        return
    rows = tuple(
        (Name(each.name, short_kernel_name(each.name, NAME)), count(each.count / side.steps), duration(us))
        for each in kernels.by_name[:top]
        for us in [each.total_us / side.steps]
    )
    heads = columns(f"Largest of {kernels.unique:,} kernels, {words.scope(side)}", figures=("count", "time"))
    yield Table("", heads, rows)
