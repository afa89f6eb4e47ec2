"""Why was the GPU idle in the unprofiled call?

Of two recordings of the same calls one distorts least and does not know what the host did; the other knows, and shows
idle time that is otherwise hidden behind queued work. Both launch the same work in the same order. So each gap has its
length from the first, replayed without what recording added, and its causes from what lies between the same two calls
of the second. docs/idle.md has the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import astuple, replace

from tracekit import interval
from tracekit.analysis.links import launching_calls
from tracekit.analysis.replay import HostCost, HostStep, Replayed, host_steps, replay
from tracekit.analysis.timeline import CAUSE_CODES, Timeline, lay_flat
from tracekit.analysis.window import Scope, Span, beginning_within, columns, find_scope, find_steps
from tracekit.interval import Bools, Floats, Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.idle_estimate import MOST_SLOWED, Between, IdleEstimate
from tracekit.model.quartiles import HostTimes, Quartiles
from tracekit.model.recording_cost import Cost, EventCosts, RecordingCost
from tracekit.model.trace import Trace

PYTHON, UNKNOWN = CAUSE_CODES["python"], CAUSE_CODES["unattributed"]
SYNC_WAIT, GC = CAUSE_CODES["sync_wait"], CAUSE_CODES["gc"]
#: What is known of the first recording by itself, or is no host's work: never taken from the second.
NOT_BETWEEN_CALLS = tuple(CAUSE_CODES[cause] for cause in ("sync_wait", "launch_call", "memory", "gc", "profiler"))
#: So many calls of all steps are replayed in a few seconds; of more nothing is estimated.
MOST_CALLS = 100_000
#: Of more of a step's work that two threads launched at once, no one host can be replayed.
MOST_HIDDEN = 0.02
#: Of what the host does it may do this by the clock: it sleeps, or waits for somebody.
BY_THE_CLOCK = (PYTHON, UNKNOWN)
#: Copies of pageable memory, which the host makes as fast as memory is.
PAGEABLE = "Pageable"
#: Hosts whose speeds differ by less are equally fast.
EQUALLY_FAST = 0.02
#: A host that takes more times as long is not slow: what a file says of it is wrong.
MOST_APART = 10.0
#: What lies between calls, and collections.
NOT_IN_CALLS = (-1, GC)
#: More calls than a step has.
MOST_IN_UNIT = 1 << 32
#: Of one trace alone so many in all, where each step counts as 200: a second.
MOST_CALLS_ALONE, CALLS_OF_STEP = 50_000, 200
#: A replay without costs may differ from the recording by this share of its idle time: work from outside the window.
MOST_ASTRAY = 0.05
#: At least this share of a stretch is left, whatever recording is said to add to its operators.
LEAST_SHARE = 0.05

#: What recording adds where a run did not measure it: a launch between a warm loop's and that of the models which
#: torch 2.11 ran on an H200, all else as on an H100.
ASSUMED_NODE = Cost(1.3, 0.5, 1.6)
ASSUMED = EventCosts(
    launch=Cost(10.0, 2.0, 22.0),
    copy=Cost(10.0, 2.0, 22.0),
    operator=Cost(3.0, 0.0, 4.0),
    span=Cost(2.0, 0.0, 3.0),
    sync=Cost(5.0, 0.0, 22.0),
    graph_launch=Cost(5.0, 2.0, 8.0),
    graph_node=ASSUMED_NODE,
)


#: The median of what was measured, its lower quartile, or its upper.
Speed = Literal["us", "low", "high"]


class Rule(Struct, frozen=True):
    """One of the ways in which a recording may be read. `operator_ns` is what recording operators adds to each, and
    `span_ns` what it adds to each span; `in_order` says whether the end of a stretch has the causes of its end, or of
    all of it. `speed` says which of the host's times around timed calls counts, and of their collections: the median,
    the lower quartile, where it was fast, or the upper. `by_clock` says how much of Python between operators, and of
    copies from pageable memory, takes as long as it did, where all else follows the host: all of it, nothing, or of
    Python what its thread was off the CPU, where that is known, and of copies all."""

    cost: HostCost
    operator_ns: float = 0.0
    span_ns: float = 0.0
    in_order: bool = True
    speed: Speed = "us"
    by_clock: Literal["measured", "all", "none"] = "measured"


class Host(Struct, frozen=True):
    """How long the host took for the same work around timed calls, around each recorded step, and around each of the
    full trace, where that is known; and how long the thread of each recorded step was off the CPU."""

    timed: HostTimes
    recorded_us: tuple[float, ...]
    told_us: tuple[float, ...] = ()
    off_cpu_us: tuple[float, ...] = ()

    def ratios(self, speed: Speed, steps: int) -> tuple[float, ...]:
        """How long it takes for a timed call, in times of each recorded step. None of hosts that are equally fast, or
        where the file cannot be right."""
        recorded = self.recorded_us if len(self.recorded_us) == steps else (float(np.median(self.recorded_us)),) * steps
        found = tuple(getattr(self.timed, speed) / us for us in recorded)
        alike = all(abs(ratio - 1) < EQUALLY_FAST for ratio in (*found, self.told_ratio(speed)))
        return () if alike or not all(map(_is_possible, found)) else found

    def told_ratio(self, speed: Speed) -> float:
        """How long it takes for a timed call, in times of the full trace's."""
        ratio: float = getattr(self.timed, speed) / float(np.median(self.told_us or self.recorded_us))
        return ratio if _is_possible(ratio) else 1.0


