"""What may each figure that a gate limits really be, and what would make that narrower?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tracekit.comparison.judging.compiling_calls import calls_that_count, compilations_while_timed
from tracekit.comparison.judging.one_process import waits_for_host
from tracekit.comparison.judging.separate_runs import FEWEST_CALLS, halves_floor, process_medians
from tracekit.comparison.judging.windows_alike import find_unlike_windows
from tracekit.comparison.matching.coverage import MOST_UNKNOWN, find_lost_groups
from tracekit.model.comparison import BUSY_MOVES, Comparison, Side, Verdict
from tracekit.model.gate import Metric
from tracekit.numbers import percent
from tracekit.statistics.interval import Interval, interval_of_processes

#: A time that exceeds its limit by less than the larger of these (a share of the base's, microseconds) is not held
#: against anybody, however certain it is.
RELATIVE_FLOOR = 0.005
ABSOLUTE_FLOOR_US = 5.0
#: Added to intervals that know one process of each side: assumed, not measured of these (docs/gate.md). Of two
#: processes that keep the GPU busy: 1.96 standard deviations of their difference, 0.9 % each, by eager forms of eight
#: works of two sweeps on H200s, of which 93 of 100 pairs keep to it.
PROCESS_FLOOR = 0.024
#: The same of one process that waits for the host: 1.96 standard deviations of 6.9 %, by 22 works of those sweeps.
PROCESS_FLOOR_WAITING = 0.135
#: Two recordings of one process may agree by chance: GPU time is never taken for more certain than this share.
LEAST_BUSY_MARGIN = 0.005

ASSUMED = "±{} of a call are assumed for what differs from process to process, which --repeat-process measures"
STANDS_IN = (
    "±{} of a call, by which a form differs from itself, are taken for what differs from process to process, which"
    " --repeat-process measures"
)
ONE_PROCESS = "one process was timed, and what differs from process to process is not in it (--repeat-process)"
OF_THE_OTHER = "{} was timed in one process, which is assumed to differ from others as the processes of {} do"

OF_THE_WHOLE = "the recording marks no steps, so that this is of all of it"
UNMATCHED = "nobody knows what became of {} of the GPU time, and places may hide there"

#: What makes an interval as wide as it is, and what narrows it.
OF_CALLS = ("how calls differ", "more calls narrow that: --iterations")
OF_PROCESSES = ("how processes differ", "more of them narrow that: --repeat-process")
OF_OTHER_PROCESSES = (
    "assumed for what differs from process to process",
    "no number of calls narrows that, --repeat-process 4 on both sides measures it",
)
OF_THE_FORM = ("how far a form differs from itself", "more calls narrow that: --iterations")
OF_THE_FORM_AND_OTHERS = (
    "how far a form differs from itself, taken for what differs from process to process",
    "more calls narrow that to what is assumed of others at best, --repeat-process 4 on both sides measures it",
)
#: What another start of the program changes is in no interval of one process, and a verdict calls no less a change.
OF_THE_VERDICT = (
    "the least that the verdict calls a change",
    "--repeat-process 4 halves that where no form changed its speed by itself",
)
OF_RECORDINGS = (
    "how GPU time differs from recording to recording",
    "no number of calls narrows that; allow more, or limit kernels and launches, which are exact",
)
OF_ONE_RECORDING = (
    "assumed for GPU time that was recorded once",
    "no number of calls narrows that; a run of `tracekit profile` records twice",
)


@dataclass(frozen=True)
class Doubt:
    """A part of an interval: `by` how much either way, in the figure's unit, what that is, and what narrows it."""

    by: float
    what: str
    narrowed: str


