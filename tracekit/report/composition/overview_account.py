"""Where a call's time goes in a comparison: GPU kernels by module, idle time by cause, and what became slower."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from tracekit.model.analysis import NOT_THE_HOST
from tracekit.model.comparison import Comparison, Side
from tracekit.model.idle_estimate import NOTHING, Between, changes_between, sum_between
from tracekit.names import clipped_within
from tracekit.numbers import MISSING, duration, figure_change, scale_of, times
from tracekit.report.document import Account, AccountRow, Table, columns
from tracekit.report.sections.idle import UNEXPLAINED, idle_causes
from tracekit.report.sections.kernels import times_by_family
from tracekit.report.sections.modules import MOST as MOST_PARTS
from tracekit.report.sections.modules import main_child, main_parts, main_work, part_words
from tracekit.report.sides import both_sides
from tracekit.report.words import common as words
from tracekit.report.words import short
from tracekit.wings import load, over_ranks

#: Families of kernels and causes of idle time that find room, the row of all other causes among them; beside ranks
#: fewer parts and causes.
MOST_FAMILIES, MOST_CAUSES = 3, 4
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
#: GPU kernels as a whole; all but communication, and what of that had the GPU to itself.
KERNELS, COMPUTE, EXPOSED = "GPU kernels", "GPU compute", "Exposed communication"
#: A cause of idle time has this share of B's idle time, or of the largest one's change.
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

WINDOWS = {"steps": "call", "span": "span", "whole": "recording"}


def call_account(comparison: Comparison) -> Account | None:
    """GPU kernels by module, exposed communication, idle time by cause. The parts add up to the call, and their changes
    to its change."""
    a, b, waterfall = comparison.a, comparison.b, comparison.waterfall
    if waterfall is None or a.busy_us is None or b.busy_us is None:
        return None
    a_idle, b_idle = a.idle_us(waterfall.basis), b.idle_us(waterfall.basis)
    parts = [*(_modules(comparison) or _families(comparison))]
    # What is in no part, copies among it, and less what ran at once.
    compute = (a.compute_us or 0.0, b.compute_us or 0.0)
    rest = [us - math.fsum(row.us[at] or 0.0 for row in parts if row.level == 1) for at, us in enumerate(compute)]
    communicates = a.analysis.communication or b.analysis.communication
    waits = [*_communication(comparison)]
    by = (" by module" if comparison.modules and main_parts(comparison) else " by family") if parts else ""
    whole = f"{COMPUTE if communicates else KERNELS}{by}"
    # By how much two traces of one side differ: changes below that are none.
    differs = [side.busy_differs_us or 0.0 for side in (a, b)]
    noise_us = _noise_us(comparison)
    half_us = (*differs, noise_us) if noise_us else ()
    rows = [AccountRow(whole, 0, compute, compute[1] - compute[0], half_us=half_us, within_us=noise_us or None), *parts]
    if parts:
        # Kernels that run beside each other take less together than each by itself.
        rows.append(account_row(REST if min(rest) >= 0 else LESS_THAN_NONE, rest[0], rest[1]))
    if communicates:
        exposed = (a.exposed_us, b.exposed_us)
        rows += [AccountRow(EXPOSED, 0, exposed, exposed[1] - exposed[0], unjudged=not waits), *waits]
    if a_idle is not None and b_idle is not None:
        # What the causes leave of the idle time.
        lefts = [side.idle_residual_us or 0.0 if waterfall.basis == "unprofiled" else 0.0 for side in (a, b)]
        causes = [*_causes(comparison, b_idle, [max(-left, 0.0) for left in lefts])]
        # No recording is of the unprofiled call.
        by = f" by cause{' (est.)' if waterfall.basis == 'unprofiled' else ''}" if causes else ""
        rows += [AccountRow(f"GPU idle{by}", 0, (a_idle, b_idle), b_idle - a_idle), *causes]
        if causes:
            lefts = [idle - math.fsum(row.us[at] or 0.0 for row in causes) for at, idle in enumerate((a_idle, b_idle))]
        # What is rounding has no sign.
        one, other = (us if abs(us) >= ROUNDING else 0.0 for us in lefts)
        if max(abs(one), abs(other)) >= LEAST_RESIDUAL * waterfall.a_us:
            what = EXCEEDED if min(one, other) < 0 else "" if a.idle_estimate else IN_NO_TRACE
            half_us = _half_us(*(side.idle_ranges() or {} for side in (a, b)))
            rows.append(replace(account_row(UNEXPLAINED, one, other, what, half_us=half_us), unjudged=True))
        ends = (waterfall.a_us, waterfall.b_us)
        # What the trace holds more than the call can.
        over = [end - gpu - idle for end, gpu, idle in zip(ends, (a.busy_us, b.busy_us), (a_idle, b_idle), strict=True)]
        if max(map(abs, over)) >= LEAST_RESIDUAL * waterfall.a_us:
            rows.append(AccountRow(BEYOND, 0, (over[0], over[1]), over[1] - over[0], BEYOND_WHAT))
    profiled = "" if waterfall.basis == "unprofiled" else ", with profiler"
    window = WINDOWS[a.analysis.window.kind]
    # A job's call is its slowest rank's, round by round; what fills it is told of one rank.
    whose = f"The job's {window} on rank {comparison.job.slowest}" if comparison.job else f"Where a {window} goes"
    title = f"{whose}{profiled}"
    return Account(title, (a.label, b.label), tuple(rows))


def _communication(comparison: Comparison) -> Iterable[AccountRow]:
    """What exposed communication consists of, where other ranks' recordings tell."""
    known = over_ranks()
    if comparison.job is None or known is None:
        return ()
    rows: Iterable[AccountRow] = load(known.account)(comparison)
    return rows


