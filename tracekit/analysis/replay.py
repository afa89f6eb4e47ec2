"""What would a recorded step have been like, had recording not slowed its host?

The host of a step is a row of stretches: API calls, and what lies between them. They are run again, each launch so much
shorter; the GPU begins what was launched when the launch is through and what ran before has ended, each with the delay
that was recorded. A call that waited for the GPU waits for the same work again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from msgspec import Struct, field

from tracekit import interval
from tracekit.analysis.kernels import GRAPH_LAUNCH
from tracekit.analysis.links import CLOCK_NS, LAUNCH_LATENCY_NS, find_before, find_on_stream, launching_calls
from tracekit.analysis.timeline import CAUSE_CODES, COLLECTING, cause_of_call, is_sync_call
from tracekit.analysis.window import Scope, columns

if TYPE_CHECKING:
    from tracekit.interval import Bools, Floats, Intervals
    from tracekit.model.trace import Trace

#: Inductor launches Triton kernels so, and libraries what is theirs, among it all matrix products, so; Triton's own
#: launcher too.
DRIVER_LAUNCH, LIBRARY_LAUNCHES = "cuLaunchKernel", ("cuLaunchKernelEx", "cudaLaunchKernelExC")
COPY = "Memcpy"
#: The one overhead that CUPTI tells of which is none of its own: a launch waits until the GPU's queue has room.
QUEUE_FULL = "Command Buffer Full"
#: Of a call and what lies before it at least so much is left, whatever recording is said to add.
LEAST_NS = 500.0
#: From the end of a kernel to the start of one that was queued behind it, where a step shows none.
BETWEEN_KERNELS_NS = 1000.0
#: A wait is for one of so many activities that were launched last.
MOST_LOOKED_AT = 64


class HostCost(Struct, frozen=True):
    """What recording adds to the host, in nanoseconds: to a call that launches one kernel by the runtime, by the driver
    or as libraries do, to one that copies, to one that launches a CUDA graph, for each activity of that graph, and to
    one that waits. `in_call` says whether it is taken from the call itself first, or from it and what lies before it
    alike, `after_start` whether the work had been handed over before it: then it delayed nothing on the GPU.
    `own_events` says whether the profiler's own events, which the trace holds, are taken off too."""

    launch: float = 0.0
    driver_launch: float = 0.0
    library_launch: float = 0.0
    copy: float = 0.0
    graph_launch: float = 0.0
    graph_node: float = 0.0
    sync: float = 0.0
    in_call: bool = True
    after_start: bool = False
    own_events: bool = False

    def of_launch(self, call: str, activities: int) -> float:
        """What it adds to a call of this name that launched so many."""
        if GRAPH_LAUNCH in call:
            return self.graph_launch + self.graph_node * activities
        if COPY in call:
            return self.copy
        if call.startswith(LIBRARY_LAUNCHES):
            return self.library_launch
        return self.driver_launch if call.startswith(DRIVER_LAUNCH) else self.launch


class HostStep(Struct, frozen=True, eq=False):
    """One step as it was recorded, in nanoseconds from its start.

    A row for each stretch of the host, in order, without holes: `lengths`; `overhead`, what of that the profiler's own
    events took, and `full`, in how much of it the GPU's queue had no room; `calls`, the position of its API call among
    those of the step, or of the next one where it lies between two; `codes`, the cause of a call or a collection by
    itself, -1 for what lies between calls. `first` and `last` are the positions of the activities that it launched
    (none where they are equal), `waits_for` that of the activity whose end it waited for (-1: none) and `tail` how long
    it went on after that, by clocks that differ a little.

    Activities are in the order of their launches: `starts`, `ends`; `launch_ends`, when the call had returned;
    `behind`, of a queued one that of those launched sooner which had ended last when it began, and `on_stream`, the one
    before it on its stream: -1 for none. `delays` is how long after its launch each began, or a queued one after the
    one before; `between` what is usual of the queued ones, and `latency` of the others. `hidden` launches were made
    while another thread was in a call. `collecting` is how long collections took in all, with the calls in them.
    `threads` and `call_names` are of the calls.
    """

    starts: list[float]
    ends: list[float]
    launch_ends: list[float]
    behind: list[int]
    on_stream: list[int]
    delays: list[float]
    between: float
    latency: float
    names: list[str]
    hidden: int
    collecting: float
    threads: list[int]
    call_names: list[str]
    lengths: list[float] = field(default_factory=list)
    overhead: list[float] = field(default_factory=list)
    full: list[float] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    waits_for: list[int] = field(default_factory=list)
    tail: list[float] = field(default_factory=list)


class Replayed(Struct, frozen=True, eq=False):
    """When each stretch of the host ended, the first beginning at 0; when each activity started and ended, and whether
    it `waited` for other work, not for its own launch."""

    stretch_ends: Floats
    starts: Floats
    ends: Floats
    waited: Bools