@dataclass(frozen=True)
class Span:
    """What a figure may really be, and the doubts that make it that wide; `assumed` is what of it was not measured, in
    words. Where that is narrower than what counts as a change, `floor` either way of `middle`, a limit in there is not
    told from the figure either; `floored` says what that is and what narrows it. `settled` is what is said of it where
    both ends are one."""

    low: float
    high: float
    doubts: tuple[Doubt, ...] = ()
    assumed: str | None = None
    middle: float | None = None
    floor: float = 0.0
    floored: tuple[str, str] = OF_THE_FORM
    settled: str = "the figure is exact"
    #: Whether what was assumed is among the doubts.
    counted: bool = False

    @property
    def held_to(self) -> tuple[float, float]:
        """What must keep to a limit to meet it."""
        if self.middle is None:
            return self.low, self.high
        return max(min(self.low, self.middle - self.floor), 0.0), max(self.high, self.middle + self.floor)

    def widened(self, by: float, doubt: tuple[str, str]) -> Span:
        return replace(self, low=max(self.low - by, 0.0), high=self.high + by, doubts=(*self.doubts, Doubt(by, *doubt)))


@dataclass(frozen=True)
class Range:
    """A figure of either side. `beside` is what the new side's may really be, given the base's; `own` the same where
    nothing is held against the base: both None where nobody knows, and then `unknown`
    and `own_unknown` say why."""

    base: float | None
    new: float | None
    beside: Span | None = None
    own: Span | None = None
    unknown: str = "it was not measured on both sides"
    own_unknown: str = "it was not measured"


NOT_MEASURED = Range(None, None)
TOO_FEW = f"fewer than {FEWEST_CALLS} calls of {{}} count, which say nothing of the next (--iterations)"
COMPILED = "something was compiled inside timed calls, so that times are not of compiled code alone"


def is_slight(excess_us: float, base_us: float) -> bool:
    """Whether a time is beyond a limit by less than is held against anybody."""
    return excess_us < max(RELATIVE_FLOOR * base_us, ABSOLUTE_FLOOR_US)


def find_wall_range(a: Side, b: Side, verdict: Verdict) -> Range:
    """What B's call may really take, in microseconds.

    Forms of one process have the verdict's own interval, and are held to its rule: a limit within the noise floor, or
    within the least that is called a change, is not told from the figure. Of sides that were started apart what differs
    from process to process is in it, measured or assumed. What B takes by itself asks nothing of A.
    """
    of_a, of_b = process_medians(a), process_medians(b)
    base = _typical(a, of_a) if of_a else a.wall_us
    new = _typical(b, of_b) if of_b else b.wall_us
    untold, untold_own = _why_untold(a, b), _why_untold(b)
    beside = _wall_beside(a, b, verdict) if untold is None else None
    own = _own_wall(b, of_b) if untold_own is None else None
    # A process of its own may have been too short for a verdict where those that repeated it were not.
    return Range(
        base,
        new,
        beside,
        own,
        untold or TOO_FEW.format("the runs' own processes"),
        untold_own or NOT_MEASURED.own_unknown,
    )


def _why_untold(*sides: Side) -> str | None:
    """Why the times of these sides say nothing of their calls; None where they do."""
    for side in sides:
        if side.wall_us is None:
            return f"{side.label} was not timed"
        if not process_medians(side):
            return TOO_FEW.format(side.label)
    return COMPILED if any(map(compilations_while_timed, sides)) else None


def _wall_beside(a: Side, b: Side, verdict: Verdict) -> Span | None:
    of_a, of_b = process_medians(a), process_medians(b)
    if verdict.ci95 is None:
        return None
    base, new = _typical(a, of_a), _typical(b, of_b)
    low, high = (base / speedup for speedup in reversed(verdict.ci95))
    noise = verdict.noise_floor or 0.0
    if not is_together(verdict):
        if len(of_a) == len(of_b) == 1:
            return _of_one_process(_of(low, high, OF_CALLS), new, noise * new, a, b)
        return replace(_of(low, high, OF_PROCESSES), assumed=_of_the_other(a, b, len(of_a), len(of_b)))
    # The gate fails nothing that the verdict beside it leaves open.
    least = verdict.least_change or 0.0
    return replace(
        _of(low, high, OF_CALLS if verdict.processes == 1 else OF_PROCESSES),
        assumed=ONE_PROCESS if verdict.processes == 1 else None,
        middle=base / verdict.speedup if verdict.speedup else new,
        floor=max(noise, least) * new,
        floored=OF_THE_FORM if noise >= least else OF_THE_VERDICT,
    )


