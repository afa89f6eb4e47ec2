"""What may each figure that a gate limits really be, and what would make that narrower?"""

import math
from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tracekit.comparison.judging import thresholds
from tracekit.comparison.judging.fairness import find_other_work
from tracekit.comparison.judging.processes import process_medians, typical_call_us, waits_for_host
from tracekit.comparison.judging.timed import calls_that_count, compilations_while_timed
from tracekit.comparison.matching.coverage import MOST_UNKNOWN, find_lost_groups
from tracekit.model.comparison import BUSY_MOVES, Comparison, Side, Verdict
from tracekit.model.estimate import Doubt, DoubtCode, Estimate, Reason, SeparateRunsChange, compare_estimates, exactly
from tracekit.model.gate import Metric
from tracekit.statements import reasons
from tracekit.statistics.interval import interval_of_processes, odd_even_noise
from tracekit.wings import load, over_ranks

NOT_MEASURED, NOT_ON_BOTH_SIDES = reasons.NotMeasured(), reasons.NotMeasuredOnBothSides()
NO_JOIN = reasons.RanksNotJoined()
OWN_PROCESSES_TOO_SHORT = reasons.TooFewCallsInOwnProcesses(needed=thresholds.FEWEST_CALLS)


class Measured(Struct, frozen=True):
    """A figure of either side. `given_base` is what the new side's may really be, given the base's; `own` the same
    where nothing is held against the base: both None where nobody knows, and then `unknown` and `own_unknown` say why.
    """

    base: float | None
    new: float | None
    given_base: Estimate | None = None
    own: Estimate | None = None
    unknown: Reason = NOT_ON_BOTH_SIDES
    own_unknown: Reason = NOT_MEASURED


def is_slight(excess_us: float, base_us: float) -> bool:
    """Whether a time is beyond a limit by less than is held against anybody."""
    return excess_us < max(thresholds.SLIGHT_SHARE * base_us, thresholds.SLIGHT_US)


def find_separate_runs_change(a: Side, b: Side, verdict: Verdict) -> SeparateRunsChange | None:
    """The ratio of the sides' calls, as `wall` of a gate is judged. None of sides that were timed together, of other
    work or another GPU, of too few calls, and where calls compiled."""
    if verdict.basis != "apart" or any(find_other_work(a, b)):
        return None
    wall = measure_wall(a, b, verdict)
    if wall.given_base is None or not wall.base or wall.new is None:
        return None
    base, (low, high) = wall.base, wall.given_base.bounds
    ratio = Estimate(wall.new / base, low / base, high / base)
    clear = compare_estimates(ratio, exactly(1.0)) is not None and not is_slight(abs(wall.new - base), base)
    return SeparateRunsChange(ratio.value, ratio.low, ratio.high, wall.given_base.assumptions, clear)


def measure_wall(a: Side, b: Side, verdict: Verdict) -> Measured:
    """What B's call may really take, in microseconds.

    Forms of one process have the verdict's own interval, and are held to its rule: a limit within the noise floor, or
    within the least that is called a change, is not told from the figure. Of sides that were started separately what
    differs from process to process is in it, measured or assumed. What B takes by itself asks nothing of A.
    """
    of_a, of_b = process_medians(a), process_medians(b)
    base = typical_call_us(a, of_a) if of_a else a.wall_us
    new = typical_call_us(b, of_b) if of_b else b.wall_us
    unknown, own_unknown = _why_unknown((a, len(of_a)), (b, len(of_b))), _why_unknown((b, len(of_b)))

    own = given_base = None
    if new is not None and own_unknown is None:
        within = of_b[0] if len(of_b) == 1 else interval_of_processes(of_b)
        own = _interval(new, math.exp(within.low), math.exp(within.high), "calls" if len(of_b) == 1 else "processes")
        if len(of_b) == 1:
            calls = calls_that_count(b)
            own = _of_one_process(own, odd_even_noise(calls) * new if len(calls) >= thresholds.FEWEST_CALLS else 0.0, b)
    if base is not None and new is not None and unknown is None:
        given_base = _wall_given_base((a, base, len(of_a)), (b, new, len(of_b)), verdict)
    # A process of its own may have been too short for a verdict where those that repeated it were not.
    return Measured(base, new, given_base, own, unknown or OWN_PROCESSES_TOO_SHORT, own_unknown or NOT_MEASURED)


