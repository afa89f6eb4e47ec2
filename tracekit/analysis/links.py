"""Which host call launched each GPU activity, and did that wait for other work or for its own launch?"""

import numpy as np
import polars as pl

from tracekit.analysis.timeline import is_sync_call
from tracekit.interval import Ints
from tracekit.model.trace import Trace

#: Clocks that differ by less are in order.
CLOCK_NS = 1000
#: A process that launched more than this of a GPU's work owns it.
OWNERS_SHARE = 0.9

#: What the driver calls host memory that it must copy from or to piece by piece.
PAGEABLE = "Pageable"

#: From the return of a launch to the start of its kernel, where a trace shows none.
LAUNCH_LATENCY_NS = 2000.0
#: No launch takes longer by itself: a trace of queued work may show one that did, the first of its session.
MOST_LATENCY_NS = 20_000.0
#: Of what ended before an activity began so many are looked at for one that was launched sooner.
MOST_LOOKED_AT = 64


def link_launches(trace: Trace) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The trace's activities with a column `call`, the row of the call that launched each (None: not recorded), and
    with what that call says (`launched_by`, its name, `launched_on`, its thread, `called_ns`, `returned_ns`); and its
    calls with their row number in a column `call`.

    A launch and what it started carry the same correlation id. Several processes in one file may use an id twice, and
    so may one process that ran for long: the last call of that id before the activity began is then its launch, and a
    call that only waits is none.
    """
    calls = trace.calls.with_row_index("call")
    named = calls.filter(pl.col("correlation").is_not_null())
    if not named["correlation"].is_duplicated().any():
        launches = named.select("correlation", "call")
        linked = trace.activities.join(launches, on="correlation", how="left", maintain_order="left")
    else:
        candidates = _candidates(named)
        # The clocks of host and GPU differ a little: an activity may seem to begin before its launch does.
        called = candidates.select("correlation", "call", called_ns=pl.col("start_ns") - CLOCK_NS)
        before = trace.activities.join_asof(
            called, left_on="start_ns", right_on="called_ns", by="correlation", check_sortedness=False
        )
        first = called.unique("correlation", keep="first", maintain_order=True).select("correlation", first="call")
        joined = before.join(first, on="correlation", how="left", maintain_order="left")
        linked = joined.with_columns(call=pl.coalesce("call", "first")).drop("first", "called_ns", strict=False)
    told = calls.select("call", launched_by="name", launched_on="thread", called_ns="start_ns", returned_ns="end_ns")
    return _within_processes(trace, linked, calls).join(told, on="call", how="left", maintain_order="left"), calls


def _within_processes(trace: Trace, linked: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Of several processes' GPUs each is one's own: what another process's call seems to have launched there has lost
    its launch, and shares an id with that call by chance."""
    processes = pl.Series([thread.pid for thread in trace.threads], dtype=pl.String)
    callers = calls.select("call", process=processes.gather(calls["thread"]))
    if callers["process"].n_unique() < 2:
        return linked
    joined = linked.join(callers, on="call", how="left", maintain_order="left")
    shares = joined.filter(pl.col("process").is_not_null()).group_by("device", "process").agg(n=pl.len())
    owners = shares.filter(pl.col("n") > OWNERS_SHARE * pl.col("n").sum().over("device"))
    if owners["process"].n_unique() < 2:
        return linked
    owned = joined.join(owners.select("device", owner="process"), on="device", how="left", maintain_order="left")
    foreign = pl.col("owner").is_not_null() & (pl.col("owner") != pl.col("process"))
    return owned.with_columns(call=pl.when(foreign).then(None).otherwise("call")).drop("process", "owner")


def _candidates(named: pl.DataFrame) -> pl.DataFrame:
    """Without calls that wait, and without those inside another of their id, unless there are no others."""
    waiting = [name for name in named["name"].unique() if is_sync_call(name)]
    reach = pl.col("end_ns").cum_max().shift(1).over("correlation", "thread")
    working = named.filter(~pl.col("name").is_in(waiting) & (reach.is_null() | (reach < pl.col("end_ns"))))
    others = named.join(working.select("correlation"), on="correlation", how="anti")
    return pl.concat([working, others]).sort("start_ns", maintain_order=True)


def count_ambiguous(activities: pl.DataFrame, calls: pl.DataFrame) -> int:
    """How many activities name a correlation id that more than one call carries that may have launched them."""
    named = calls.filter(pl.col("correlation").is_not_null())
    if not named["correlation"].is_duplicated().any():
        return 0
    several = _candidates(named).filter(pl.col("correlation").is_duplicated())
    return activities.join(several, on="correlation", how="semi").height


def launching_calls(linked: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """The calls that started something on the GPU, each once, and from when such a call only waited: `waits_from_ns`.

    A copy from or to pageable memory may hold its caller until it has ended. That it did is told by the call's return
    after that end, by more than clocks differ; it waited from the copy's start. Null for all other calls, and for those
    that always wait.
    """
    launching = linked.select("call").drop_nulls().unique()
    pageable = linked.filter((pl.col("kind") == "memcpy") & pl.col("name").str.contains(PAGEABLE, literal=True))
    times = pageable.group_by("call").agg(begun_ns=pl.col("start_ns").min(), over_ns=pl.col("end_ns").max())
    waiting = [name for name in calls["name"].unique() if is_sync_call(name)]
    held = times.join(calls.filter(~pl.col("name").is_in(waiting)), on="call").filter(
        pl.col("end_ns") - pl.col("over_ns") > CLOCK_NS
    )
    since = held.select("call", waits_from_ns=pl.col("begun_ns").clip(pl.col("start_ns"), pl.col("end_ns")))
    return launching.join(since, on="call", how="left")


def find_queued(linked: pl.DataFrame) -> pl.Series:
    """Whether each activity was queued: by a call that had launched other work before it, or by one that had returned
    at least the usual latency before the work before it ended. All else began by its own launch."""
    queued = np.zeros(linked.height, dtype=bool)
    names = ("device", "start_ns", "end_ns", "call", "returned_ns")
    devices, *every = (linked[name].fill_null(-1).to_numpy().astype(np.int64) for name in names)
    for device in np.unique(devices):
        rows = np.flatnonzero(devices == device)
        rows = rows[np.lexsort((every[0][rows], every[2][rows]))]
        starts, ends, calls, returned = (each[rows] for each in every)
        before = find_before(starts, ends, find_on_stream(linked[rows]))
        known, follows = calls >= 0, before >= 0
        in_call = known & (calls == np.append(-1, calls[:-1]))
        # The latency shows where the GPU had nothing else to do.
        alone = (starts - returned)[known & ~in_call & (~follows | (returned > ends[before]))]
        latency = float(np.clip(np.median(alone), 0.0, MOST_LATENCY_NS)) if len(alone) else LAUNCH_LATENCY_NS
        queued[rows] = known & follows & (in_call | (ends[before] - returned >= latency))
    return pl.Series(queued)


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
