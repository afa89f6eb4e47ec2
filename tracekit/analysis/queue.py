"""How far did the host run ahead of the GPU? Launch-to-start delays, the queue's length, and when the GPU starved."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis import interval
from tracekit.analysis.devices import busy_intervals
from tracekit.analysis.launches import GRAPH_LAUNCH
from tracekit.analysis.window import Scope, columns
from tracekit.model.analysis import DeviceQueue, Percentiles
from tracekit.model.trace import Trace

Ints = NDArray[np.int64]

#: The window is cut into so many equal slices for the queue's length over time.
SLICES = 60


def measure_queues(trace: Trace, scope: Scope) -> tuple[DeviceQueue, ...] | None:
    """One for each device; None where no activity of the window is joined to a call."""
    if not scope.activities["call"].drop_nulls().len():
        return None
    linked = _with_calls(scope)
    return tuple(_measure(trace, scope, device, linked.filter(pl.col("device") == device)) for device in scope.windows)


def waiting_over_time(scope: Scope, device: int) -> tuple[Ints, Ints]:
    """The queue's length from each moment on, in order; 0 before the first."""
    items = _as_items(_with_calls(scope).filter(pl.col("device") == device))
    return _count_over_time(*(np.sort(each) for each in columns(items, "handed_ns", "start_ns")))


def _with_calls(scope: Scope) -> pl.DataFrame:
    """The trace's activities with what is known of the calls that launched them."""
    names = scope.calls.select("call", called_ns="start_ns", returned_ns="end_ns", launched_by="name")
    return scope.linked.join(names, on="call", how="left", maintain_order="left")


def _measure(trace: Trace, scope: Scope, device: int, linked: pl.DataFrame) -> DeviceQueue:
    items = _as_items(linked)
    handed, starts, ends = (np.sort(each) for each in columns(items, "handed_ns", "start_ns", "end_ns"))
    window = scope.windows[device]
    flying, waiting = _count_over_time(handed, ends), _count_over_time(handed, starts)
    # All that ran, also what was launched outside the window: it is in the way all the same.
    idle = interval.complement(busy_intervals(trace, device), window)
    busy = interval.complement(idle, window)
    delayed, backed_up = (_time_above_zero(*each) for each in ((flying, idle), (waiting, busy)))
    slices = _slices(window)
    own = _own_items(items, scope, device)
    graphs = own.filter(pl.col("of_graph"))
    singles = own.filter(~pl.col("of_graph") & (pl.col("kind") == "kernel"))
    return DeviceQueue(
        device=device,
        items=own.height,
        starved_items=_count_starved(own, handed, ends),
        kernels_in_graphs=int(graphs["kernels"].sum()),
        unlinked=_unlinked(scope, device),
        delays=_delays(singles),
        graph_delays=_delays(graphs),
        starved_us=(interval.length(idle) - delayed) / 1e3,
        delayed_us=delayed / 1e3,
        hand_to_mouth_us=(interval.length(busy) - backed_up) / 1e3,
        backed_up_us=backed_up / 1e3,
        mean_depth=float(_integral(*waiting, window).sum() / max(interval.length(window), 1)),
        most_depth=_most(*waiting, window),
        depths=tuple(round(float(each), 3) for each in _means(*waiting, slices)),
    )


def _as_items(linked: pl.DataFrame) -> pl.DataFrame:
    """One row for each call's work, and one for each activity whose call was not recorded."""
    known = linked.filter(pl.col("call").is_not_null())
    items = known.group_by("call", maintain_order=True).agg(
        pl.col("start_ns").min(),
        pl.col("end_ns").max(),
        pl.col("called_ns").first(),
        pl.col("returned_ns").first(),
        pl.col("kind").first(),
        kernels=(pl.col("kind") == "kernel").sum(),
        of_graph=pl.col("launched_by").first().str.contains(GRAPH_LAUNCH, literal=True),
    )
    unknown = linked.filter(pl.col("call").is_null()).select(
        pl.col("call"),
        pl.col("start_ns"),
        pl.col("end_ns"),
        called_ns=pl.col("start_ns"),
        returned_ns=pl.col("start_ns"),
        kind=pl.col("kind"),
        kernels=pl.lit(0, dtype=items.schema["kernels"]),
        of_graph=pl.lit(value=False),
    )
    return pl.concat([items, unknown]).with_columns(handed_ns=pl.min_horizontal("returned_ns", "start_ns"))


