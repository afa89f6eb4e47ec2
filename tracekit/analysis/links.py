"""Which host call launched each GPU activity?"""

import polars as pl

from tracekit.analysis.timeline import is_sync_call
from tracekit.model.trace import Trace

#: Clocks that differ by less are in order.
CLOCK_NS = 1000
#: A process that launched more than this of a GPU's work owns it.
OWNERS_SHARE = 0.9

#: What the driver calls host memory that it must copy from or to piece by piece.
PAGEABLE = "Pageable"


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