def _is_possible(ratio: float) -> bool:
    return 1 / MOST_APART <= ratio <= MOST_APART


class _Units(Struct, frozen=True, eq=False):
    """The host's stretches up to each launch, and what comes after the last one: the names of what each unit launched,
    and of the calls until then; of each stretch its unit, and the position of its call among the unit's."""

    launched: list[tuple[str, ...]]
    calls: list[list[str]]
    of_stretch: Ints
    call_of_stretch: Ints


class Told(Struct, frozen=True, eq=False):
    """What the host of a recording did: its steps, the units of each, when each of their stretches began and ended, and
    on which thread (an array of three rows each)."""

    steps: list[HostStep]
    units: list[_Units]
    stretches: list[Ints]
    timeline: Timeline
    unrecorded: int


def rules_of(cost: RecordingCost | None, timed: HostTimes | None = None) -> tuple[Rule, ...]:
    """The ways in which recordings may be read that cost so much to make; the likeliest first. `timed` is how fast the
    host was in the calls that are estimated. What is assumed is so of any host."""

    def costs_at(speed: Speed) -> list[EventCosts]:
        ratio = getattr(timed, speed) / cost.host_us if cost and cost.host_us and timed else 1.0
        both = (cost.light, cost.rich) if cost else (ASSUMED, ASSUMED)
        return [_times(costs, ratio) for costs in both] if _is_possible(ratio) else list(both)

    def rule(
        calls: Speed = "us", events: Speed = "us", speed: Speed = "us", taken: Mapping[str, bool] = {}, **more: Any
    ) -> Rule:
        light, rich = costs_at(speed)
        operator_ns, span_ns = (getattr(each, events) * 1e3 for each in (rich.operator, rich.span))
        return Rule(_host_cost(light, calls, **taken), operator_ns, span_ns, speed=speed, **more)

    return (
        rule(),
        rule(calls="low"),
        rule(calls="high"),
        rule(taken={"in_call": False}),
        rule(taken={"after_start": True}),
        rule(events="low"),
        rule(events="high"),
        rule(in_order=False),
        rule(by_clock="all"),
        rule(by_clock="none"),
        rule(speed="low", by_clock="none"),
        rule(speed="high", by_clock="none"),
    )


def _times(costs: EventCosts, ratio: float) -> EventCosts:
    """The same of a host that takes so many times as long."""
    events = ((name, getattr(costs, name)) for name in EventCosts.__struct_fields__)
    return EventCosts(**{name: each and Cost(*(ratio * us for us in astuple(each))) for name, each in events})


def _host_cost(costs: EventCosts, end: Speed, *, in_call: bool = True, after_start: bool = False) -> HostCost:
    launch, graph = costs.launch, costs.graph_launch or costs.launch
    own = (costs.driver_launch or launch, costs.library_launch or launch)
    each = (launch, *own, costs.copy, graph, costs.graph_node or ASSUMED_NODE, costs.sync)
    one, by_driver, by_library, copy, of_graph, node, sync = (getattr(cost, end) * 1e3 for cost in each)
    return HostCost(one, by_driver, by_library, copy, of_graph, node, sync, in_call, after_start, own_events=True)


