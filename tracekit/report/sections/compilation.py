"""What torch.compile did, said, and could not do."""

from collections.abc import Callable, Iterable, Iterator

from tracekit.model.comparison import Side
from tracekit.model.compilation import CompiledRegions
from tracekit.names import clipped
from tracekit.numbers import MISSING, count, counted, duration, percent
from tracekit.report.document import Table, columns, filled_table
from tracekit.report.words.common import Sides, scope, side_name
from tracekit.statements.guards import check_of

PHASES = {
    "dynamo": "Dynamo (tracing)",
    "aot_autograd": "AOTAutograd",
    "inductor": "Inductor (code generation)",
    "triton": "Triton or C++ compilation",
    "autotune": "Autotuning",
    "cuda_graphs": "CUDA graph capture",
}
CACHES = {"aot_autograd": "AOTAutograd cache", "fx_graph": "FX graph cache", "templates": "Template cache"}
WHEN = {"warm-up": "warm-up call", "timed": "timed call", "later": "call after timing"}
#: Graph breaks and recompiles that are listed.
MOST_ROWS = 20
REGIONS_NOTE = "Host times are profiled, so overstated. GPU time counts for compiled code if that launched it."


def compilation_table(sides: Sides) -> Table | None:
    """What was compiled and how much of the step it does; None where no side has compiled code."""
    regions = [REGIONS_NOTE] if any(_regions(side) for _, side in sides) else []
    untold = [f"{each.long()}." for _, side in sides if side.diagnostics for each in side.diagnostics.noted]
    note = " ".join((*regions, *dict.fromkeys(untold)))
    return _beside("Compilation", "Figure", sides, lambda side: (*_run_rows(side), *_region_rows(side)), note)


def phase_table(sides: Sides) -> Table | None:
    """Time of compiling by phase; None where torch told none."""

    def rows(side: Side) -> list[tuple[str, str]]:
        phases = side.diagnostics.phases if side.diagnostics else ()
        return [(PHASES[each.phase], duration(each.seconds * 1e6)) for each in phases]

    note = "From torch, over all compilations; each phase excludes nested ones."
    return _beside("Compile time by phase", "Phase", sides, rows, note)


def _beside(
    caption: str, head: str, sides: Sides, rows_of: Callable[[Side], Iterable[tuple[str, str]]], note: str
) -> Table | None:
    """A column for each side that has rows, under the labels of all."""
    found = {side_name(letter, side): dict(rows_of(side)) for letter, side in sides}
    found = {name: rows for name, rows in found.items() if rows}
    labels = dict.fromkeys(label for rows in found.values() for label in rows)
    rows = ((label, *(each.get(label, MISSING) for each in found.values())) for label in labels)
    return filled_table(caption, columns(head, figures=found), rows, note)


def _run_rows(side: Side) -> Iterator[tuple[str, str]]:
    facts, found = side.form.compilation if side.form else None, side.diagnostics
    if facts is None:
        return
    yield "Graphs compiled", count(facts.graphs)
    yield "Graph breaks, as Dynamo counts", count(facts.graph_breaks)
    if found and found.breaks:
        yield "Lines with graph breaks", count(len(found.breaks))
    yield "Compilations inside timed calls", count(facts.during_timing)
    if found is None:
        return
    yield "Recompiles", count(len(found.recompiles))
    yield "Fallbacks to eager", count(len(found.fallbacks))
    if any(each.kind == "recompile_limit" for each in found.fallbacks):
        yield "Recompile limit", "reached"
    if guards := [frame.guards for frame in found.frames if frame.guards is not None]:
        yield "Guards", count(sum(guards))
    if found.warmed_up_at:
        yield "Warm-up sizes", ", ".join(f"{name} {value}" for name, value in found.warmed_up_at.items())
    for use in found.caches:
        bypassed = f", bypassed {use.bypasses}" if use.bypasses else ""
        yield CACHES[use.cache], f"hits {use.hits}, misses {use.misses}{bypassed}"
    if found.autotuned:
        yield "Autotuning choices timed", count(found.autotuned)
    if found.cuda_graphs_recorded:
        yield "CUDA graphs recorded", count(found.cuda_graphs_recorded)
    if skips := [(each.count, clipped(each.reason or "no reason", 120)) for each in found.cuda_graph_skips]:
        yield "CUDA graphs skipped", "; ".join(f"{number}: {reason}" for number, reason in skips)


def _regions(side: Side) -> tuple[CompiledRegions, int] | None:
    """What the recording shows of compiled code, and over how many steps; None for a side without."""
    entering = side.entering
    if entering is None or entering.regions is None or not entering.regions.count + entering.regions.graphs:
        return None
    return entering.regions, max(entering.window.steps, 1)


