"""When had a GPU nothing to run, and which launch ended that?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis import interval
from tracekit.analysis.devices import busy_intervals
from tracekit.analysis.window import Scope, columns
from tracekit.model.trace import Trace

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of one device as columns. `thread` is the host thread that decides the causes, -1 where none is known:
    the one that launched what ended the gap, else that of the step. `other` is the thread that launched what ran before
    the gap, else that of the step; it is looked at where `thread` records nothing.

    `call` is the row of the call that launched the ending activity, `called_ns` and `launched_ns` are when it began and
    returned; -1 where no such call is recorded or nothing ends the gap. Between two activities of one call (a CUDA
    graph's) the gap counts as launched when it began. `after` and `before` are the activities around a gap by their
    position in `names`, -1 at the window's edges."""

    device: int
    starts: Ints
    ends: Ints
    thread: Ints
    other: Ints
    call: Ints
    called_ns: Ints
    launched_ns: Ints
    after: Ints
    before: Ints
    names: pl.Series


def find_gaps(trace: Trace, scope: Scope, device: int) -> Gaps:
    """The maximal idle stretches of the device in its window, in order."""
    holes = interval.complement(busy_intervals(trace, device), scope.windows[device])
    # The trace's own activities, not the window's: what ends a gap may have been launched before the step.
    joined = scope.linked.filter(pl.col("device") == device).join(
        scope.calls.select("call", called_ns="start_ns", launched_ns="end_ns", launched_on="thread"),
        on="call",
        how="left",
        maintain_order="left",
    )
    starts, ends = columns(joined, "start_ns", "end_ns")
    before, after = _starting_at(starts, holes[:, 1]), _ending_at(ends, holes[:, 0])
    calls, called, launched, threads = columns(joined, "call", "called_ns", "launched_ns", "launched_on")
    of_step = _threads_of_steps(scope, holes)
    launched_ns, call = _at(launched, before), _at(calls, before)
    within_one_call = (call >= 0) & (call == _at(calls, after))
    previous = _at(threads, after)
    return Gaps(
        device=device,
        starts=holes[:, 0],
        ends=holes[:, 1],
        thread=np.where(before >= 0, _at(threads, before), of_step),
        other=np.where(previous >= 0, previous, of_step),
        call=call,
        called_ns=_at(called, before),
        launched_ns=np.where(within_one_call, holes[:, 0], launched_ns),
        after=after,
        before=before,
        names=joined["name"],
    )


def _at(values: Ints, positions: Ints) -> Ints:
    """The values at these positions; -1 for the position -1."""
    return np.concatenate((values, [-1]))[positions]


def _starting_at(starts: Ints, moments: Ints) -> Ints:
    """The activity that starts when each gap ends; -1 where the window itself ends there."""
    following = np.searchsorted(starts, moments, side="left")
    found = _at(starts, np.where(following < len(starts), following, -1)) == moments
    return np.where(found, following, -1)


def _ending_at(ends: Ints, moments: Ints) -> Ints:
    """The activity that ended when each gap began; -1 where the window itself began there."""
    if not len(ends):
        return np.full(len(moments), -1, dtype=np.int64)
    order = np.argsort(ends, kind="stable")
    at = np.minimum(np.searchsorted(ends[order], moments, side="left"), len(ends) - 1)
    return np.where(ends[order][at] == moments, order[at], -1)


def _threads_of_steps(scope: Scope, holes: interval.Intervals) -> Ints:
    """The thread of the step in which each gap begins, -1 without steps."""
    if not scope.spans:
        return np.full(len(holes), -1, dtype=np.int64)
    starts = np.array([span.start_ns for span in scope.spans], dtype=np.int64)
    threads = np.array([span.thread for span in scope.spans], dtype=np.int64)
    return threads[np.maximum(np.searchsorted(starts, holes[:, 0], side="right") - 1, 0)]


def cut_by_steps(scope: Scope, gaps: Gaps) -> tuple[Gaps, Ints]:
    """The parts of the gaps that lie in each step's own window, and the step of each part by its position.

    Where steps overlap on the GPU a part is in each of them, as it is in their idle times.
    """
    windows = scope.step_windows.get(gaps.device, interval.EMPTY)
    first = np.searchsorted(gaps.ends, windows[:, 0], side="right")
    counts = np.maximum(np.searchsorted(gaps.starts, windows[:, 1], side="left") - first, 0)
    steps = np.repeat(np.arange(len(windows), dtype=np.int64), counts)
    rows = np.arange(len(steps), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts) + first[steps]
    taken = {name: getattr(gaps, name)[rows] for name in PER_GAP}
    starts, ends = np.maximum(taken["starts"], windows[steps, 0]), np.minimum(taken["ends"], windows[steps, 1])
    return replace(gaps, **{**taken, "starts": starts, "ends": ends}), steps


#: The columns of `Gaps`.
PER_GAP = ("starts", "ends", "thread", "other", "call", "called_ns", "launched_ns", "after", "before")