def host_steps(trace: Trace, scope: Scope, device: int) -> list[HostStep]:
    """Every step of the window."""
    held = launching_calls(scope.linked, scope.calls)
    work = scope.activities.filter(pl.col("device") == device)
    collections = trace.host.filter(pl.col("name").is_in(COLLECTING))
    of_profiler = trace.host.filter(pl.col("kind") == "overhead")
    is_full = pl.col("name") == QUEUE_FULL
    overhead, full = (
        interval.union(*columns(of_profiler.filter(which), "start_ns", "end_ns")) for which in (~is_full, is_full)
    )
    known = scope.calls.join(held.with_columns(launches=True), on="call", how="left", maintain_order="left")
    steps = []
    for number, span in enumerate(scope.spans):
        begin, end = span.start_ns, int(scope.step_windows[device][number, 1])
        own = work.filter(pl.col("step") == number)
        # A thread that only waits for the GPU holds up none that launches.
        launching = pl.col("thread").is_in([span.thread, *own["launched_on"].drop_nulls().unique()])
        within = (pl.col("start_ns") >= begin) & (pl.col("start_ns") < end)
        calls, gc = known.filter(within & launching), collections.filter(within)
        steps.append(_host_step(calls, own, gc, (overhead - begin, full - begin), begin, end))
    return steps


def _host_step(
    calls: pl.DataFrame,
    work: pl.DataFrame,
    collections: pl.DataFrame,
    overhead_and_full: tuple[Intervals, Intervals],
    begin: int,
    end: int,
) -> HostStep:
    called, returned, waits_from = columns(calls, "start_ns", "end_ns", "waits_from_ns")
    # One inside another is a part of it.
    reach = np.concatenate(([begin], np.maximum.accumulate(returned)[:-1])) if len(returned) else returned
    outer = returned > reach
    rows = np.flatnonzero(outer)
    call_starts = np.maximum(called, reach)[outer] - begin
    call_ends = np.minimum(returned[outer], end) - begin
    names, threads = calls["name"].gather(rows).to_list(), calls["thread"].gather(rows).to_list()
    of_all, launches_of_all = calls["thread"].to_numpy(), calls["launches"].fill_null(value=False).to_numpy()
    around = np.maximum.accumulate(np.where(outer, np.arange(len(outer)), 0))
    hidden = int((launches_of_all & ~outer & (of_all != of_all[around])).sum())
    launches = launches_of_all[rows].tolist()
    # A copy that held its caller was launched when it began.
    held = waits_from[outer] >= 0
    launched = np.where(held, np.clip(waits_from[outer] - begin, call_starts, call_ends), call_ends)
    waits = np.where(held, launched, -1).tolist()

    (moments,) = columns(work, "called_ns")
    of_call = np.searchsorted(called[outer], moments, side="right") - 1
    order = np.lexsort((work["start_ns"].to_numpy(), of_call))
    work, of_call = work[order], of_call[order]
    starts, ends = (each - begin for each in columns(work, "start_ns", "end_ns"))
    on_stream = find_on_stream(work)
    first = np.searchsorted(of_call, np.arange(len(rows)), side="left")
    last = np.searchsorted(of_call, np.arange(len(rows)), side="right")
    launch_ends = np.where(of_call >= 0, launched[of_call] if len(launched) else 0, starts)
    before = find_before(starts, ends, on_stream)
    # What was queued behind work of another step begins as long after its launch as it did.
    queued = work["queued"].to_numpy() & (before >= 0)
    delays = np.where(queued, starts - ends[before], starts - launch_ends).astype(np.float64)
    alone = delays[~queued & (delays > 0)]
    gc_starts, gc_ends = (np.clip(each - begin, 0, end - begin) for each in columns(collections, "start_ns", "end_ns"))
    step = HostStep(
        starts=starts.tolist(),
        ends=ends.tolist(),
        launch_ends=launch_ends.tolist(),
        behind=np.where(queued, before, -1).tolist(),
        on_stream=on_stream.tolist(),
        delays=delays.tolist(),
        between=float(np.median(delays[queued])) if queued.any() else BETWEEN_KERNELS_NS,
        latency=float(np.median(alone)) if len(alone) else LAUNCH_LATENCY_NS,
        names=work["name"].to_list(),
        hidden=hidden,
        collecting=float(interval.length(interval.union(gc_starts, gc_ends))),
        threads=threads,
        call_names=names,
    )
    gc = deque(sorted(zip(gc_starts.tolist(), gc_ends.tolist(), strict=True)))
    reached = 0
    bounds = zip(call_starts.tolist(), call_ends.tolist(), strict=True)
    for at, (start, stop) in enumerate(bounds):
        _add_between(step, reached, start, at, gc)
        none = int(first[at]) == int(last[at])
        if is_sync_call(names[at]) and none:
            _add_wait(step, start, stop, at, int(first[at]))
        elif waits[at] >= 0:
            _add(step, waits[at] - start, at, cause_of_call(names[at], starts_work=True), int(first[at]), int(last[at]))
            _add_wait(step, waits[at], stop, at, int(last[at]))
        else:
            code = cause_of_call(names[at], starts_work=launches[at] or not none)
            _add(step, stop - start, at, code, int(first[at]), int(last[at]))
        reached = stop
    _add_between(step, reached, end - begin, len(names), gc)
    edges = np.cumsum([0.0, *step.lengths]).astype(np.int64)
    stretches = np.stack((edges[:-1], edges[1:]), axis=1)
    for kept, found in zip((step.overhead, step.full), overhead_and_full, strict=True):
        kept.extend(interval.covered_within(found, stretches).tolist())
    return step


