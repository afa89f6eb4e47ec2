"""What would a recorded step have been like, had recording not slowed its host?

The host of a step is a row of stretches: API calls, and what lies between them. They are run again, each launch so much
shorter; the GPU begins what was launched when the launch is through and what ran before has ended, each with the delay
that was recorded. A call that waited for the GPU waits for the same work again.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit import interval
from tracekit.analysis.kernels import GRAPH_LAUNCH
from tracekit.analysis.links import CLOCK_NS, LAUNCH_LATENCY_NS, find_before, find_on_stream, launching_calls
from tracekit.analysis.timeline import CAUSE_CODES, COLLECTING, cause_of_call, is_sync_call
from tracekit.analysis.window import Scope, columns

if TYPE_CHECKING:
    from tracekit.interval import Bools, Floats, Intervals, Ints
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
    `launched_by`, the stretch that launched it; `behind`, of a queued one that of those launched sooner which had ended
    last when it began, and `on_stream`, the one before it on its stream: -1 for none. `delays` is how long after its
    launch each began, or a queued one after the one before; `between` what is usual of the queued ones, and `latency`
    of the others. `hidden` launches were made while another thread was in a call. `collecting` is how long collections
    took in all, with the calls in them. `threads` and `call_names` are of the calls; `launches` are the names of those
    that launched, each once with how many activities, and `launch_kinds` the positions among them of the stretches that
    launched.
    """

    starts: Floats
    ends: Floats
    launch_ends: Floats
    launched_by: Ints
    behind: Ints
    on_stream: Ints
    delays: Floats
    between: float
    latency: float
    names: list[str]
    hidden: int
    collecting: float
    threads: list[int]
    call_names: list[str]
    launches: list[tuple[str, int]]
    launch_kinds: Ints
    lengths: Floats
    overhead: Floats
    full: Floats
    calls: Ints
    codes: Ints
    first: Ints
    last: Ints
    waits_for: Ints
    tail: Floats


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
    launches = launches_of_all[rows]
    # A copy that held its caller was launched when it began.
    held = waits_from[outer] >= 0
    launched = np.where(held, np.clip(waits_from[outer] - begin, call_starts, call_ends), call_ends)

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
    waits = np.array([is_sync_call(name) for name in names], dtype=bool) & (first == last)
    kinds = list(zip(names, (launches | held | (first != last)).tolist(), strict=True))
    causes = {kind: CAUSE_CODES[cause_of_call(kind[0], starts_work=kind[1])] for kind in set(kinds)}
    call_codes = np.array([causes[kind] for kind in kinds], dtype=np.int64)
    # What lies between two calls, and after the last one.
    between = np.stack((np.append(0, call_ends), np.append(call_starts, end - begin)), axis=1)
    collected = _one_by_one(gc_starts, gc_ends)
    at, around = interval.overlaps(collected, between)
    silent, of_silent = interval.holes(collected, between)
    collecting_from = np.maximum(collected[at, 0], between[around, 0])
    collecting_to = np.minimum(collected[at, 1], between[around, 1])
    holding = np.flatnonzero(held & ~waits)
    stretches = [
        (around, collecting_from, collecting_to, CAUSE_CODES["gc"], 0, 0),
        (of_silent, *silent.T, -1, 0, 0),
        (np.arange(len(names)), call_starts, np.where(waits, call_ends, launched), call_codes, first, last),
        (holding, launched[holding], call_ends[holding], CAUSE_CODES["sync_wait"], last[holding], last[holding]),
    ]
    numbers = np.concatenate([np.stack(np.broadcast_arrays(*each)) for each in stretches], axis=1)
    calls_of, froms, tos, codes, begins, stops = numbers[:, np.lexsort(numbers[1::-1])]
    lengths, waits_for, tail = tos - froms, np.full(len(codes), -1), np.zeros(len(codes), dtype=np.int64)
    activity_ends = ends.tolist()
    for row in np.flatnonzero((codes == CAUSE_CODES["sync_wait"]) & (begins == stops)).tolist():
        waits_for[row], tail[row] = _wait(int(froms[row]), int(tos[row]), activity_ends, int(stops[row]))
    launched_by = np.full(len(starts), -1)
    launched_by[len(starts) - (stops - begins).sum() :] = np.repeat(np.arange(len(codes)), stops - begins)
    edges = np.concatenate(([0], np.cumsum(lengths)))
    within = np.stack((edges[:-1], edges[1:]), axis=1)
    launching = np.flatnonzero(stops > begins)
    counts = (stops - begins)[launching].tolist()
    launch_kinds = [(names[call], count) for call, count in zip(calls_of[launching].tolist(), counts, strict=True)]
    numbered = {kind: number for number, kind in enumerate(dict.fromkeys(launch_kinds))}
    overhead, full = (interval.covered_within(found, within).astype(np.float64) for found in overhead_and_full)
    return HostStep(
        starts=starts.astype(np.float64),
        ends=ends.astype(np.float64),
        launch_ends=launch_ends.astype(np.float64),
        launched_by=launched_by,
        behind=np.where(queued, before, -1),
        on_stream=on_stream,
        delays=delays,
        between=float(np.median(delays[queued])) if queued.any() else BETWEEN_KERNELS_NS,
        latency=float(np.median(alone)) if len(alone) else LAUNCH_LATENCY_NS,
        names=work["name"].to_list(),
        hidden=hidden,
        collecting=float(interval.length(interval.union(gc_starts, gc_ends))),
        threads=threads,
        call_names=names,
        launches=[*numbered],
        launch_kinds=np.array([numbered[kind] for kind in launch_kinds], dtype=np.int64),
        lengths=lengths.astype(np.float64),
        overhead=overhead,
        full=full,
        calls=calls_of,
        codes=codes,
        first=begins,
        last=stops,
        waits_for=waits_for,
        tail=tail.astype(np.float64),
    )