def estimate_idle(
    light: Trace,
    rich: Trace | None,
    rules: Sequence[Rule],
    doubt_us: float = 0.0,
    host: Host | None = None,
    collecting: Quartiles | None = None,
) -> IdleEstimate | None:
    """Idle time per step by cause, by the first of the rules, and what it may be by the others. `doubt_us` is by how
    much idle time may differ in all from that of the recorded calls, of which each cause has its share. `host` is how
    fast that was: equally fast where it is not known. `collecting` is how long a timed call collected garbage: as long
    as each recorded one where it is not known. None of several GPUs, of a window without steps, of threads that launch
    at once, and of more calls than are replayed."""
    scope = find_scope(light, "auto")
    devices = list(scope.windows)
    if len(devices) != 1 or not scope.spans or beginning_within(light.calls, scope.spans).height > MOST_CALLS:
        return None
    steps = host_steps(light, scope, devices[0])
    if sum(step.hidden for step in steps) > MOST_HIDDEN * scope.activities.height:
        return None
    beside = find_scope(rich, "auto") if rich is not None and find_steps(rich) else None
    # One that was cut off may hold no step, or no work of the GPU.
    if rich is not None and beside is not None and devices[0] in beside.windows:
        told = _tell(rich, beside, devices[0])
    else:
        told = _tell(light, scope, devices[0])
        host = replace(host, told_us=()) if host else None
    matches = [_match(step, told, at % len(told.steps)) for at, step in enumerate(steps)]
    # A rule's figure is the mean over steps; what the first rule says of each step alone is possible too. One that
    # something disturbed is no call like others: of several the longest and the shortest quarters do not count.
    order = np.argsort([step.lengths.sum() for step in steps], kind="stable").tolist()
    middle = order[len(order) // 4 : len(order) - len(order) // 4]
    by_rule = _by_rule(steps, matches, middle, told, rules, host, collecting)
    means = np.array([[step.causes for step in found] for found in by_rule]).mean(axis=1) / 1e3
    each_step = np.array([step.causes for step in by_rule[0]]) / 1e3
    us = means[0]
    every = np.concatenate((means, each_step))
    doubt = us / max(us.sum(), 1e-9) * doubt_us
    # What has no match may have any of the causes that it might have.
    unaligned = np.array([step.unaligned for step in by_rule[0]]).mean(axis=0) / 1e3
    doubt_high = doubt + np.where(unaligned > 0, unaligned.sum() - unaligned, 0.0)
    low, high = np.maximum(every.min(axis=0) - doubt - unaligned, 0.0), every.max(axis=0) + doubt_high
    after = np.array([step.after_sync for step in by_rule[0]]).mean(axis=0) / 1e3
    return IdleEstimate(
        causes=_between(us, low, high),
        after_sync_us={cause: float(after[code]) for cause, code in CAUSE_CODES.items() if after[code] > 0},
        unaligned_us=float(unaligned.sum()),
    )


def _by_rule(
    recorded: list[HostStep],
    matches: list[_Match],
    asked: list[int],
    told: Told,
    rules: Sequence[Rule],
    host: Host | None,
    collecting: Quartiles | None,
) -> list[list[_Divided]]:
    """The idle time of the steps at the positions that are asked for, for each of the rules."""
    likely = (rules[0].operator_ns, rules[0].span_ns)

    @cache
    def read_at(events: tuple[float, float], told_ratio: float, ratio: float, by_clock: float = 1.0) -> _Reading:
        # What is added to events is of the speed of timed calls, and taken off those of the told recording.
        operator_ns, span_ns = (ns / told_ratio for ns in events)
        return _Reading(told, operator_ns, span_ns, ratio=ratio, by_clock=by_clock)

    @cache
    def by_clock(pace: _Pace) -> tuple[list[Floats], float]:
        # Of each stretch between calls, by how long the host took in the recording that is run again; of all Python.
        between = [np.where(step.codes == -1, step.lengths, 0.0) for step in recorded]
        if not pace.ratios or pace.by_clock == "none":
            return [np.zeros(len(lengths)) for lengths in between], 0.0
        reading = read_at(likely, pace.told, pace.told / float(np.median(pace.ratios)))
        shares = [np.zeros(len(lengths)) for lengths in between]
        for step, match, share in zip(recorded, matches, shares, strict=True):
            silent = step.codes == -1
            found = reading.causes(match.begins[silent], match.ends[silent], match.shares[silent])
            share[silent] = found[:, BY_THE_CLOCK].sum(axis=1)
        if pace.by_clock == "all" or host is None or len(host.off_cpu_us) != len(recorded):
            return shares, 1.0
        python = [lengths * share for lengths, share in zip(between, shares, strict=True)]
        off_cpu = [_longest_first(ns, us * 1e3) for ns, us in zip(python, host.off_cpu_us, strict=True)]
        shares = [ns / np.maximum(lengths, 1.0) for ns, lengths in zip(off_cpu, between, strict=True)]
        return shares, sum(ns.sum() for ns in off_cpu) / max(sum(ns.sum() for ns in python), 1.0)

    @cache
    def run_again(cost: HostCost, pace: _Pace) -> list[tuple[HostStep, Replayed]]:
        paced = at_pace(pace)
        return [(paced[at], replay(paced[at], cost)) for at in asked]

    @cache
    def at_pace(pace: _Pace) -> list[HostStep]:
        if not pace.ratios and pace.collecting_us is None:
            return recorded
        ratios = pace.ratios or (1.0,) * len(recorded)
        each = zip(recorded, ratios, by_clock(pace)[0], strict=True)
        return [_as_timed(step, ratio, pace, shares) for step, ratio, shares in each]

    @cache
    def divide(cost: HostCost, events: tuple[float, float], pace: _Pace, in_order: bool) -> list[_Divided]:
        reading = read_at(events, pace.told, pace.told, by_clock(pace)[1])
        again = zip(run_again(cost, pace), asked, strict=True)
        return [_divide(*each, matches[at], reading, in_order=in_order) for each, at in again]

    found = []
    for rule in rules:
        ratios = host.ratios(rule.speed, len(recorded)) if host else ()
        pace = _Pace(collecting_us=getattr(collecting, rule.speed) if collecting else None)
        if host and ratios:
            pace = replace(pace, ratios=ratios, told=host.told_ratio(rule.speed), by_clock=rule.by_clock)
        found.append(divide(rule.cost, (rule.operator_ns, rule.span_ns), pace, rule.in_order))
    return found


def _longest_first(lengths: Floats, whole: float) -> Floats:
    """How much of each has a part in the whole, where the longest have theirs before others: a sleep is one of them."""
    order = np.argsort(-lengths, kind="stable")
    before = np.concatenate(([0.0], np.cumsum(lengths[order])[:-1])) if len(order) else lengths
    found = np.zeros(len(lengths))
    found[order] = np.clip(whole - before, 0.0, lengths[order])
    return found


def _as_timed(step: HostStep, ratio: float, pace: _Pace, between: Floats) -> HostStep:
    """The step on a host that takes so many times as long for all but waits for the GPU, but for these shares of what
    lies between calls, and, where the pace says so, for copies from pageable memory. Its collections take as long as
    the pace says in all, where that is known; a step without any gets none."""
    by_clock = np.where(step.codes == SYNC_WAIT, 1.0, step.full / np.maximum(step.lengths, 1.0))
    by_clock = np.where(step.codes == -1, between, by_clock)
    if pace.by_clock != "none":
        pageable = np.array([PAGEABLE in name for name in step.names] + [False])
        by_clock = np.where((step.last > step.first) & pageable[step.first], 1.0, by_clock)
    ratios = by_clock + ratio * (1 - by_clock)
    if pace.collecting_us is not None:
        ratios = np.where(step.codes == GC, pace.collecting_us * 1e3 / max(step.collecting, 1.0), ratios)
    # Some work begins inside of its call.
    within = step.launch_ends - step.starts
    launch_ends = np.where(within > 0, step.starts + ratio * within, step.launch_ends)
    taken = {"lengths": ratios * step.lengths, "overhead": ratios * step.overhead, "tail": ratio * step.tail}
    return replace(step, **taken, launch_ends=launch_ends)


def estimate_recorded_idle(
    trace: Trace, recorded_us: Mapping[str, float], window: str, steps: tuple[int, int] | None
) -> IdleEstimate | None:
    """Idle time per step by cause as it was recorded, and what it may be without what recording adds: nothing, the most
    that is assumed of each event, or as much as it is known to slow a call. None of several GPUs, of a window without
    steps, of more calls than are replayed, and of a recording that a replay without costs does not come to."""
    scope = find_scope(trace, window, steps)
    devices, count = list(scope.windows), len(scope.spans)
    if len(devices) != 1 or not count or _count_calls(scope, devices[0]) > MOST_CALLS_ALONE:
        return None
    told = _tell(trace, _apart(scope, devices[0]), devices[0])
    # The profiler's own events go too.
    as_recorded = _Reading(told, 0.0, 0.0, left_out=())
    at_most = _Reading(told, ASSUMED.operator.high * 1e3, ASSUMED.span.high * 1e3)
    divided, line = np.zeros((4, len(IDLE_CAUSES))), told.timeline.line
    for step, (begins, ends, threads) in zip(told.steps, told.stretches, strict=True):
        # Each stretch is matched by itself.
        whole, matched = np.tile([0.0, 1.0], (len(begins), 1)), np.ones(len(begins), dtype=bool)
        match = _Match(line.place(threads, begins), line.place(threads, ends), whole, matched)
        left = np.where(step.codes == -1, at_most.measure(match) / np.maximum(as_recorded.measure(match), 1.0), 1.0)
        # What recording adds to events is not all: it slows what lies between them too.
        by_events = replace(step, lengths=left * step.lengths)
        alike = replace(step, lengths=np.minimum(left, 1 / MOST_SLOWED) * step.lengths)
        again = replay(by_events, _host_cost(ASSUMED, "high"))
        divided += (
            _divide(step, replay(step, HostCost()), match, as_recorded, in_order=True).causes,
            _divide(by_events, again, match, at_most, in_order=True).causes,
            _divide(by_events, again, match, at_most, in_order=False).causes,
            _divide(alike, replay(alike, HostCost()), match, at_most, in_order=True).causes,
        )
    us = np.array([recorded_us.get(cause, 0.0) for cause in IDLE_CAUSES])
    replayed = divided / count / 1e3
    if np.abs(replayed[0] - us).sum() > MOST_ASTRAY * us.sum():
        return None
    every = np.stack((us, *replayed[1:]))
    return IdleEstimate(causes=_between(us, every.min(axis=0), every.max(axis=0)))


def _between(us: Floats, low: Floats, high: Floats) -> dict[str, Between]:
    """Each cause that there may be."""
    numbers = zip(CAUSE_CODES, us.tolist(), low.tolist(), high.tolist(), strict=True)
    return {cause: Between(*ends) for cause, *ends in numbers if ends[2] > 0}


def _apart(scope: Scope, device: int) -> Scope:
    """The scope, of one step where the GPU still works for one when the next has begun."""
    begins, ends = scope.step_windows[device].T
    if (begins[1:] >= ends[:-1]).all():
        return scope
    whole = Span(0, scope.spans[0].thread, int(begins.min()), int(ends.max()))
    windows = {device: np.array([[whole.start_ns, whole.end_ns]])}
    activities = scope.activities.with_columns(step=pl.lit(0))
    return replace(scope, spans=(whole,), activities=activities, step_windows=windows)


def _count_calls(scope: Scope, device: int) -> int:
    """Calls of all steps, and what each step takes besides."""
    moments = np.sort(columns(scope.calls, "start_ns")[0])
    begins, ends = np.array([span.start_ns for span in scope.spans]), scope.step_windows[device][:, 1]
    calls = np.maximum(np.searchsorted(moments, ends) - np.searchsorted(moments, begins), 0)
    return int(calls.sum()) + CALLS_OF_STEP * len(scope.spans)


class _Divided(Struct, frozen=True, eq=False):
    """Nanoseconds of a step by cause code; those after a wait in which the GPU ran dry; those without a match."""

    causes: Floats
    after_sync: Floats
    unaligned: Floats


class _Match(Struct, frozen=True, eq=False):
    """For each stretch between calls the same one of the told recording: where on its line that begins and ends, and
    which part of it, from one share to another. Unmatched ones have all of the step."""

    begins: Ints
    ends: Ints
    shares: Floats
    matched: Bools


def _tell(trace: Trace, scope: Scope, device: int) -> Told:
    steps = host_steps(trace, scope, device)
    timeline = lay_flat(trace, np.unique(scope.calls["thread"].to_numpy()), launching_calls(scope.linked, scope.calls))
    recorded = np.stack((timeline.starts, timeline.ends), axis=1)
    stretches = []
    for step, span in zip(steps, scope.spans, strict=True):
        edges = np.cumsum(np.concatenate(([0.0], step.lengths))).astype(np.int64) + span.start_ns
        of_call = np.array([*step.threads, span.thread], dtype=np.int64)
        within = np.stack((edges[:-1], edges[1:]), axis=1)
        # The thread that launches next, or that which launched before where it records more meanwhile: autograd's
        # records nothing while it waits for work.
        launching, before = of_call[step.calls], of_call[step.calls - 1]
        own, other = (interval.covered_within(recorded, timeline.on_line(each, within)) for each in (launching, before))
        threads = np.where(other > own, before, launching)
        stretches.append(np.stack((edges[:-1], edges[1:], threads)))
    units = [_units(step) for step in steps]
    return Told(steps, units, stretches, timeline, PYTHON if (trace.host["kind"] == "op").any() else UNKNOWN)


def _match(step: HostStep, told: Told, number: int) -> _Match:
    """By the launches: what lies before the same launch is the same, call by call where these have the same names."""
    own, others, whole = _units(step), told.units[number], told.stretches[number]
    partners, alike = np.full(len(own.calls), -1), np.zeros(len(own.calls), dtype=bool)
    for at, other in _same_ends(own.launched, others.launched):
        partners[at], alike[at] = other, own.calls[at] == others.calls[other]
    silent = np.flatnonzero(step.codes == -1)
    unit = own.of_stretch[silent]
    call = np.where(alike[unit], own.call_of_stretch[silent], 0)
    # From the first to the last that lies between the same calls, or in all of the unit.
    rows = np.flatnonzero(np.isin(told.steps[number].codes, NOT_IN_CALLS))
    numbers = others.of_stretch[rows] * MOST_IN_UNIT + others.call_of_stretch[rows]
    wanted = partners[unit] * MOST_IN_UNIT + call
    first = np.searchsorted(numbers, wanted)
    behind = np.searchsorted(numbers, np.where(alike[unit], wanted + 1, wanted + MOST_IN_UNIT))
    found = behind > first
    matched = np.zeros(len(step.lengths), dtype=bool)
    matched[silent] = found
    places = np.empty((3, len(matched)), dtype=np.int64)
    places.T[:] = (whole[0].min(initial=0), whole[1].max(initial=0), whole[2, -1] if whole.shape[1] else 0)
    places[0, matched] = whole[0, rows[first[found]]]
    places[1:, matched] = whole[1:, rows[behind[found] - 1]]
    # Which part each is of all that lies there.
    numbers = unit * MOST_IN_UNIT + call
    reached = np.concatenate(([0.0], np.cumsum(step.lengths[silent])))
    low, high = reached[np.searchsorted(numbers, numbers)], reached[np.searchsorted(numbers, numbers, side="right")]
    edges = np.stack((reached[:-1] - low, reached[1:] - low), axis=1) / np.maximum(high - low, 1e-9)[:, np.newaxis]
    shares = np.tile([0.0, 1.0], (len(matched), 1))
    shares[matched] = edges[found]
    line, (begins, ends, threads) = told.timeline.line, places
    return _Match(line.place(threads, begins), line.place(threads, ends), shares, matched)


def _units(step: HostStep) -> _Units:
    edges = [0, *(np.flatnonzero(step.last > step.first) + 1).tolist(), len(step.codes)]
    calls, first, last, names = step.calls.tolist(), step.first.tolist(), step.last.tolist(), [*step.call_names, ""]
    ends = [(begin, end - 1) for begin, end in pairwise(edges) if end > begin]
    launched = [tuple(step.names[first[end] : last[end]]) for _, end in ends]
    called = [names[calls[begin] : calls[end] + 1] for begin, end in ends]
    if len(ends) < len(edges) - 1:
        launched.append(())
        called.append([])
    of_stretch = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    return _Units(launched, called, of_stretch, step.calls - step.calls[np.array(edges)[of_stretch]])


def _same_ends(own: list[tuple[str, ...]], others: list[tuple[str, ...]]) -> list[tuple[int, int]]:
    """Pairs of positions of equal keys, from the first on until two differ, and from the last back. Of the latter the
    first begins behind other work in one than in the other."""
    shorter = min(len(own), len(others))
    ahead = next((at for at in range(shorter) if own[at] != others[at]), shorter)
    behind = next((at for at in range(shorter - ahead) if own[-1 - at] != others[-1 - at]), shorter - ahead)
    if len(own) != len(others) or ahead + behind < len(own):
        behind = max(behind - 1, 0)
    return [
        *((at, at) for at in range(ahead)),
        *((len(own) - 1 - at, len(others) - 1 - at) for at in reversed(range(behind))),
    ]


class _Pace(Struct, frozen=True):
    """How long the host takes in times of each step that is run again, and of the told recording; nothing of hosts that
    are equally fast. `by_clock` as a rule has it. `collecting_us` is how long a timed call collected, where that is
    known."""

    ratios: tuple[float, ...] = ()
    told: float = 1.0
    by_clock: Literal["measured", "all", "none"] = "none"
    collecting_us: float | None = None


class _Reading:
    """The told recording's line, measured without what recording operators and spans adds to it, and without what is
    known of the other recording by itself; it takes `ratio` times as long, but for the share `by_clock` of what may be
    done by the clock."""

    def __init__(
        self,
        told: Told,
        operator_ns: float,
        span_ns: float,
        left_out: Sequence[int] = NOT_BETWEEN_CALLS,
        ratio: float = 1.0,
        by_clock: float = 1.0,
    ) -> None:
        timeline = told.timeline
        starts, ends = timeline.starts, timeline.ends
        lengths = (ends - starts).astype(np.float64)
        if operator_ns or span_ns:
            # An event costs where it begins, in its first piece.
            first = starts == timeline.begins[timeline.events]
            is_span = (timeline.table["kind"] == "annotation").to_numpy()[timeline.events]
            cost = np.where(is_span, span_ns, operator_ns)
            lengths = np.maximum(lengths - np.where(first, cost, 0.0), LEAST_SHARE * lengths)
        lengths[np.isin(timeline.codes, left_out)] = 0.0
        python_ratio = by_clock + ratio * (1 - by_clock)
        lengths *= np.where(np.isin(timeline.codes, BY_THE_CLOCK), python_ratio, ratio)
        silences = np.maximum(starts - np.concatenate(([0], ends[:-1])), 0) if len(starts) else starts
        edges = np.stack((starts, ends), axis=1).ravel()
        both = np.stack((python_ratio * silences, lengths), axis=1).ravel()
        self._edges = np.concatenate(([0], edges)).astype(np.float64)
        self._measured = np.concatenate(([0.0], np.cumsum(both)))
        codes = np.stack((np.full(len(starts), told.unrecorded), timeline.codes), axis=1).ravel()
        # How much of the measure each cause has until then; what has nothing is left out, causes too.
        kept = np.flatnonzero(both > 0)
        both, codes = both[kept], codes[kept]
        self._reached = np.append(0.0, self._measured[kept + 1])
        self._codes = np.flatnonzero(np.bincount(np.append(codes, told.unrecorded)))
        self._rows = np.append(np.searchsorted(self._codes, codes), 0)
        self._by_code = np.zeros((len(self._codes), len(both) + 1))
        np.cumsum(np.where(codes == self._codes[:, np.newaxis], both, 0.0), axis=1, out=self._by_code[:, 1:])
        self._unrecorded = told.unrecorded

    def measure(self, match: _Match) -> Floats:
        """The length of each stretch."""
        begins, ends = (self._until(each.astype(np.float64)) for each in (match.begins, match.ends))
        return ends - begins

    def causes(self, begins: Ints, ends: Ints, shares: Floats) -> Floats:
        """Of each part of a stretch of the line, from share to share of its measure, the shares of all causes."""
        found = np.zeros((len(begins), len(IDLE_CAUSES)))
        of_begin, of_end = (self._until(each.astype(np.float64)) for each in (begins, ends))
        whole = of_end - of_begin
        start, stop = (of_begin + shares[:, at] * whole for at in (0, 1))
        found[:, self._codes] = (self._causes_until(stop) - self._causes_until(start)).T
        # After the last event of the line nothing is recorded.
        last = self._measured[-1]
        found[:, self._unrecorded] += np.maximum(stop - np.maximum(start, last), 0.0)
        sums = found.sum(axis=1, keepdims=True)
        found[sums[:, 0] <= 0, self._unrecorded] = 1.0
        shares_of_causes: Floats = found / np.maximum(sums, np.where(sums > 0, 0.0, 1.0))
        return shares_of_causes

    def _causes_until(self, measured: Floats) -> Floats:
        """What each of the causes has of the line's first so much: `np.interp` of every row at once, where all but the
        cause of a piece stay as they are throughout."""
        at = np.maximum(np.searchsorted(self._reached, measured, side="right") - 1, 0)
        behind = np.minimum(at + 1, len(self._reached) - 1)
        until: Floats = self._by_code[:, at]
        own = self._rows[at], np.arange(len(at))
        width = self._reached[behind] - self._reached[at]
        slopes = (self._by_code[self._rows[at], behind] - until[own]) / np.where(width > 0, width, 1.0)
        until[own] += slopes * np.maximum(measured - self._reached[at], 0.0)
        return until

    def _until(self, moments: Floats) -> Floats:
        beyond: Floats = np.maximum(moments - self._edges[-1], 0.0)
        measured: Floats = np.interp(moments, self._edges, self._measured)
        return measured + beyond


def _divide(step: HostStep, again: Replayed, match: _Match, reading: _Reading, *, in_order: bool) -> _Divided:
    """Every gap of the replayed step, until its launch had returned by what the host did, and after that the GPU's."""
    ends = again.stretch_ends
    begins = np.concatenate(([0.0], ends[:-1]))
    over = max(float(ends[-1]) if len(ends) else 0.0, float(again.ends.max(initial=0.0)))
    order = np.argsort(again.starts, kind="stable")
    reach = np.concatenate(([0.0], np.maximum.accumulate(again.ends[order])))
    gap_starts, gap_ends = reach, np.append(again.starts[order], over)
    # Of the activities around a gap the stretch that launched them; the end of the step is the last moment's.
    launched_by = np.append(step.launched_by, -1)
    latest = np.maximum.accumulate(np.where(again.ends[order] == reach[1:], np.arange(len(order)), 0))
    before, after = np.append(-1, launched_by[order[latest]]), launched_by[np.append(order, -1)]
    until = np.where(after >= 0, np.append(ends, 0.0)[after], np.nan)
    until[-1] = over
    # Between the kernels of one graph the host is never the cause.
    of_graph = (after >= 0) & (before == after)
    until = np.clip(np.where(of_graph, gap_starts, until), gap_starts, gap_ends)
    waited = of_graph | np.append(again.waited[order], False)
    some = gap_ends > gap_starts
    gap_starts, gap_ends, until, waited = gap_starts[some], gap_ends[some], until[some], waited[some]
    causes, after_sync = np.zeros(len(IDLE_CAUSES)), np.zeros(len(IDLE_CAUSES))
    unknown = np.isnan(until)
    causes[UNKNOWN] = (gap_ends - gap_starts)[unknown].sum()
    of_gpu = np.where(unknown, 0.0, gap_ends - np.where(unknown, gap_ends, until))
    causes[CAUSE_CODES["launch_latency"]] = of_gpu[~waited].sum()
    causes[CAUSE_CODES["device"]] = of_gpu[waited].sum()

    gap_starts, until = gap_starts[~unknown], until[~unknown]
    first, last = np.searchsorted(ends, gap_starts, side="right"), np.searchsorted(begins, until, side="left")
    counts = np.maximum(last - first, 0)
    gaps = np.repeat(np.arange(len(counts)), counts)
    rows = np.arange(len(gaps)) - np.repeat(np.cumsum(counts) - counts, counts) + first[gaps]
    starts, stops = np.maximum(begins[rows], gap_starts[gaps]), np.minimum(ends[rows], until[gaps])
    lengths = np.maximum(stops - starts, 0.0)
    codes = step.codes[rows]
    parts = np.zeros((len(rows), len(IDLE_CAUSES)))
    known = codes >= 0
    parts[np.flatnonzero(known), codes[known]] = lengths[known]
    silent = np.flatnonzero(~known)
    of = rows[silent]
    # What recording added lies next to the launch.
    whole = np.maximum(step.lengths[of], 1e-9)
    shares = match.shares[of]
    if in_order:
        width = shares[:, 1] - shares[:, 0]
        inside = np.stack((starts[silent] - begins[of], stops[silent] - begins[of]), axis=1) / whole[:, np.newaxis]
        shares = shares[:, :1] + inside * width[:, np.newaxis]
    found = reading.causes(match.begins[of], match.ends[of], shares) * lengths[silent, np.newaxis]
    parts[silent] = found
    causes += parts.sum(axis=0)
    # The GPU ran dry while a call waited for it: what the host did from then on.
    dried = np.append(step.waits_for, -1)[np.minimum(first, len(step.waits_for))] >= 0
    follows = dried[gaps] & (rows > first[gaps])
    after_sync += parts[follows].sum(axis=0)
    unaligned = found[~match.matched[of]].sum(axis=0)
    return _Divided(causes, after_sync, unaligned)
