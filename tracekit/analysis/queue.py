"""How far did the host run ahead of the GPU? Launch-to-start delays, the queue's length, and when the GPU starved."""

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.analysis.devices import busy_intervals
from tracekit.analysis.kernels import GRAPH_LAUNCH
from tracekit.analysis.window import Scope, columns
from tracekit.interval import Intervals, Ints
from tracekit.model.analysis import DeviceQueue, Percentiles
from tracekit.model.trace import Trace

#: The window is cut into so many equal slices for the queue's length over time.
SLICES = 60


def measure_queues(trace: Trace, scope: Scope) -> tuple[DeviceQueue, ...] | None:
    """One for each device; None where no activity of the window is joined to a call."""
    if not scope.activities["call"].drop_nulls().len():
        return None
    return tuple(_measure(trace, scope, device) for device in scope.windows)


def waiting_over_time(scope: Scope, device: int) -> tuple[Ints, Ints]:
    """The queue's length from each moment on, in order; 0 before the first."""
    return _count_over_time(*(np.sort(each) for each in columns(_items(scope, device), "handed_ns", "start_ns")))


def _measure(trace: Trace, scope: Scope, device: int) -> DeviceQueue:
    items = _items(scope, device)
    handed, starts, ends = (np.sort(each) for each in columns(items, "handed_ns", "start_ns", "end_ns"))
    window = scope.windows[device]
    (in_flight_from, in_flight), waiting = _count_over_time(handed, ends), _count_over_time(handed, starts)
    # All that ran, also what was launched outside the window: it is in the way all the same.
    idle = interval.complement(busy_intervals(trace, device), window)
    busy = interval.complement(idle, window)
    delayed = int(interval.integral(in_flight_from, np.minimum(in_flight, 1), idle).sum())
    backed_up = int(interval.integral(waiting[0], np.minimum(waiting[1], 1), busy).sum())
    mean_depth, most_depth, depths = _depths(*waiting, window)
    # The items of the window, whose call was recorded.
    activities = scope.activities.filter(pl.col("device") == device)["call"]
    own = items.filter(pl.col("call").is_in(activities.drop_nulls().unique().implode()))
    graphs = own.filter(pl.col("of_graph"))
    # The items that found nothing in flight but themselves.
    (moments,) = columns(own, "handed_ns")
    before = np.searchsorted(handed, moments, side="left")
    # Of those handed over at the same moment the first may have found nothing.
    same = np.searchsorted(handed, moments, side="right") - before
    empty = before <= np.searchsorted(ends, moments, side="right")
    return DeviceQueue(
        device=device,
        items=own.height,
        starved_items=int(empty[same == 1].sum() + len(np.unique(moments[(same > 1) & empty]))),
        kernels_in_graphs=int(graphs["kernels"].sum()),
        unlinked=activities.null_count(),
        delays=_delays(own.filter(~pl.col("of_graph") & (pl.col("kind") == "kernel"))),
        graph_delays=_delays(graphs),
        starved_us=(interval.length(idle) - delayed) / 1e3,
        delayed_us=delayed / 1e3,
        hand_to_mouth_us=(interval.length(busy) - backed_up) / 1e3,
        backed_up_us=backed_up / 1e3,
        mean_depth=mean_depth,
        most_depth=most_depth,
        depths=depths,
    )


def _items(scope: Scope, device: int) -> pl.DataFrame:
    """One row for each call's work on the device, and one for each activity whose call was not recorded: it is taken
    for handed over at its start."""
    graph = pl.col("launched_by").first().str.contains(GRAPH_LAUNCH, literal=True).fill_null(value=False)
    items = (
        scope.linked.filter(pl.col("device") == device)
        .with_columns(
            pl.coalesce("returned_ns", "start_ns"),
            item=pl.coalesce(pl.col("call").cast(pl.Int64), -1 - pl.int_range(pl.len())),
        )
        .group_by("item", maintain_order=True)
        .agg(
            pl.col("call", "returned_ns", "kind").first(),
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
            kernels=(pl.col("kind") == "kernel").sum(),
            of_graph=graph,
        )
    )
    return items.with_columns(handed_ns=pl.min_horizontal("returned_ns", "start_ns"))


def _delays(items: pl.DataFrame) -> Percentiles | None:
    """From the call's return to the start; 0 where the work began before that."""
    if not items.height:
        return None
    started, returned = columns(items, "start_ns", "returned_ns")
    delays = np.maximum(started - returned, 0) / 1e3
    p10, p50, p90, p99 = (float(each) for each in np.percentile(delays, (10, 50, 90, 99)))
    return Percentiles(len(delays), p10, p50, p90, p99, float(delays.max()))


def _count_over_time(begun: Ints, over: Ints) -> tuple[Ints, Ints]:
    """How many have begun and are not over: from each moment on, that many. Both sorted; 0 before the first."""
    # At one moment the ends come first, so that nothing is counted that takes no time. The two are sorted runs, which a
    # stable sort only merges.
    both = np.concatenate((over, begun))
    order = np.argsort(both, kind="stable")
    return both[order], np.cumsum(np.where(order < len(over), -1, 1))


def _depths(moments: Ints, counts: Ints, window: Intervals) -> tuple[float, int, tuple[float, ...]]:
    """The queue's mean and largest length in the window, and its mean length in each of the equal slices."""
    if not len(window):
        return 0.0, 0, ()
    mean = float(interval.integral(moments, counts, window).sum() / max(interval.length(window), 1))
    first = np.maximum(np.searchsorted(moments, window[:, 0], side="right") - 1, 0).tolist()
    last = np.searchsorted(moments, window[:, 1], side="left").tolist()
    most = max(int(counts[begin:end].max(initial=0)) for begin, end in zip(first, last, strict=True))
    edges = np.linspace(int(window[0, 0]), int(window[-1, 1]), SLICES + 1).astype(np.int64)
    slices = np.stack((edges[:-1], edges[1:]), axis=1)
    means = interval.integral(moments, counts, slices) / np.maximum(slices[:, 1] - slices[:, 0], 1)
    return mean, most, tuple(round(float(each), 3) for each in means)