def account_row(
    name: str,
    a_us: float,
    b_us: float,
    what: str = "",
    *,
    half_us: tuple[float, ...] = (),
    within_us: float | None = None,
) -> AccountRow:
    return AccountRow(name, 1, (a_us, b_us), b_us - a_us, what, half_us=half_us, within_us=within_us)


def _modules(comparison: Comparison) -> tuple[AccountRow, ...]:
    rows = []
    for number, part in enumerate(main_parts(comparison, MOST_PARTS_OF_RANKS if comparison.job else MOST_PARTS)):
        # Of what no one submodule does alone: `layers.*, across parts`.
        name = f"{part.path}, across parts" if part.path and part.what else part.path or part.what
        rows.append(account_row(name, part.a_us, part.b_us, part_words(part, comparison.groups)))
        if not number and (child := main_child(part)) is not None:
            # Within the row above it.
            row = account_row(f"of which {child.path}", child.a_us, child.b_us, main_work(child, comparison.groups))
            rows.append(replace(row, level=2))
    return tuple(rows)


def _families(comparison: Comparison) -> tuple[AccountRow, ...]:
    """The families of kernels with the largest changes, where no module is known."""
    times = {family: (a, b) for family, ((_, a), (_, b)) in times_by_family(both_sides(comparison)).items()}
    times.pop("communication", None)
    largest = sorted(times.items(), key=lambda item: -abs(item[1][1] - item[1][0]))[:MOST_FAMILIES]
    return tuple(account_row(family, *us) for family, us in largest)