def is_together(verdict: Verdict) -> bool:
    """Whether both sides ran in the same process: two forms of one run did."""
    return verdict.basis in ("rounds", "processes")


def _of(low: float, high: float, doubt: tuple[str, str]) -> Span:
    return Span(low, high, (Doubt((high - low) / 2, *doubt),))


def _of_one_process(span: Span, figure: float, floor_us: float, *sides: Side) -> Span:
    """With what is assumed of other processes of these sides, or the noise floor if that is more."""
    share = _process_floor(*sides)
    assumed_us = share * figure
    if floor_us <= assumed_us:
        told = ASSUMED.format(percent(share, 0))
        return replace(span.widened(assumed_us, OF_OTHER_PROCESSES), assumed=told, counted=True)
    stands_in = STANDS_IN.format(percent(floor_us / figure))
    return replace(span.widened(floor_us, OF_THE_FORM_AND_OTHERS), assumed=stands_in, counted=True)


def _process_floor(*sides: Side) -> float:
    """Each side that waits for the host differs from process to process by itself."""
    return max(PROCESS_FLOOR, PROCESS_FLOOR_WAITING * math.sqrt(sum(map(waits_for_host, sides))))


def _typical(side: Side, processes: tuple[Interval, ...]) -> float:
    """The side's median call; of several processes the mean (of logarithms) of their medians."""
    if len(processes) == 1 and side.wall_us is not None:
        return side.wall_us
    return math.exp(math.fsum(each.middle for each in processes) / len(processes))


def _own_wall(side: Side, processes: tuple[Interval, ...]) -> Span:
    if len(processes) == 1:
        (one,) = processes
        figure = _typical(side, processes)
        calls = calls_that_count(side)
        floor_us = halves_floor(calls) * figure if len(calls) >= FEWEST_CALLS else 0.0
        return _of_one_process(_of(math.exp(one.low), math.exp(one.high), OF_CALLS), figure, floor_us, side)
    interval = interval_of_processes(processes)
    return _of(math.exp(interval.low), math.exp(interval.high), OF_PROCESSES)


def _of_the_other(a: Side, b: Side, of_a: int, of_b: int) -> str | None:
    if min(of_a, of_b) > 1:
        return None
    return OF_THE_OTHER.format(*((a.label, b.label) if of_a == 1 else (b.label, a.label)))


def _wall(comparison: Comparison) -> Range:
    return find_wall_range(comparison.a, comparison.b, comparison.verdict)


def _busy(comparison: Comparison) -> Range:
    a, b = comparison.a, comparison.b
    if b.busy_us is None:
        return Range(a.busy_us, None)
    span = Span(b.busy_us, b.busy_us)
    own = replace(_busy_widened(span, b), assumed=_of_the_whole(b))
    return _recorded(comparison, Range(a.busy_us, b.busy_us, _busy_widened(span, a, b), own))


def _recorded(comparison: Comparison, measured: Range) -> Range:
    """Without the change where the recordings are no measure of one another, or one has no such figure."""
    unlike = find_unlike_windows(comparison.a, comparison.b)
    if unlike is None:
        return measured if measured.base is not None else replace(measured, beside=None)
    return replace(measured, beside=None, unknown=unlike)


def _of_the_whole(side: Side) -> str | None:
    return OF_THE_WHOLE if side.analysis.window.kind == "whole" else None


