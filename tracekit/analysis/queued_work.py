"""Which GPU work waited for other work, and which for its own launch?"""

import numpy as np
import polars as pl

from tracekit.interval import Bools, Ints

#: From the return of a launch to the start of its kernel, where a trace shows none.
LAUNCH_LATENCY_NS = 2000.0
#: No launch takes longer by itself: a trace of queued work may show one that did, the first of its session.
MOST_LATENCY_NS = 20_000.0
#: Of what ended before an activity began so many are looked at for one that was launched sooner.
MOST_LOOKED_AT = 64


def find_queued(linked: pl.DataFrame) -> pl.Series:
    """Whether each activity was queued: by a call that had launched other work before it, or by one that had returned
    at least the usual latency before the work before it ended. All else began by its own launch."""
    devices = linked["device"].to_numpy()
    queued = np.zeros(linked.height, dtype=bool)
    for device in np.unique(devices):
        rows = np.flatnonzero(devices == device)
        queued[rows] = _find_queued(linked[rows])
    return pl.Series(queued)


def _find_queued(work: pl.DataFrame) -> Bools:
    starts, calls = (work[name].fill_null(-1).to_numpy().astype(np.int64) for name in ("start_ns", "call"))
    order = np.lexsort((starts, calls))
    work, starts, calls = work[order], starts[order], calls[order]
    ends, returned = (work[name].fill_null(-1).to_numpy().astype(np.int64) for name in ("end_ns", "returned_ns"))
    before = find_before(starts, ends, find_on_stream(work))
    known, follows = calls >= 0, before >= 0
    in_call = known & (calls == np.append(-1, calls[:-1]))
    # The latency shows where the GPU had nothing else to do.
    alone = (starts - returned)[known & ~in_call & (~follows | (returned > ends[before]))]
    latency = float(np.clip(np.median(alone), 0.0, MOST_LATENCY_NS)) if len(alone) else LAUNCH_LATENCY_NS
    found = np.zeros(len(work), dtype=bool)
    found[order] = known & follows & (in_call | (ends[before] - returned >= latency))
    return found


def find_before(starts: Ints, ends: Ints, on_stream: Ints) -> Ints:
    """For each activity, in the order of their launches, the work before it: of what was launched sooner that which had
    ended last when it began; -1 for none. Where all that are looked at were launched later, it is the one before on its
    stream; so where that had not ended: a programmatic dependent launch begins shortly before."""
    place, order = np.arange(len(starts)), np.argsort(ends, kind="stable")
    at = np.searchsorted(ends[order], starts, side="right") - 1
    before = np.where(at >= 0, np.append(order, -1)[at], -1)
    later = np.flatnonzero(before >= place)
    for back in range(1, MOST_LOOKED_AT):
        if not len(later):
            break
        before[later] = np.where(at[later] >= back, order[at[later] - back], -1)
        later = later[before[later] >= later]
    before[later] = np.where(on_stream[later] < later, on_stream[later], -1)
    overlaps = (on_stream >= 0) & (on_stream < place) & (np.append(ends, 0)[on_stream] > starts)
    return np.where(overlaps, on_stream, before)


def find_on_stream(work: pl.DataFrame) -> Ints:
    """For each activity the position of the one that began before it on its stream; -1 for none."""
    place = pl.int_range(pl.len())
    found = work.select(at=place, stream=pl.col("stream").fill_null(-1), start=pl.col("start_ns"))
    found = found.sort("start", maintain_order=True)
    found = found.with_columns(before=pl.col("at").shift(1).over("stream")).sort("at")
    return found["before"].fill_null(-1).to_numpy().astype(np.int64)