def _causes(comparison: Comparison, b_idle: float, excess_us: Sequence[float]) -> Iterator[AccountRow]:
    """The causes that changed most or still make most of B's idle time, the most telling first, then all others: those
    of the host whose change may be none, and the rest. One whose change may be none is among these, unless it is the
    largest of a side for certain. `excess_us` is what all causes of each side are more than its idle time."""
    profiled = comparison.waterfall is None or comparison.waterfall.basis == "trace"
    sides = (comparison.a, comparison.b)
    a, b = (idle_causes(side, profiled=profiled) for side in sides)
    changes = changes_between(a, b)
    us = {cause: (a.get(cause, NOTHING).us, b.get(cause, NOTHING).us) for cause in changes}
    weights = {cause: max(abs(changes[cause].us), after) for cause, (_, after) in us.items()}
    ranked = sorted((cause for cause in us if any(us[cause])), key=lambda cause: -weights[cause])
    if not ranked:
        return
    largest = {
        side.idle_estimate.largest(side.idle_residual_us) for side in sides if side.idle_estimate and not profiled
    }
    change = max(abs(each.us) for each in changes.values())
    worth = [
        cause
        for cause in ranked
        if (changes[cause].has_sign or cause in largest)
        and (us[cause][1] >= LEAST_CAUSE * b_idle or abs(changes[cause].us) >= LEAST_CAUSE * change)
    ]
    little = LEAST_REST * max(sum_between(a.values()).us, b_idle)

    def is_little(causes: Iterable[str]) -> bool:
        return max(math.fsum(us[cause][at] for cause in causes) for at in (0, 1)) < little

    most = MOST_CAUSES_OF_RANKS if comparison.job else MOST_CAUSES
    for number in range(min(most, len(worth)), -1, -1):
        told = worth[:number]
        others = [cause for cause in ranked if cause not in told]
        with_last = others if told and is_little(others) else []
        unclear = [cause for cause in others if not changes[cause].has_sign and cause not in NOT_THE_HOST]
        rest = [cause for cause in others if cause not in unclear]
        if is_little(unclear) or is_little(rest):
            unclear, rest = ([], others) if is_little(unclear) else (others, [])
        rows = [(name, causes) for name, causes in ((NOT_TOLD_APART, unclear), (OTHER, rest)) if causes]
        if with_last or number + len(rows) <= most:
            break
    for cause in told:
        more = [cause, *with_last] if cause == told[-1] else [cause]
        name, became_slower = words.cause_words(cause), changes[cause].us > 0 and changes[cause].has_sign
        what = short.python_place(comparison) if cause == "python" else ""
        what = what or (short.slower_cause(cause, comparison) if became_slower else "")
        yield _cause_row(f"{name} and other" if len(more) > 1 else name, more, a, b, what)
    if not with_last:
        for name, causes in rows:
            yield _cause_row(name, causes, a, b, excess_us=excess_us if name == NOT_TOLD_APART else (0.0, 0.0))


def _cause_row(
    name: str,
    causes: Collection[str],
    a: dict[str, Between],
    b: dict[str, Between],
    what: str = "",
    excess_us: Sequence[float] = (0.0, 0.0),
) -> AccountRow:
    """A row of these causes together, less what all causes are too much, as far as their lows allow: it is as uncertain
    as it was before, and by so much more."""
    of_a, of_b = ({cause: of.get(cause, NOTHING) for cause in causes} for of in (a, b))
    sums = [sum_between(each.values()) for each in (of_a, of_b)]
    less = [min(over, each.us - each.low_us) for over, each in zip(excess_us, sums, strict=True)]
    before, after = (each.us - us for each, us in zip(sums, less, strict=True))
    within = sum_between(changes_between(of_a, of_b).values()).half_us + math.fsum(less)
    *halves, half = _half_us(of_a, of_b)
    half_us = (*(each + us for each, us in zip(halves, less, strict=True)), half + math.fsum(less))
    return account_row(name, before, after, what, half_us=half_us, within_us=within or None)


def _half_us(a: dict[str, Between], b: dict[str, Between]) -> tuple[float, ...]:
    """A sum is as certain as its least certain part: that it is no more so than all are together, ± says."""
    parts = (a.values(), b.values(), changes_between(a, b).values())
    return tuple(max((each.half_us for each in some), default=0.0) for some in parts)