def _add_between(step: HostStep, start: int, stop: int, call: int, gc: deque[tuple[int, int]]) -> None:
    """What lies between two calls, collections apart; those that are over are taken from `gc`."""
    while gc and gc[0][0] < stop:
        begun, over = gc[0]
        if over > start:
            if begun > start:
                _add(step, begun - start, call, None)
            _add(step, min(over, stop) - max(begun, start), call, "gc")
            start = min(over, stop)
        if over > stop:
            break
        gc.popleft()
    if stop > start:
        _add(step, stop - start, call, None)


def _add_wait(step: HostStep, start: int, stop: int, call: int, launched: int) -> None:
    known = [at for at in range(max(launched - MOST_LOOKED_AT, 0), launched) if step.ends[at] <= stop + CLOCK_NS]
    waited = max(known, key=step.ends.__getitem__, default=-1)
    tail = stop - max(start, step.ends[waited]) if waited >= 0 else stop - start
    _add(step, stop - start, call, "sync_wait", waits_for=waited, tail=tail)


def _add(
    step: HostStep,
    length: float,
    call: int,
    cause: str | None,
    first: int = 0,
    last: int = 0,
    *,
    waits_for: int = -1,
    tail: float = 0.0,
) -> None:
    step.lengths.append(float(length))
    step.calls.append(call)
    step.codes.append(-1 if cause is None else CAUSE_CODES[cause])
    step.first.append(first)
    step.last.append(last)
    step.waits_for.append(waits_for)
    step.tail.append(float(tail))


def replay(step: HostStep, cost: HostCost) -> Replayed:
    """The step again, its host so much faster."""
    # What was launched before the step, or by a call that is not recorded, is where it was.
    starts, ends, waited = list(step.starts), list(step.ends), [at >= 0 for at in step.behind]
    stretch_ends = [0.0] * len(step.lengths)
    now, lengths = 0.0, step.lengths
    if cost.own_events:
        lengths = np.maximum(np.array(lengths) - np.array(step.overhead), 0.0).tolist()
    for at, length in enumerate(lengths):
        first, last, awaited = step.first[at], step.last[at], step.waits_for[at]
        if awaited >= 0:
            left = max(step.tail[at] - cost.sync, min(step.tail[at], LEAST_NS))
            now = max(now, max(now, ends[awaited]) + left)
        elif last > first:
            added = cost.of_launch(step.call_names[step.calls[at]], last - first)
            follows = at > 0 and step.codes[at - 1] == -1 and step.calls[at - 1] == step.calls[at]
            quiet = lengths[at - 1] if follows else 0.0
            added = min(added, max(length + quiet - LEAST_NS, 0.0))
            share = length / max(length + quiet, LEAST_NS)
            of_call = min(added, max(length - LEAST_NS, 0.0)) if cost.in_call else added * share
            if follows:
                stretch_ends[at - 1] -= added - of_call
            now += length - added
            left = (length - of_call) / step.lengths[at] if step.lengths[at] else 1.0
            sooner = of_call if cost.after_start else 0.0
            for one in range(first, last):
                begun, waited[one] = _begin(step, one, now, left, sooner, ends)
                starts[one], ends[one] = begun, begun + step.ends[one] - step.starts[one]
        else:
            now += length
        stretch_ends[at] = now
    return Replayed(np.array(stretch_ends), np.array(starts), np.array(ends), np.array(waited, dtype=bool))


def _begin(
    step: HostStep, one: int, launched: float, left: float, handed_over: float, ends: list[float]
) -> tuple[float, bool]:
    """When an activity begins whose call returned at `launched`, with so much `left` of the call, given when others
    ended; and whether it waited for one of these. `handed_over` is how long before the recorded return it had been."""
    # Of a CUDA graph some work begins before the call returns: no sooner than in as much of the call.
    after = step.starts[one] - step.launch_ends[one] + handed_over
    if step.behind[one] >= 0:
        # On a slower host nothing may hold it up but its own launch.
        begun = launched + (min(after, step.latency) if after > 0 else after * left)
        behind = ends[step.behind[one]] + step.delays[one]
        begun, waited = max(begun, behind), behind >= begun
    else:
        begun, waited = launched + (after if after > 0 else after * left), False
    on_stream = step.on_stream[one]
    if on_stream >= 0:
        behind = ends[on_stream] + min(step.starts[one] - step.ends[on_stream], step.between)
        begun, waited = max(begun, behind), waited or behind > begun
    return begun, waited
