"""What may each figure that a gate limits really be, and what would make that narrower?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tracekit.comparison.apart import process_medians
from tracekit.comparison.compiling_calls import compilations_while_timed
from tracekit.model.comparison import BUSY_MOVES, Comparison, Side, Verdict
from tracekit.model.gate import Metric
from tracekit.numbers import percent
from tracekit.statistics.interval import Interval, interval_of_processes

#: A time that exceeds its limit by less than the larger of these (a share of the base's, microseconds) is not held
#: against anybody, however certain it is.
RELATIVE_FLOOR = 0.005
ABSOLUTE_FLOOR_US = 5.0
#: Added to intervals that know one process of each side. It is assumed, not measured: docs/gate.md.
PROCESS_FLOOR = 0.02
#: Two recordings of one process may agree by chance: GPU time is never taken for more certain than this share.
LEAST_BUSY_MARGIN = 0.005

ASSUMED = "±2 % of a call are assumed for what differs from process to process, which --repeat-process measures"
STANDS_IN = (
    "±{} of a call, by which a form differs from itself, are taken for what differs from process to process, which"
    " --repeat-process measures"
)
ONE_PROCESS = "one process was timed, and what differs from process to process is not in it (--repeat-process)"
OF_THE_OTHER = "{} was timed in one process, which is assumed to differ from others as the processes of {} do"

NO_STEPS = "the recordings mark no steps, and may hold any number (--window names spans that are steps)"

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
    "more calls narrow that to 2 % at best, --repeat-process 4 on both sides measures it",
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
    words. Where a form differs from itself by more than that, `floor` either way of `middle`, a limit in there is not
    told from the figure either."""

    low: float
    high: float
    doubts: tuple[Doubt, ...] = ()
    assumed: str | None = None
    middle: float | None = None
    floor: float = 0.0
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
    nothing is held against the base: both None where nobody knows, and then `unknown` may say why."""

    base: float | None
    new: float | None
    beside: Span | None = None
    own: Span | None = None
    unknown: str = "it was not measured on both sides"


NOT_MEASURED = Range(None, None)
COMPILED = "something was compiled inside timed calls, so that times are not of compiled code alone"


def is_slight(excess_us: float, base_us: float) -> bool:
    """Whether a time is beyond a limit by less than is held against anybody."""
    return excess_us < max(RELATIVE_FLOOR * base_us, ABSOLUTE_FLOOR_US)


def find_wall_range(a: Side, b: Side, verdict: Verdict) -> Range:
    """What B's call may really take, in microseconds.

    Forms of one process have the verdict's own interval, and are held to its rule: a limit within the noise floor is
    not told from the figure. Of sides that were started apart what differs from process to process is in it, measured
    or assumed.
    """
    of_a, of_b = process_medians(a), process_medians(b)
    if verdict.ci95 is None or not (of_a and of_b):
        return Range(verdict.a_wall_us, verdict.b_wall_us)
    base, new = _typical(a, of_a), _typical(b, of_b)
    if any(compilations_while_timed(side) for side in (a, b)):
        return Range(base, new, unknown=COMPILED)
    floor_us = (verdict.noise_floor or 0.0) * new
    low, high = (base / speedup for speedup in reversed(verdict.ci95))
    if is_together(verdict):
        span = _of(low, high, OF_CALLS if verdict.processes == 1 else OF_PROCESSES)
        beside = replace(
            span,
            assumed=ONE_PROCESS if verdict.processes == 1 else None,
            middle=base / verdict.speedup if verdict.speedup else new,
            floor=floor_us,
        )
    elif len(of_a) == len(of_b) == 1:
        beside = _of_one_process(_of(low, high, OF_CALLS), new, floor_us)
    else:
        beside = replace(_of(low, high, OF_PROCESSES), assumed=_of_the_other(a, b, len(of_a), len(of_b)))
    return Range(base, new, beside, _own_wall(of_b, new, floor_us))


def is_together(verdict: Verdict) -> bool:
    """Whether both sides ran in the same process: two forms of one run did."""
    return verdict.basis in ("rounds", "processes")


def _of(low: float, high: float, doubt: tuple[str, str]) -> Span:
    return Span(low, high, (Doubt((high - low) / 2, *doubt),))


def _of_one_process(span: Span, figure: float, floor_us: float) -> Span:
    """With what is assumed of other processes, or the noise floor if that is more."""
    assumed_us = PROCESS_FLOOR * figure
    if floor_us <= assumed_us:
        return replace(span.widened(assumed_us, OF_OTHER_PROCESSES), assumed=ASSUMED, counted=True)
    stands_in = STANDS_IN.format(percent(floor_us / figure))
    return replace(span.widened(floor_us, OF_THE_FORM_AND_OTHERS), assumed=stands_in, counted=True)


def _typical(side: Side, processes: tuple[Interval, ...]) -> float:
    """The side's median call; of several processes the mean (of logarithms) of their medians."""
    if len(processes) == 1 and side.wall_us is not None:
        return side.wall_us
    return math.exp(math.fsum(each.middle for each in processes) / len(processes))


def _own_wall(processes: tuple[Interval, ...], figure: float, floor_us: float) -> Span:
    if len(processes) == 1:
        (one,) = processes
        return _of_one_process(_of(math.exp(one.low), math.exp(one.high), OF_CALLS), figure, floor_us)
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
    if a.busy_us is None or b.busy_us is None:
        return NOT_MEASURED
    span = Span(b.busy_us, b.busy_us)
    return Range(a.busy_us, b.busy_us, _busy_widened(span, a, b), _busy_widened(span, b))


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
    if a.unprofiled_idle_us is None or b.unprofiled_idle_us is None or wall.new is None:
        return NOT_MEASURED
    beside, own = (_around(b.unprofiled_idle_us, wall.new, span) for span in (wall.beside, wall.own))
    return Range(
        a.unprofiled_idle_us,
        b.unprofiled_idle_us,
        _busy_widened(beside, a, b) if beside else None,
        _busy_widened(own, b) if own else None,
        wall.unknown,
    )


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
        # A limit of the new side's own figure needs no base: eager code compiles nothing.
        return NOT_MEASURED if new is None else Range(base, new, Span(new, new), Span(new, new))

    return measure


def _memory(side: Side) -> float | None:
    return side.form.peak_memory_bytes if side.form else None


def _recompiles(side: Side) -> float | None:
    return compilations_while_timed(side) if side.form and side.form.compilation else None


def _breaks(side: Side) -> float | None:
    return side.form.compilation.graph_breaks if side.form and side.form.compilation else None


def _groups_lost(comparison: Comparison) -> Range:
    """Places in a step where the new side needs more kernels than the base: a group that is there 12 times counts 12.

    Of recordings that were read whole nobody says how many steps they hold: then it is one, if there is any, to all.
    """
    if not comparison.groups:
        return NOT_MEASURED
    lost = math.fsum(group.repeats for group in comparison.groups if group.kind == "defused")
    span = Span(lost, lost)
    if lost and any(side.analysis.window.kind == "whole" for side in (comparison.a, comparison.b)):
        span = Span(min(1.0, lost), lost, assumed=NO_STEPS)
    return Range(0.0, lost, span, span)


RANGES: dict[Metric, Callable[[Comparison], Range]] = {
    "wall": _wall,
    "busy": _busy,
    "idle": _idle,
    "kernels": _exact(lambda side: side.kernels_per_step),
    "launches": _exact(lambda side: side.launches_per_step),
    "memory": _exact(_memory),
    "recompiles": _exact(_recompiles),
    "breaks": _exact(_breaks),
    "groups_lost": _groups_lost,
}