def operator_table(comparison: Comparison) -> Table | None:
    """Where a call's time goes, of two CPU runs; None of all else. Recorded steps are longer than calls: where both
    sides are timed and read by steps, each side's times are scaled to its unprofiled call. The rows add up to it."""
    a, b = comparison.a, comparison.b
    if a.analysis.cpu is None or b.analysis.cpu is None:
        return None
    kind, uses = a.analysis.window.kind, (a.analysis.cpu, b.analysis.cpu)
    ratios = (a.recorded_ratio, b.recorded_ratio)
    scaled = all(ratios) and kind == b.analysis.window.kind == "steps"
    per_call = [side.steps * ((scaled and ratio) or 1) for side, ratio in zip((a, b), ratios, strict=True)]
    wholes = [side.analysis.window.span_us / each for side, each in zip((a, b), per_call, strict=True)]
    operators, wrapper = (
        [getattr(use, field) / each for use, each in zip(uses, per_call, strict=True)]
        for field in ("operator_us", "compiled_wrapper_us")
    )
    own = [{op.name: op.self_us / each for op in use.top} for use, each in zip(uses, per_call, strict=True)]
    largest = sorted({*own[0], *own[1]}, key=lambda name: -max(each.get(name, 0.0) for each in own))[:MOST_OPERATORS]
    others = [us - sum(each.get(name, 0.0) for name in largest) for us, each in zip(operators, own, strict=True)]
    outside = [whole - us - more for whole, us, more in zip(wholes, operators, wrapper, strict=True)]
    unit, scale, decimals = scale_of(max(wholes))

    def row(name: str, before: float | None, after: float | None) -> tuple[str, ...]:
        told = (MISSING if us is None else f"{us / scale:,.{decimals}f}" for us in (before, after))
        return (name, *told, figure_change(((after or 0.0) - (before or 0.0)) / scale, decimals))

    rows = [row(WINDOWS[kind], *wholes), row("operators", *operators)]
    shown = {name: f"  {clipped_within(name, OPERATOR)}" for name in largest}
    rows += [row(name, *(each.get(operator) for each in own)) for operator, name in shown.items()]
    rows += [row("  other operators", *others)] if max(others) >= ROUNDING else []
    # C++ kernels that record no events are in it.
    wrapped = "compiled wrapper" if all(use.fused_us is not None for use in uses) else "compiled wrapper, C++ kernels"
    rows += [row(wrapped, *wrapper)] if any(wrapper) else []
    # Operators of several threads can take longer than the call.
    rows.append(row("outside operators" if min(outside) >= 0 else "outside operators, less overlap", *outside))
    longer = f"{times(a.recorded_ratio)} as long in {a.label}, {times(b.recorded_ratio)} in {b.label}"
    note = f"Scaled to the unprofiled call: profiled steps are {longer}." if scaled else "With profiler."
    if scaled and any(not 1 / UNEVEN < (ratio or 1) < DISTORTED for ratio in ratios):
        note += " So far from calls they may be other work or another machine state: rows are rough."
    note += "".join(f" {told}" for told in map(_uneven_steps, (a, b)) if told)
    heads = columns(f"Operators, {words.shared_scope(comparison)}, {unit}", figures=(a.label, b.label, "change"))
    return Table("", heads, tuple(rows), note)


def _uneven_steps(side: Side) -> str:
    """That recorded steps differ so far that means over them say little; empty where they do not."""
    walls = [step.wall_us for step in side.analysis.steps]
    if len(walls) < 2 or max(walls) < UNEVEN * min(walls):
        return ""
    return f"Steps of {side.label} took {duration(min(walls))} to {duration(max(walls))}: rows are means over them."


def slower_words(comparison: Comparison, account: Account | None) -> str:
    """What became slower within rows that did not, and why; that nothing did; empty where the rows say all."""
    waterfall = comparison.waterfall
    if waterfall is None or account is None:
        return ""
    unit, scale, decimals = scale_of(max(waterfall.a_us, waterfall.b_us))
    unchanged = math.fsum(group.delta_us for group in comparison.groups if group.kind == "unchanged")
    if unchanged >= LEAST_SLOWER * waterfall.b_us:
        change = f"unchanged kernels {figure_change(unchanged / scale, decimals)} {unit}"
        noise_us = _noise_us(comparison)
        if unchanged <= noise_us:
            return f"Not significant: {change} (trace noise {noise_us / scale:,.{decimals}f} {unit})"
        return f"Slower, included above: {change} ({short.slower_kernels(comparison)})"
    slower = any((row.delta_us or 0.0) >= LEAST_SLOWER * waterfall.b_us for row in account.rows)
    return "" if slower else "Nothing became slower."


def _noise_us(comparison: Comparison) -> float:
    return max(side.busy_differs_us or 0.0 for side in (comparison.a, comparison.b))
