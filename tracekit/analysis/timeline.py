"""What was a host thread doing at each moment? Nested events laid flat: the innermost one counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.trace import Trace

CAUSE_CODES = {cause: code for code, cause in enumerate(IDLE_CAUSES)}

#: Host API calls that wait for the GPU.
SYNC_PART = "Synchronize"
BLOCKING_COPIES = ("cudaMemcpy", "hipMemcpy", "cudaMemcpy2D", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol")
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
COLLECTING = "Python GC"


@cache
def is_sync_call(name: str) -> bool:
    return name in BLOCKING_COPIES or SYNC_PART in name


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
    if name == COLLECTING:
        return "gc"
    if kind == "overhead":
        return "profiler"
    if kind == "op":
        return "guards" if name in GUARD_OPS or name.startswith(COMPILED_REGION) else "op_dispatch"
    return "python" if kind == "python" else None


@dataclass(frozen=True, slots=True)
class Timeline:
    """One thread, flat: stretches that do not overlap, each with the cause code of its innermost event.

    `totals[i, c]` is the time of cause c before stretch i. `events` is the row of the innermost event in `table`.
    Between the stretches nothing is recorded. `callers` maps a row of `table` to the name of the operator above it.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    codes: NDArray[np.int64]
    events: NDArray[np.int64]
    totals: NDArray[np.int64]
    table: pl.DataFrame
    callers: dict[int, str]

    def time_by_cause(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nanoseconds of each cause (columns, by code) within each stretch (rows); unrecorded time is in none."""
        return self._until(ends) - self._until(starts)

    def _until(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Time of each cause from the beginning to each moment."""
        if not len(self.starts):
            return np.zeros((len(moments), len(IDLE_CAUSES)), dtype=np.int64)
        at = np.searchsorted(self.starts, moments, side="right") - 1
        before = at < 0
        at = np.maximum(at, 0)
        times = self.totals[at].copy()
        within = np.minimum(moments, self.ends[at]) - self.starts[at]
        times[np.arange(len(at)), self.codes[at]] += within
        times[before] = 0
        return times


def lay_flat(trace: Trace, thread: int, launching: set[int]) -> Timeline:
    """The timeline of a thread. `launching` holds the rows of `trace.calls` that started something on the GPU.

    The profiler's own overhead is recorded on a thread that does not exist; it is laid over every thread.
    """
    table = _events_of(trace, thread, launching)
    starts, ends, codes, events, callers = _sweep(table)
    totals = np.zeros((len(starts), len(IDLE_CAUSES)), dtype=np.int64)
    for code in range(len(IDLE_CAUSES)):
        spent = np.where(codes == code, ends - starts, 0)
        totals[1:, code] = np.cumsum(spent)[:-1] if len(spent) else 0
    return Timeline(starts, ends, codes, events, totals, table, callers)


def _events_of(trace: Trace, thread: int, launching: set[int]) -> pl.DataFrame:
    host = trace.host.filter((pl.col("thread") == thread) | (pl.col("kind") == "overhead"))
    calls = trace.calls.with_row_index("call").filter(pl.col("thread") == thread)
    host_causes = [cause_of_host_event(kind, name) for kind, name in zip(host["kind"], host["name"], strict=True)]
    host = host.with_columns(cause=pl.Series(host_causes, dtype=pl.String)).filter(pl.col("cause").is_not_null())
    call_causes = [
        cause_of_call(name, starts_work=call in launching)
        for name, call in zip(calls["name"], calls["call"], strict=True)
    ]
    shared = ["kind", "name", "start_ns", "end_ns", "cause"]
    both = pl.concat(
        [
            host.select(shared),
            calls.with_columns(kind=pl.lit("call"), cause=pl.Series(call_causes, dtype=pl.String)).select(shared),
        ]
    )
    return both.sort(["start_ns", "end_ns"], descending=[False, True], maintain_order=True)


@dataclass(slots=True)
class _Sweep:
    """The stretches as they are found; `stack` holds (end, cause code, row) of the events that are open."""

    stack: list[tuple[int, int, int]]
    out: list[tuple[int, int, int, int]]
    cursor: int

    def advance(self, moment: int) -> None:
        """Everything until `moment` is written out, and what has ended by then is closed."""
        while self.stack:
            end, code, row = self.stack[-1]
            upto = min(end, moment)
            if upto > self.cursor:
                self.out.append((self.cursor, upto, code, row))
                self.cursor = upto
            if end > moment:
                return
            self.stack.pop()
        self.cursor = max(self.cursor, moment)


def _sweep(
    table: pl.DataFrame,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], dict[int, str]]:
    sweep = _Sweep([], [], 0 if not table.height else int(table["start_ns"][0]))
    compiling, syncing = CAUSE_CODES["compile"], CAUSE_CODES["sync_wait"]
    kinds, names = table["kind"].to_list(), table["name"].to_list()
    callers: dict[int, str] = {}
    rows = zip(table["start_ns"].to_list(), table["end_ns"].to_list(), table["cause"].to_list(), strict=True)
    for row, (start, end, cause) in enumerate(rows):
        sweep.advance(start)
        code = CAUSE_CODES[cause]
        if sweep.stack and sweep.stack[-1][1] == compiling:
            # Whatever happens while code is compiled, compiling is why.
            code = compiling
        if code == syncing:
            above = next((r for _, _, r in reversed(sweep.stack) if kinds[r] in ("op", "python")), None)
            if above is not None:
                callers[row] = names[above]
        sweep.stack.append((end, code, row))
    sweep.advance(2**62)
    found = np.array(sweep.out, dtype=np.int64).reshape(-1, 4)
    return found[:, 0], found[:, 1], found[:, 2], found[:, 3], callers