def _wall_given_base(a: tuple[Side, float, int], b: tuple[Side, float, int], verdict: Verdict) -> Estimate | None:
    """Of both sides, each with its typical call and the number of its processes; None of a verdict without interval."""
    if verdict.ci95 is None or verdict.speedup is None:
        return None
    (one, base, of_a), (other, new, of_b) = a, b
    low, high = (base / speedup for speedup in reversed(verdict.decided95 or verdict.ci95))
    noise, least = verdict.noise_floor or 0.0, verdict.least_change or 0.0
    if verdict.basis in ("rounds", "processes"):
        estimate = _interval(base / verdict.speedup, low, high, "calls" if verdict.processes == 1 else "processes")
        # The gate fails nothing that the verdict beside it leaves open.
        smallest: DoubtCode = "least_change_of_jobs" if one.ranks else "least_change"
        floor = Doubt("noise" if noise >= least else smallest, max(noise, least) * new)
        assumptions = (reasons.OneJob() if one.ranks else reasons.OneProcess(),) if verdict.processes == 1 else ()
        return replace(estimate, floor=floor, assumptions=assumptions)
    if of_a == of_b == 1:
        return _of_one_process(_interval(new, low, high, "calls"), noise * new, one, other)
    estimate = _interval(new, low, high, "processes")
    if min(of_a, of_b) > 1:
        return estimate
    single, several = (one, other) if of_a == 1 else (other, one)
    borrowed = reasons.OneProcessOfASide(side=single.label, other=several.label)
    return replace(estimate, assumptions=(borrowed,))


def _why_unknown(*sides: tuple[Side, int]) -> Reason | None:
    """Why the times of these sides, each with how many processes made enough calls, say nothing of their calls; None
    where they do."""
    for side, processes in sides:
        if side.wall_us is None:
            return reasons.NotTimed(side=side.label)
        if not processes:
            return reasons.TooFewCalls(side=side.label, needed=thresholds.FEWEST_CALLS)
    return reasons.CompiledWhileTimed() if any(compilations_while_timed(side) for side, _ in sides) else None


def _interval(value: float, low: float, high: float, basis: Literal["calls", "processes"]) -> Estimate:
    return Estimate(value, low, high, basis, doubts=(Doubt(basis, (high - low) / 2),))


def _of_one_process(estimate: Estimate, noise_us: float, *sides: Side) -> Estimate:
    """With what is assumed of other processes of these sides, or the noise floor if that is more. Each side that waits
    for the host differs from process to process by itself."""
    share = max(thresholds.PROCESS_FLOOR, thresholds.PROCESS_FLOOR_WAITING * math.sqrt(sum(map(waits_for_host, sides))))
    assumed_us = share * estimate.value
    if any(side.ranks for side in sides):
        # Nothing measures several jobs of ranks at once.
        spread_us = max(noise_us, assumed_us)
        of_jobs = reasons.JobSpreadAssumed(share=spread_us / estimate.value)
        return replace(estimate.widened(Doubt("other_jobs", spread_us)), assumptions=(of_jobs,))
    if noise_us <= assumed_us:
        of_processes = reasons.ProcessSpreadAssumed(share=share)
        return replace(estimate.widened(Doubt("other_processes", assumed_us)), assumptions=(of_processes,))
    of_noise = reasons.NoiseForProcessSpread(share=noise_us / estimate.value)
    return replace(estimate.widened(Doubt("noise_for_other_processes", noise_us)), assumptions=(of_noise,))


def _busy(comparison: Comparison) -> Measured:
    """Busy time, of one rank among several without what only communicates: how much of that waits for other ranks no
    recording of one tells, nor how much busy time differs from recording to recording for it."""
    a, b = comparison.a, comparison.b
    alone = any(side.analysis.communication and side.analysis.communication.may_wait for side in (a, b))
    base, new = (side.compute_us if alone else side.busy_us for side in (a, b))
    if new is None:
        return Measured(base, None)
    exact = replace(exactly(new), basis="recordings", assumptions=(reasons.ComputeAlone(),) if alone else ())
    change, own = (_widened_by_recordings(exact, *sides, alone=alone) for sides in ((a, b), (b,)))
    own = replace(own, assumptions=(*own.assumptions, *_of_the_whole(b)))
    return recorded_estimate(comparison, Measured(base, new, change, own))


def _idle(comparison: Comparison) -> Measured:
    """Idle time, as certain as the wall time that it is a part of, and the GPU time that is taken off that."""
    a, b = comparison.a, comparison.b
    wall = measure_wall(a, b, comparison.verdict)
    base, idle_us, wall_us = a.unprofiled_idle_us, b.unprofiled_idle_us, wall.new
    if idle_us is None or wall_us is None:
        return recorded_estimate(comparison, Measured(base, None))

    def of(estimate: Estimate | None, *sides: Side) -> Estimate | None:
        if estimate is None:
            return None
        value, (low, high) = idle_us + estimate.value - wall_us, estimate.bounds
        idle = replace(
            estimate, value=value, low=max(idle_us - (wall_us - low), 0.0), high=idle_us + high - wall_us, floor=None
        )
        return _widened_by_recordings(idle, *sides)

    unknown = wall.unknown if wall.given_base is None else NOT_ON_BOTH_SIDES
    measured = Measured(base, idle_us, of(wall.given_base, a, b), of(wall.own, b), unknown, wall.own_unknown)
    return recorded_estimate(comparison, measured)