def _region_rows(side: Side) -> Iterator[tuple[str, str]]:
    if (shown := _regions(side)) is None:
        return
    (regions, steps), per = shown, scope(side)
    yield f"Compiled regions entered, {per}", count(regions.count / steps)
    yield f"Compiled graphs called, {per}", count(regions.graphs / steps)
    if regions.gpu_share is not None:
        yield "GPU time launched from compiled code", percent(regions.gpu_share)
    if regions.unlinked_us:
        yield "GPU time without a known launch", duration(regions.unlinked_us / steps)
    kernels, launches = side.analysis.kernels, side.analysis.launches
    if kernels and launches and kernels.count:
        share = percent(launches.kernels_in_graphs / kernels.count)
        each = max(side.analysis.window.steps, 1)
        graphed = f"{count(launches.kernels_in_graphs / each)} of {count(kernels.count / each)}"
        yield "Kernels in CUDA graphs", f"{graphed} ({share})"
    yield f"Guards and cache lookup, {per}", duration(regions.guards_us / steps)
    yield f"Entering compiled code, {per}", duration(regions.entry_us / steps)
    outside = sum(region.outside_us for region in regions.regions)
    yield f"In regions, between graphs, {per}", duration(outside / steps)


def break_table(side: Side, letter: str) -> Table | None:
    """Where compiled code ends and goes on; None without a break."""
    breaks = side.diagnostics.breaks if side.diagnostics else ()
    number = side.form.compilation.graph_breaks if side.form and side.form.compilation else None
    dynamo = f"; Dynamo counts {count(number)}, one per function compiled up to such a line"
    on_gpu = any(each.idle_per_step_us is not None for each in breaks)
    rows = tuple(
        (
            each.line or MISSING,
            clipped(each.reason, 160) + (f" ({each.code})" if each.code else ""),
            clipped(each.hint or each.explanation or MISSING, 240),
            duration(each.per_step_us),
            *((duration(each.idle_per_step_us),) if on_gpu else ()),
        )
        for each in breaks[:MOST_ROWS]
    )
    note = (
        f"{len(rows)} of {counted(len(breaks), 'line')}{dynamo if number else ''}. Profiled host time of the region "
        f"outside of graphs, without guards{'; what of it the GPU was not idle in costs nothing' if on_gpu else ''} "
        "(upper estimate)."
    )
    idle = (f"GPU idle {scope(side)}",) if on_gpu else ()
    heads = columns("Line", "Why", "Hint", figures=(f"Host time {scope(side)}", *idle))
    return filled_table(f"Graph breaks of {side_name(letter, side)}", heads, rows, note)


def recompile_table(side: Side, letter: str) -> Table | None:
    """What was compiled again and why; None where nothing was."""
    found = side.diagnostics
    if found is None:
        return None
    walls = {(call.phase, call.call): call.wall_us for call in found.calls}
    rows = []
    for frame in found.recompiles[:MOST_ROWS]:
        older = len(frame.because) - 1
        others = f"; {counted(older, 'older version')} failed too" if older else ""
        what = f"{frame.function or MISSING} ({frame.where or MISSING})"
        failed = clipped(check_of(frame.because[0]).long(), 240) + others
        took = duration(frame.seconds * 1e6 if frame.seconds is not None else None)
        call_took = duration(walls.get((frame.phase, frame.call)))
        rows.append((f"{WHEN[frame.phase]} {frame.call}", what, failed, took, call_took))
    heads = columns("When", "Function", "Failed guard", figures=("Compile time", "Call time"))
    note = f"{len(rows)} of {len(found.recompiles)}."
    return filled_table(f"Recompiles of {side_name(letter, side)}", heads, rows, note)


def fallback_table(side: Side, letter: str) -> Table | None:
    """What runs eager though it was to be compiled; None where nothing does."""
    parts = side.diagnostics.fallbacks if side.diagnostics else ()
    rows = ((part.function or MISSING, part.line or part.where or MISSING, clipped(part.reason, 240)) for part in parts)
    return filled_table(f"Fallbacks to eager in {side_name(letter, side)}", columns("Function", "Line", "Why"), rows)


def compilation_tables(sides: Sides) -> tuple[Table, ...]:
    """All of the section's tables, side by side."""
    makers = (fallback_table, recompile_table, break_table)
    lists = (maker(side, letter) for letter, side in sides for maker in makers)
    return tuple(filter(None, (compilation_table(sides), *lists, phase_table(sides))))
