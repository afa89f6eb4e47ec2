"""Where a call's time goes: GPU kernels by module, idle time by cause, and what became slower."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence

from tracekit.model.analysis import NOT_THE_HOST
from tracekit.model.comparison import Comparison, Side
from tracekit.model.idle_estimate import NOTHING, Between, changes_between, sum_between
from tracekit.model.waterfall import Basis
from tracekit.names import clipped_within
from tracekit.numbers import duration, figure_change, in_unit, percent, scale_of, times
from tracekit.report.document import Account, AccountRow, Table, columns
from tracekit.report.sections.figures import basis_of
from tracekit.report.sections.idle import UNEXPLAINED, idle_causes
from tracekit.report.sections.kernels import times_by_family
from tracekit.report.sections.modules import MOST as MOST_PARTS
from tracekit.report.sections.modules import OwnWork, main_child, main_parts, main_work, part_words
from tracekit.report.words import common as words
from tracekit.report.words import short
from tracekit.report.words.common import Sides, both_sides
from tracekit.wings import load, over_ranks

#: Families of kernels and causes of idle time that find room, the row of all other causes among them; beside ranks
#: fewer parts and causes.
MOST_FAMILIES, MOST_CAUSES = 4, 4
MOST_PARTS_OF_RANKS, MOST_CAUSES_OF_RANKS = 2, 3
#: Operators of a CPU run that find room, and characters of their names.
MOST_OPERATORS, OPERATOR = 6, 40
REST, OTHER = "all other GPU work", "other causes"
#: Causes of which nobody can say whether they became more or less.
NOT_TOLD_APART = "other host work, not told apart"
LESS_THAN_NONE = "other, less overlap"
#: What idle time without a cause is, and where causes make more than there is.
IN_NO_TRACE, EXCEEDED = "in no trace", "causes exceed it"
#: GPU time that the call had no room for: it moves from recording to recording.
BEYOND, BEYOND_WHAT = "Traced beyond the call", "GPU time varies by recording"
TOTAL = "Total"
#: GPU kernels as a whole; all but communication, and what of that had the GPU to itself.
KERNELS, COMPUTE, EXPOSED = "GPU kernels", "GPU compute", "Exposed communication"
#: A cause of idle time has this share of the last side's idle time, or of the largest one's change.
LEAST_CAUSE = 0.05
#: Other causes that make less than this share of the idle time stand with the last one.
LEAST_REST = 0.02
#: What is not attributed is shown from this share of A's call on, and what became slower from this one of B's.
LEAST_RESIDUAL, LEAST_SLOWER = 0.001, 0.005
#: Microseconds.
ROUNDING = 1e-6
#: From so many times the shortest recorded step on the longest moves means: chosen.
UNEVEN = 1.5
#: Profiled steps that take so many times as long as calls tell little of them: chosen.
DISTORTED = 3.0
#: Idle time by cause.
Causes = dict[str, Between]
WINDOWS = {"steps": "call", "span": "span", "whole": "recording"}


def call_account(sides: Sides, comparison: Comparison | None = None) -> Account | None:
    """GPU kernels by module or family, exposed communication, idle time by cause. The parts add up to the call, and
    changes of two sides that are compared to its change."""
    waterfall, every = comparison.waterfall if comparison else None, [side for _, side in sides]
    if (comparison and waterfall is None) or any(side.compute_us is None for side in every):
        return None
    basis = waterfall.basis if waterfall else basis_of(every)
    idle = [side.idle_us(basis) for side in every]
    calls = [(side.wall_us if basis == "unprofiled" else side.span_us) or 0.0 for side in every]
    rows = [*_work(sides, comparison)]
    if None not in idle:
        whole_us = tuple(us or 0.0 for us in idle)
        rows += _idle(every, comparison, basis, whole_us, LEAST_RESIDUAL * calls[0])
        # What the trace holds more than the call can.
        over = tuple(call - (side.busy_us or 0.0) - us for call, side, us in zip(calls, every, whole_us, strict=True))
        if max(map(abs, over)) >= LEAST_RESIDUAL * calls[0]:
            rows.append(AccountRow(BEYOND, over, BEYOND_WHAT, level=0))
        if basis == "trace":
            # No headline has it.
            rows.append(AccountRow(TOTAL, tuple(calls), level=0, sums=True))
    window, job = WINDOWS[every[0].analysis.window.kind], comparison.job if comparison else None
    # A job's call is its slowest rank's, round by round; what fills it is told of one rank.
    whose = f"The job's {window} on rank {job.slowest}" if job else f"Where a {window} goes"
    profiled = "" if basis == "unprofiled" else ", with profiler"
    return Account(f"{whose}{profiled}", tuple(side.label for side in every), tuple(rows))


def _work(sides: Sides, comparison: Comparison | None) -> Iterator[AccountRow]:
    """What the GPU did: kernels and copies, and communication that had it to itself."""
    compute = tuple(side.compute_us or 0.0 for _, side in sides)
    modules = _modules(comparison) if comparison else []
    parts = modules
    if not modules:
        # The families of kernels with the largest changes, of one side with most time.
        times = {family: tuple(us for _, us in each) for family, each in times_by_family(sides).items()}
        times.pop("communication", None)
        change = {family: us[-1] - (us[0] if len(us) > 1 else 0.0) for family, us in times.items()}
        largest = sorted(times, key=lambda family: -abs(change[family]))
        parts = [AccountRow(family, times[family]) for family in largest[:MOST_FAMILIES]]
    # What is in no part, copies among it, and less what ran at once.
    rest = tuple(us - math.fsum(row.us[at] for row in parts if row.level == 1) for at, us in enumerate(compute))
    communicates = any(side.analysis.communication for _, side in sides)
    by = (" by module" if modules else " by family") if parts else ""
    # By how much two traces of one side differ: changes below that are none.
    noise_us = _noise_us(sides) if comparison else 0.0
    half_us = (*(side.busy_differs_us or 0.0 for _, side in sides), noise_us) if noise_us else ()
    name = f"{COMPUTE if communicates else KERNELS}{by}"
    yield AccountRow(name, compute, level=0, half_us=half_us, within_us=noise_us or None)
    yield from parts
    if parts and max(map(abs, rest)) >= ROUNDING:
        # Kernels that run beside each other take less together than each by itself.
        yield AccountRow(REST if min(rest) >= 0 else LESS_THAN_NONE, rest)
    if communicates:
        known = over_ranks()
        waits = [*load(known.account)(comparison)] if known and comparison and comparison.job else []
        exposed = tuple(side.exposed_us for _, side in sides)
        yield AccountRow(EXPOSED, exposed, level=0, unjudged=not waits and comparison is not None)
        yield from waits


def _modules(comparison: Comparison) -> list[AccountRow]:
    rows = []
    for number, (name, part) in enumerate(
        main_parts(comparison, MOST_PARTS_OF_RANKS if comparison.job else MOST_PARTS)
    ):
        if isinstance(part, OwnWork):
            # Of what no one submodule does alone: `layers.*, across parts`.
            name = f"{name}, across parts" if name else part.what
        rows.append(AccountRow(name, (part.a_us, part.b_us), part_words(part, comparison.groups)))
        if not number and (child := main_child(part)) is not None:
            # Within the row above it.
            what, within = main_work(child, comparison.groups), child.path.removeprefix(f"{part.path}.")
            rows.append(AccountRow(f"of which {within}", (child.a_us, child.b_us), what, level=2))
    return rows


def _idle(
    sides: Sequence[Side], comparison: Comparison | None, basis: Basis, idle: tuple[float, ...], least_us: float
) -> Iterator[AccountRow]:
    """Idle time, its causes, and from `least_us` on what these leave of it."""
    profiled = basis == "trace"
    lefts = tuple(0.0 if profiled else side.idle_residual_us or 0.0 for side in sides)
    rows = [*_causes(sides, comparison, profiled, idle[-1], [max(-left, 0.0) for left in lefts])]
    # No recording is of the unprofiled call.
    by = f" by cause{'' if profiled else ' (est.)'}" if rows else ""
    yield AccountRow(f"GPU idle{by}", idle, level=0)
    yield from rows
    if rows:
        lefts = tuple(us - math.fsum(row.us[at] for row in rows) for at, us in enumerate(idle))
    # What is rounding has no sign.
    lefts = tuple(us if abs(us) >= ROUNDING else 0.0 for us in lefts)
    if max(map(abs, lefts)) >= least_us:
        what = EXCEEDED if min(lefts) < 0 else "" if sides[0].idle_estimate else IN_NO_TRACE
        half_us = _half_us([side.idle_ranges() or {} for side in sides])
        yield AccountRow(UNEXPLAINED, lefts, what, unjudged=True, half_us=half_us)


def _causes(
    sides: Sequence[Side], comparison: Comparison | None, profiled: bool, idle_us: float, excess_us: Sequence[float]
) -> Iterator[AccountRow]:
    """The causes that changed most or still make most of the last side's idle time, the most telling first, then all
    others: those of the host whose change may be none, and the rest. One whose change may be none is among these,
    unless it is the largest of a side for certain. `excess_us` is what all causes of each side are more than its idle
    time."""
    causes = [idle_causes(side, profiled=profiled) for side in sides]
    changes = _changes(causes)
    us = {cause: [of.get(cause, NOTHING).us for of in causes] for cause in changes}
    weights = {cause: max(abs(changes[cause].us), each[-1]) for cause, each in us.items()}
    ranked = sorted((cause for cause in us if any(us[cause])), key=lambda cause: -weights[cause])
    if not ranked:
        return
    estimates = ((side.idle_estimate, side.idle_residual_us) for side in sides if not profiled)
    largest = {estimate.largest(residual_us) for estimate, residual_us in estimates if estimate}
    least, change = LEAST_CAUSE * idle_us, max(abs(each.us) for each in changes.values())
    worth = [
        cause
        for cause in ranked
        if (changes[cause].has_sign or cause in largest)
        and (us[cause][-1] >= least or abs(changes[cause].us) >= LEAST_CAUSE * change > 0)
    ]
    little = LEAST_REST * max(sum_between(causes[0].values()).us, idle_us)

    def is_little(some: Iterable[str]) -> bool:
        return max(math.fsum(us[cause][at] for cause in some) for at in range(len(sides))) < little

    most = MOST_CAUSES_OF_RANKS if comparison and comparison.job else MOST_CAUSES
    for number in range(min(most, len(worth)), -1, -1):
        told = worth[:number]
        others = [cause for cause in ranked if cause not in told]
        with_last = others if told and is_little(others) else []
        unclear = [cause for cause in others if not changes[cause].has_sign and cause not in NOT_THE_HOST]
        rest = [cause for cause in others if cause not in unclear]
        if is_little(unclear) or is_little(rest):
            unclear, rest = ([], others) if is_little(unclear) else (others, [])
        rows = [(name, some) for name, some in ((NOT_TOLD_APART, unclear), (OTHER, rest)) if some]
        if with_last or number + len(rows) <= most:
            break
    for cause in told:
        more = [cause, *with_last] if cause == told[-1] else [cause]
        what = ""
        if comparison:
            what = short.python_place(comparison) if cause == "python" else ""
            became_slower = changes[cause].us > 0 and changes[cause].has_sign
            what = what or (short.slower_cause(cause, comparison) if became_slower else "")
        name = words.cause_words(cause)
        yield _cause_row(f"{name} and other" if len(more) > 1 else name, more, causes, what)
    if not with_last:
        for name, some in rows:
            yield _cause_row(name, some, causes, excess_us=excess_us if name == NOT_TOLD_APART else ())


def _changes(causes: Sequence[Causes]) -> Causes:
    """Of each cause of two sides; of one side alone none changes."""
    return changes_between(*causes) if len(causes) == 2 else dict.fromkeys(causes[0], NOTHING)


def _cause_row(
    name: str, some: Collection[str], causes: Sequence[Causes], what: str = "", excess_us: Sequence[float] = ()
) -> AccountRow:
    """A row of these causes together, less what all causes are too much, as far as their lows allow: it is as uncertain
    as it was before, and by so much more."""
    those = [{cause: of.get(cause, NOTHING) for cause in some} for of in causes]
    sums = [sum_between(each.values()) for each in those]
    less = [min(over, each.us - each.low_us) for over, each in zip(excess_us or [0.0] * len(sums), sums, strict=True)]
    less_us = math.fsum(less)
    half_us = tuple(half + us for half, us in zip(_half_us(those), (*less, less_us), strict=False))
    within_us = sum_between(_changes(those).values()).half_us + less_us
    left = tuple(each.us - us for each, us in zip(sums, less, strict=True))
    return AccountRow(name, left, what, half_us=half_us, within_us=within_us or None)


def _half_us(causes: Sequence[Causes]) -> tuple[float, ...]:
    """A sum is as certain as its least certain part: that it is no more so than all are together, ± says."""
    changes = [_changes(causes)] if len(causes) == 2 else []
    return tuple(max((each.half_us for each in of.values()), default=0.0) for of in (*causes, *changes))


def time_words(sides: Sides) -> str:
    """`GPU kernels 0.736 → 0.855 ms, GPU idle 4.057 → 3.239 ms`, of CPU runs the share of operators; empty where the
    sides are not alike, or nothing is known."""
    every = [side for _, side in sides]
    if uses := [(side.analysis.cpu, side.analysis.window.span_us) for side in every if side.analysis.cpu]:
        shares = " → ".join(percent(use.operator_us / span_us, 0) for use, span_us in uses if span_us)
        return f"operators {shares} of the time, with profiler"
    basis = basis_of(every)
    parts: dict[str, list[float | None]] = {
        KERNELS: [side.compute_us for side in every],
        EXPOSED: [side.exposed_us for side in every],
        "GPU idle": [side.idle_us(basis) for side in every],
    }
    known = {name: [us for us in some if us is not None] for name, some in parts.items() if None not in some}
    unit, scale, decimals = scale_of(max((us for some in known.values() for us in some), default=0.0))
    told = ", ".join(
        f"{name} {' → '.join(f'{us / scale:,.{decimals}f}' for us in some)} {unit}"
        for name, some in known.items()
        if any(some)
    )
    return told + (f" {words.scope_of(sides)}, with profiler" if told and basis == "trace" else "")


def operator_table(sides: Sides, most: int = MOST_OPERATORS) -> Table | None:
    """Where a call's time goes on a CPU; None of all else. Recorded steps are longer than calls: where all sides are
    timed and read by steps, each side's times are scaled to its unprofiled call. The rows add up to it."""
    every = [side for _, side in sides]
    uses, kind = [side.analysis.cpu for side in every if side.analysis.cpu], every[0].analysis.window.kind
    if len(uses) < len(every):
        return None
    ratios = [side.recorded_ratio for side in every]
    scaled = all(ratios) and all(side.analysis.window.kind == "steps" for side in every)
    per_call = [side.steps * ((scaled and ratio) or 1) for side, ratio in zip(every, ratios, strict=True)]
    wholes = [side.analysis.window.span_us / each for side, each in zip(every, per_call, strict=True)]
    operators, wrapper = (
        [getattr(use, field) / each for use, each in zip(uses, per_call, strict=True)]
        for field in ("operator_us", "compiled_wrapper_us")
    )
    own = [{op.name: op.self_us / each for op in use.top} for use, each in zip(uses, per_call, strict=True)]
    names = dict.fromkeys(name for each in own for name in each)
    largest = sorted(names, key=lambda name: -max(each.get(name, 0.0) for each in own))[:most]
    others = [us - sum(each.get(name, 0.0) for name in largest) for us, each in zip(operators, own, strict=True)]
    outside = [whole - us - more for whole, us, more in zip(wholes, operators, wrapper, strict=True)]
    unit, scale, decimals = scale_of(max(wholes))

    def row(name: str, times: Sequence[float | None]) -> tuple[str, ...]:
        told = (in_unit(us, scale, decimals) for us in times)
        change = ((times[-1] or 0.0) - (times[0] or 0.0)) / scale
        return (name, *told, *([figure_change(change, decimals)] if len(times) == 2 else []))

    rows = [row(WINDOWS[kind], wholes), row("operators", operators)]
    shown = {name: f"  {clipped_within(name, OPERATOR)}" for name in largest}
    rows += [row(name, [each.get(operator) for each in own]) for operator, name in shown.items()]
    rows += [row("  other operators", others)] if max(others) >= ROUNDING else []
    # C++ kernels that record no events are in it.
    wrapped = "compiled wrapper" if all(use.fused_us is not None for use in uses) else "compiled wrapper, C++ kernels"
    rows += [row(wrapped, wrapper)] if any(wrapper) else []
    # Operators of several threads can take longer than the call.
    rows.append(row("outside operators" if min(outside) >= 0 else "outside operators, less overlap", outside))
    longer = ", ".join(f"{times(ratio)} in {side.label}" for side, ratio in zip(every, ratios, strict=True))
    longer = longer.replace(" in ", " as long in ", 1)
    notes = [f"Scaled to the unprofiled call: profiled steps are {longer}." if scaled else "With profiler."]
    if scaled and any(not 1 / UNEVEN < (ratio or 1) < DISTORTED for ratio in ratios):
        notes.append("So far from calls they may be other work or another machine state: rows are rough.")
    for side in every:
        walls = [step.wall_us for step in side.analysis.steps]
        if len(walls) > 1 and max(walls) >= UNEVEN * min(walls):
            took = f"{duration(min(walls))} to {duration(max(walls))}"
            notes.append(f"Steps of {side.label} took {took}: rows are means over them.")
    heads = (*(side.label for side in every), *(["change"] if len(every) == 2 else []))
    return Table(
        "", columns(f"Operators, {words.scope_of(sides)}, {unit}", figures=heads), tuple(rows), " ".join(notes)
    )


def slower_words(comparison: Comparison, account: Account | None) -> str:
    """What became slower within rows that did not, and why; that nothing did; empty where the rows say all."""
    waterfall = comparison.waterfall
    if waterfall is None or account is None:
        return ""
    unit, scale, decimals = scale_of(max(waterfall.a_us, waterfall.b_us))
    unchanged = math.fsum(group.delta_us for group in comparison.groups if group.kind == "unchanged")
    if unchanged >= LEAST_SLOWER * waterfall.b_us:
        change = f"unchanged kernels {figure_change(unchanged / scale, decimals)} {unit}"
        noise_us = _noise_us(both_sides(comparison))
        if unchanged <= noise_us:
            return f"Not significant: {change} (trace noise {noise_us / scale:,.{decimals}f} {unit})"
        return f"Slower, included above: {change} ({short.slower_kernels(comparison)})"
    slower = any(row.delta_us >= LEAST_SLOWER * waterfall.b_us for row in account.rows)
    return "" if slower else "Nothing became slower."


def _noise_us(sides: Sides) -> float:
    return max(side.busy_differs_us or 0.0 for _, side in sides)