def _widened_by_recordings(estimate: Estimate, *sides: Side, alone: bool = False) -> Estimate:
    """By how much GPU time differs from recording to recording: as two of a side's do, else as it was seen to. `alone`:
    without what only communicates."""
    margins, once = [], False
    for side in sides:
        busy_us = (side.compute_us if alone else side.busy_us) or 0.0
        differs_us = None if alone else side.busy_differs_us
        margins.append(
            BUSY_MOVES * busy_us if differs_us is None else max(differs_us, thresholds.LEAST_BUSY_MARGIN * busy_us)
        )
        once = once or differs_us is None
    return estimate.widened(Doubt("one_recording" if once else "recordings", math.fsum(margins)))


def recorded_estimate(comparison: Comparison, measured: Measured) -> Measured:
    """Without the change where the recordings are no measure of one another, or one has no such figure."""
    unlike = _unlike_windows(comparison.a, comparison.b)
    if unlike is None:
        return measured if measured.base is not None else replace(measured, given_base=None)
    return replace(measured, given_base=None, unknown=unlike)


def _unlike_windows(a: Side, b: Side) -> Reason | None:
    """Why a change between what was recorded of the sides says nothing of the code; None where it does.

    Two whole recordings may hold any number of steps each: half the kernels may be a fifth of the steps.
    """
    one, other = a.analysis.window.kind, b.analysis.window.kind
    if one != other:
        return reasons.WindowsDiffer(a=one, b=other)
    return reasons.WholeRecordings() if one == "whole" else None


def _of_the_whole(side: Side) -> tuple[Reason, ...]:
    return (reasons.WholeRecording(),) if side.analysis.window.kind == "whole" else ()


def _exact(of: Callable[[Side], float | None], *, recorded: bool = False) -> Callable[[Comparison], Measured]:
    """A figure that is the same however often it is counted; `recorded`: in the recordings."""

    def measure(comparison: Comparison) -> Measured:
        base, new = of(comparison.a), of(comparison.b)
        measured = Measured(base, None)
        if new is not None:
            # A limit of the new side's own figure needs no base: eager code compiles nothing.
            own = replace(exactly(new), assumptions=_of_the_whole(comparison.b) if recorded else ())
            measured = Measured(base, new, exactly(new) if base is not None else None, own)
        return recorded_estimate(comparison, measured) if recorded else measured

    return measure


def _breaks(side: Side) -> float | None:
    """Of several ranks those of the rank with most."""
    form = side.form
    if form is None or form.compilation is None:
        return None
    others = (each.graph_breaks for rank in side.ranks for each in rank.forms if each.name == form.name)
    return max((form.compilation.graph_breaks, *(each for each in others if each is not None)))


def _groups_lost(comparison: Comparison) -> Measured:
    """Places in a step where the new side needs more kernels than the base, as far as kernels could be matched."""
    unlike = _unlike_windows(comparison.a, comparison.b)
    if unlike or not comparison.groups or comparison.a.on_cpu:
        unknown = unlike or NOT_ON_BOTH_SIDES
        return Measured(None, None, unknown=unknown, own_unknown=unknown)
    seen, most, unknown_share = find_lost_groups(comparison.groups)
    estimate = Estimate(seen, seen, most)
    if unknown_share:
        matched = reasons.Unmatched if unknown_share > MOST_UNKNOWN else reasons.MostlyMatched
        assumption = matched(unmatched_share=unknown_share)
        estimate = replace(estimate, basis="matching", assumptions=(assumption,))
    return Measured(0.0, seen, estimate, estimate)


def _of_ranks(metric: Metric) -> Callable[[Comparison], Measured]:
    """What the wing measures that compares the ranks of jobs."""

    def measure(comparison: Comparison) -> Measured:
        known = over_ranks()
        if comparison.job is None or known is None:
            return Measured(None, None, unknown=NO_JOIN, own_unknown=NO_JOIN)
        measured: Measured = load(known.measures)[metric](comparison)
        return measured

    return measure


MEASURES: dict[Metric, Callable[[Comparison], Measured]] = {
    "wall": lambda comparison: measure_wall(comparison.a, comparison.b, comparison.verdict),
    "busy": _busy,
    "idle": _idle,
    "kernels": _exact(lambda side: side.kernels_per_step, recorded=True),
    "launches": _exact(lambda side: side.launches_per_step, recorded=True),
    "memory": _exact(lambda side: side.form.peak_memory_bytes if side.form else None),
    "recompiles": _exact(lambda side: compilations_while_timed(side) if side.form and side.form.compilation else None),
    "breaks": _exact(_breaks),
    "groups_lost": _groups_lost,
    "exposed": _of_ranks("exposed"),
    "waiting": _of_ranks("waiting"),
}