def _one_by_one(starts: Ints, ends: Ints) -> Intervals:
    """The stretches in order, without what an earlier one covers."""
    order = np.lexsort((ends, starts))
    starts, ends = starts[order], ends[order]
    reach = np.concatenate(([0], np.maximum.accumulate(ends)[:-1])) if len(ends) else ends
    return np.stack((np.maximum(starts, reach), ends), axis=1)[ends > reach]


def _wait(start: int, stop: int, ends: list[int], launched: int) -> tuple[int, int]:
    """For which of the activities that were `launched`, so many, which ended so; and how long it went on after that."""
    looked_at = range(max(launched - MOST_LOOKED_AT, 0), launched)
    waited = max((at for at in looked_at if ends[at] <= stop + CLOCK_NS), key=ends.__getitem__, default=-1)
    return waited, stop - max(start, ends[waited]) if waited >= 0 else stop - start


def replay(step: HostStep, cost: HostCost) -> Replayed:
    """The step again, its host so much faster."""
    lengths = np.maximum(step.lengths - step.overhead, 0.0) if cost.own_events else step.lengths
    # Of launches what recording adds to the call, and to what lies right before it.
    rows = np.flatnonzero(step.last > step.first)
    calls, costs = step.calls[rows], np.array([cost.of_launch(*kind) for kind in step.launches])
    length, follows = lengths[rows], (rows > 0) & (step.codes[rows - 1] == -1) & (step.calls[rows - 1] == calls)
    both = length + np.where(follows, lengths[rows - 1], 0.0)
    added = np.minimum(costs[step.launch_kinds], np.maximum(both - LEAST_NS, 0.0))
    most = np.maximum(length - LEAST_NS, 0.0)
    of_call = np.minimum(added, most) if cost.in_call else added * (length / np.maximum(both, LEAST_NS))
    took, left, sooner = lengths.copy(), np.ones(len(lengths)), np.zeros(len(lengths))
    took[rows] -= added
    recorded = step.lengths[rows]
    left[rows] = np.where(recorded > 0, (length - of_call) / np.where(recorded > 0, recorded, 1.0), 1.0)
    sooner[rows] = of_call if cost.after_start else 0.0
    # What was launched before the step, or by a call that is not recorded, is where it was.
    activities = np.flatnonzero(step.launched_by >= 0)
    of = step.launched_by[activities]
    # Of a CUDA graph some work begins before the call returns: no sooner than in as much of the call. On a slower host
    # nothing may hold a queued one up but its own launch.
    after = (step.starts - step.launch_ends)[activities] + sooner[of]
    longest = np.where(step.behind[activities] >= 0, np.minimum(after, step.latency), after)
    after_launch = np.where(after > 0, longest, after * left[of])
    gaps = np.minimum(step.starts - step.ends[step.on_stream], step.between)
    columns_told = (step.behind, step.delays, step.on_stream, gaps, step.ends, step.starts)
    told = [each[activities].tolist() for each in columns_told]
    # What has no work before it, that is at position -1, waits for nothing.
    starts, ends, waited = step.starts.tolist(), [*step.ends.tolist(), -np.inf], (step.behind >= 0).tolist()
    stretch_ends, now = np.zeros(len(lengths)), 0.0
    waits = np.flatnonzero(step.waits_for >= 0)
    tails = np.maximum(step.tail - cost.sync, np.minimum(step.tail, LEAST_NS))
    for before, wait in pairwise((-1, *waits.tolist(), len(lengths))):
        # The host up to where it waits, and what the GPU makes of its launches.
        stretch_ends[before + 1 : wait] = np.cumsum(np.concatenate(([now], took[before + 1 : wait])))[1:]
        now = float(stretch_ends[wait - 1]) if wait else 0.0
        low, high = np.searchsorted(of, (before, wait)).tolist()
        launched = (stretch_ends[of[low:high]] + after_launch[low:high]).tolist()
        each = zip(activities[low:high].tolist(), launched, *(column[low:high] for column in told), strict=True)
        for one, launch, behind, delay, on_stream, gap, own_end, own_start in each:
            ready, free = ends[behind] + delay, ends[on_stream] + gap
            # `max` would take five times as long.
            begun = ready if ready > launch else launch
            begun = free if free > begun else begun
            waited[one] = begun > launch or ready == launch
            starts[one], ends[one] = begun, begun + own_end - own_start
        if wait < len(lengths):
            now = max(now, max(now, ends[step.waits_for[wait]]) + float(tails[wait]))
            stretch_ends[wait] = now
    stretch_ends[rows[follows] - 1] -= (added - of_call)[follows]
    return Replayed(stretch_ends, np.array(starts), np.array(ends[:-1]), np.array(waited, dtype=bool))