def _own_items(items: pl.DataFrame, scope: Scope, device: int) -> pl.DataFrame:
    """Those of the window, whose call was recorded."""
    calls = scope.activities.filter(pl.col("device") == device)["call"].drop_nulls().unique()
    return items.filter(pl.col("call").is_in(calls.implode()))


def _unlinked(scope: Scope, device: int) -> int:
    return int(scope.activities.filter(pl.col("device") == device)["call"].null_count())


def _delays(items: pl.DataFrame) -> Percentiles | None:
    """From the call's return to the start; 0 where the work began before that."""
    if not items.height:
        return None
    started, returned = columns(items, "start_ns", "returned_ns")
    delays = np.maximum(started - returned, 0) / 1e3
    p10, p50, p90, p99 = (float(each) for each in np.percentile(delays, (10, 50, 90, 99)))
    return Percentiles(len(delays), p10, p50, p90, p99, float(delays.max()))


def _count_starved(own: pl.DataFrame, handed: Ints, ends: Ints) -> int:
    """The items that found nothing in flight but themselves."""
    (moments,) = columns(own, "handed_ns")
    before = np.searchsorted(handed, moments, side="left")
    # Of those handed over at the same moment the first may have found nothing.
    same = np.searchsorted(handed, moments, side="right") - before
    empty = before <= np.searchsorted(ends, moments, side="right")
    return int(empty[same == 1].sum() + len(np.unique(moments[(same > 1) & empty])))


def _count_over_time(begun: Ints, over: Ints) -> tuple[Ints, Ints]:
    """How many have begun and are not over: from each moment on, that many. Both sorted; 0 before the first."""
    # At one moment the ends come first, so that nothing is counted that takes no time. The two are sorted runs, which a
    # stable sort only merges.
    both = np.concatenate((over, begun))
    order = np.argsort(both, kind="stable")
    return both[order], np.cumsum(np.where(order < len(over), -1, 1))


def _integral(moments: Ints, counts: Ints, within: interval.Intervals) -> Ints:
    """Count times nanoseconds, for each of the intervals."""
    if not len(moments):
        return np.zeros(len(within), dtype=np.int64)
    steps = np.concatenate(([0], np.cumsum(counts[:-1] * np.diff(moments))))

    def until(at: Ints) -> Ints:
        last = np.searchsorted(moments, at, side="right") - 1
        since = np.where(last >= 0, counts[last] * (at - moments[last]), 0)
        return np.where(last >= 0, steps[last], 0) + since

    found: Ints = until(within[:, 1]) - until(within[:, 0])
    return found


def _time_above_zero(curve: tuple[Ints, Ints], within: interval.Intervals) -> int:
    moments, counts = curve
    return int(_integral(moments, (counts > 0).astype(np.int64), within).sum())


def _most(moments: Ints, counts: Ints, window: interval.Intervals) -> int:
    """The largest count at some time of the window."""
    most = 0
    for begin, end in window:
        first, last = np.searchsorted(moments, begin, side="right") - 1, np.searchsorted(moments, end, side="left")
        most = max(most, int(counts[max(int(first), 0) : int(last)].max(initial=0)))
    return most


def _slices(window: interval.Intervals) -> interval.Intervals:
    """Equal parts of the time from the window's first moment to its last."""
    if not len(window):
        return interval.EMPTY
    edges = np.linspace(int(window[0, 0]), int(window[-1, 1]), SLICES + 1).astype(np.int64)
    return np.stack((edges[:-1], edges[1:]), axis=1)


def _means(moments: Ints, counts: Ints, slices: interval.Intervals) -> NDArray[np.float64]:
    lengths = np.maximum(slices[:, 1] - slices[:, 0], 1)
    means: NDArray[np.float64] = _integral(moments, counts, slices) / lengths
    return means
