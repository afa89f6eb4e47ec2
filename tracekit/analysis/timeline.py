"""What was a host thread doing at each moment? Nested events laid flat: the innermost one counts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis.nesting import nest
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.trace import Trace

#: No call started anything: see `lay_flat`.
NO_CALLS = pl.DataFrame(schema={"call": pl.UInt32, "waits_from_ns": pl.Int64})

CAUSE_CODES = {cause: code for code, cause in enumerate(IDLE_CAUSES)}

#: Before every moment of a trace; its negative is after.
NEVER = -(2**62)

#: Host API calls that wait for the GPU.
SYNC_PART = "Synchronize"
#: Intel's Unified Runtime calls waiting otherwise.
WAITS = ("urQueueFinish", "urEventWait")
#: Copies that return when they are done: of all vendors those that are not called asynchronous.
COPY_CALL = re.compile(r"^(cuda|cu|hip)Memcpy")
MEMORY_CALLS = (
    "Malloc",
    "Free",
    "MemAlloc",
    "MemCreate",
    "MemMap",
    "MemUnmap",
    "MemRelease",
    "HostAlloc",
    "HostRegister",
)
#: What Dynamo does at every call of compiled code, beside running it.
GUARD_OPS = ("TorchDynamo Cache Lookup", "Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue")
COMPILED_REGION = "Torch-Compiled Region"
INDUCTOR_CALL = "## Call CompiledFxGraph"
COMPILING = " (dynamo_timed)"
#: The profiler's own event (`record_python_gc_info`), and gc.collect where Python stacks are recorded.
COLLECTING = ("Python GC", "<built-in function collect>")


@cache
def is_sync_call(name: str) -> bool:
    return name in WAITS or SYNC_PART in name or (COPY_CALL.match(name) is not None and "Async" not in name)


@cache
def cause_of_call(name: str, *, starts_work: bool) -> str:
    """Why the GPU has nothing to do while the host is in this API call."""
    if is_sync_call(name):
        return "sync_wait"
    if starts_work:
        return "launch_call"
    if any(part in name for part in MEMORY_CALLS):
        return "memory"
    return "op_dispatch"


@cache
def cause_of_host_event(kind: str, name: str) -> str | None:
    """Why the GPU has nothing to do while this is the innermost event on the host.

    None for a span that somebody named: it says where the host was, not what it did.
    """
    if name.startswith(INDUCTOR_CALL):
        # The wrapper that Inductor generated, between the operators and kernels it calls; an operator or an
        # annotation, depending on the profiler's settings.
        return "op_dispatch"
    if name.endswith(COMPILING):
        return "compile"
    if name in COLLECTING:
        return "gc"
    if kind == "overhead":
        return "profiler"
    if kind == "op":
        return "guards" if name in GUARD_OPS or name.startswith(COMPILED_REGION) else "op_dispatch"
    return "python" if kind == "python" else None


@dataclass(frozen=True, slots=True)
class Timeline:
    """One thread, flat: stretches that do not overlap, each with the cause code of its innermost event.

    `events` is the row of that event in `table`; between the stretches nothing is recorded. `parents` is the row of the
    event around each row of `table`, -1 for none. The column `call` of `table` is the row of `Trace.calls`, and `code`
    the cause of an event by itself.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    codes: NDArray[np.int64]
    events: NDArray[np.int64]
    table: pl.DataFrame
    parents: NDArray[np.int64]

    def time_by_cause(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nanoseconds of each cause (columns, by code) within each stretch (rows); unrecorded time is in none."""
        times = np.zeros((len(starts), len(IDLE_CAUSES)), dtype=np.int64)
        for code in np.unique(self.codes).tolist():
            own = self.codes == code
            begun, over = self.starts[own], self.ends[own]
            before = np.concatenate(([0], np.cumsum(over - begun)))
            times[:, code] = _until(begun, over, before, ends) - _until(begun, over, before, starts)
        return times

    def silences(
        self, starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The parts of each stretch in which nothing is recorded: the stretch's position, and their starts and ends."""
        # Before the first event, between two, after the last.
        begun = np.concatenate(([NEVER], self.ends))
        over = np.concatenate((self.starts, [-NEVER]))
        first = np.searchsorted(over, starts, side="right")
        counts = np.maximum(np.searchsorted(begun, ends, side="left") - first, 0)
        rows = np.repeat(np.arange(len(starts), dtype=np.int64), counts)
        holes = np.arange(len(rows), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts) + first[rows]
        cut_starts, cut_ends = np.maximum(begun[holes], starts[rows]), np.minimum(over[holes], ends[rows])
        some = cut_ends > cut_starts
        return rows[some], cut_starts[some], cut_ends[some]

    def innermost_within(self, start: int, end: int) -> list[tuple[int, int]]:
        """The rows of `table` that are innermost at some time of the stretch, and for how many nanoseconds."""
        first, last = np.searchsorted(self.ends, start, side="right"), np.searchsorted(self.starts, end, side="left")
        lengths = np.minimum(self.ends[first:last], end) - np.maximum(self.starts[first:last], start)
        return list(zip(self.events[first:last].tolist(), lengths.tolist(), strict=True))


def _until(
    starts: NDArray[np.int64], ends: NDArray[np.int64], before: NDArray[np.int64], moments: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How much of the stretches lies before each moment; `before[i]` is the length of the first i."""
    at = np.searchsorted(starts, moments, side="right")
    last = np.maximum(at - 1, 0)
    # Of the last stretch that has begun, what is over by then.
    return before[at] - np.where(at > 0, np.maximum(ends[last] - moments, 0), 0)


def lay_flat(trace: Trace, thread: int, launching: pl.DataFrame = NO_CALLS) -> Timeline:
    """The timeline of a thread. `launching` are the calls that started something on the GPU (`links.launching_calls`).

    The profiler's own overhead is recorded on a thread that does not exist; it is laid over every thread.
    """
    table = _events_of(trace, thread, launching)
    nesting = nest(table["start_ns"].to_numpy(), table["end_ns"].to_numpy())
    codes = _inherit(table["code"].to_numpy().astype(np.int64), nesting.parents)
    return Timeline(nesting.starts, nesting.ends, codes[nesting.rows], nesting.rows, table, nesting.parents)


def _inherit(codes: NDArray[np.int64], parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whatever happens while code is compiled, compiling is why; so for finalizers that garbage collection runs."""
    inherited = codes
    for cause in ("gc", "compile"):
        code = CAUSE_CODES[cause]
        inherited = np.where(_inside(codes == code, parents), code, inherited)
    return inherited


def _inside(found: NDArray[np.bool_], parents: NDArray[np.int64]) -> NDArray[np.bool_]:
    """These events and all that happens inside them."""
    if not found.any():
        return found
    # Each round looks twice as far up.
    above = parents
    while (above >= 0).any():
        found = found | (found[above] & (above >= 0))
        above = np.where(above >= 0, above[above], -1)
    return found


def _events_of(trace: Trace, thread: int, launching: pl.DataFrame) -> pl.DataFrame:
    """Host events and API calls of a thread, parents before children, with the code of their cause."""
    host = trace.host.filter((pl.col("thread") == thread) | (pl.col("kind") == "overhead"))
    host = _with_codes(host, ("kind", "name"), cause_of_host_event).with_columns(call=pl.lit(None, dtype=pl.UInt32))
    calls = _calls_of(trace, thread, launching).with_columns(kind=pl.lit("call"))
    shared = ["kind", "name", "start_ns", "end_ns", "code", "call"]
    both = pl.concat([host.select(shared), calls.select(shared)])
    return both[_by_start(both["start_ns"].to_numpy(), both["end_ns"].to_numpy())]


def _by_start(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order by start, the longer first where two begin together."""
    # Host events and calls are each in order already, which this sort makes use of.
    order = np.argsort(starts, kind="stable")
    begun, over = starts[order], ends[order]
    if ((begun[1:] == begun[:-1]) & (over[1:] > over[:-1])).any():
        order = np.lexsort((-ends, starts))
    return order


def _calls_of(trace: Trace, thread: int, launching: pl.DataFrame) -> pl.DataFrame:
    """The thread's calls. One that held its caller after its work had begun launched until then, and waited after."""
    calls = trace.calls.with_row_index("call").filter(pl.col("thread") == thread)
    calls = calls.join(launching.with_columns(starts_work=True), on="call", how="left", maintain_order="left")
    calls = calls.with_columns(pl.col("starts_work").fill_null(value=False))
    calls = _with_codes(calls, ("starts_work", "name"), lambda starts, name: cause_of_call(name, starts_work=starts))
    held = calls.filter(pl.col("waits_from_ns").is_not_null())
    if not held.height:
        return calls
    waited = held.with_columns(
        start_ns=pl.col("waits_from_ns"), code=pl.lit(CAUSE_CODES["sync_wait"], dtype=calls.schema["code"])
    )
    return pl.concat([calls.with_columns(end_ns=pl.coalesce("waits_from_ns", "end_ns")), waited])


def _with_codes(events: pl.DataFrame, keys: tuple[str, str], cause: Callable[..., str | None]) -> pl.DataFrame:
    """The events that have a cause, with its code; each pair of keys is looked at once."""
    pairs = events.select(keys).unique()
    causes = [cause(*pair) for pair in pairs.iter_rows()]
    codes = [None if each is None else CAUSE_CODES[each] for each in causes]
    coded = pairs.with_columns(code=pl.Series(codes, dtype=pl.Int8))
    return events.join(coded, on=keys, how="left", maintain_order="left").filter(pl.col("code").is_not_null())