def _busy_widened(span: Span, *sides: Side) -> Span:
    """By how much GPU time differs from recording to recording: as two of a side's do, else as it was seen to."""
    once = any(side.busy_differs_us is None for side in sides)
    return span.widened(math.fsum(map(_busy_margin, sides)), OF_ONE_RECORDING if once else OF_RECORDINGS)


def _busy_margin(side: Side) -> float:
    busy_us, differs = side.busy_us or 0.0, side.busy_differs_us
    return BUSY_MOVES * busy_us if differs is None else max(differs, LEAST_BUSY_MARGIN * busy_us)


def _idle(comparison: Comparison) -> Range:
    a, b = comparison.a, comparison.b
    wall = _wall(comparison)
    base, new = a.unprofiled_idle_us, b.unprofiled_idle_us
    if new is None or wall.new is None:
        return _recorded(comparison, Range(base, None))
    beside, own = (_around(new, wall.new, span) for span in (wall.beside, wall.own))
    measured = Range(
        base,
        new,
        _busy_widened(beside, a, b) if beside else None,
        _busy_widened(own, b) if own else None,
        wall.unknown if beside is None else NOT_MEASURED.unknown,
        wall.own_unknown,
    )
    return _recorded(comparison, measured)


def _around(idle_us: float, wall_us: float, wall: Span | None) -> Span | None:
    """Idle time, as certain as the wall time is that it is a part of."""
    if wall is None:
        return None
    low, high = wall.held_to
    return replace(wall, low=max(idle_us - (wall_us - low), 0.0), high=idle_us + high - wall_us, middle=None)


def _exact(of: Callable[[Side], float | None]) -> Callable[[Comparison], Range]:
    """A figure that is the same however often it is counted."""

    def measure(comparison: Comparison) -> Range:
        base, new = of(comparison.a), of(comparison.b)
        if new is None:
            return Range(base, None)
        # A limit of the new side's own figure needs no base: eager code compiles nothing.
        return Range(base, new, Span(new, new) if base is not None else None, Span(new, new))

    return measure


def _counted(of: Callable[[Side], float | None]) -> Callable[[Comparison], Range]:
    """The same of what was recorded."""

    def measure(comparison: Comparison) -> Range:
        exact = _exact(of)(comparison)
        own = replace(exact.own, assumed=_of_the_whole(comparison.b)) if exact.own else None
        return _recorded(comparison, replace(exact, own=own))

    return measure


def _memory(side: Side) -> float | None:
    return side.form.peak_memory_bytes if side.form else None


def _recompiles(side: Side) -> float | None:
    return compilations_while_timed(side) if side.form and side.form.compilation else None


def _breaks(side: Side) -> float | None:
    return side.form.compilation.graph_breaks if side.form and side.form.compilation else None


def _groups_lost(comparison: Comparison) -> Range:
    """Places in a step where the new side needs more kernels than the base, as far as kernels could be matched."""
    unlike = find_unlike_windows(comparison.a, comparison.b)
    if unlike or not comparison.groups:
        unknown = unlike or NOT_MEASURED.unknown
        return Range(None, None, unknown=unknown, own_unknown=unknown)
    lost = find_lost_groups(comparison.groups)
    span = Span(lost.seen, lost.most)
    if lost.unknown > MOST_UNKNOWN:
        span = replace(span, assumed=UNMATCHED.format(percent(lost.unknown)))
    elif lost.unknown:
        span = replace(span, settled=f"all but {percent(lost.unknown)} of the GPU time was matched")
    return Range(0.0, lost.seen, span, span)


RANGES: dict[Metric, Callable[[Comparison], Range]] = {
    "wall": _wall,
    "busy": _busy,
    "idle": _idle,
    "kernels": _counted(lambda side: side.kernels_per_step),
    "launches": _counted(lambda side: side.launches_per_step),
    "memory": _exact(_memory),
    "recompiles": _exact(_recompiles),
    "breaks": _exact(_breaks),
    "groups_lost": _groups_lost,
}
