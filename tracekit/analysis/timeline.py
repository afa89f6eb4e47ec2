"""What was a host thread doing at each moment, and where in the program? Of nested events the innermost counts."""

import re
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit import interval
from tracekit.analysis.nesting import Line, Nesting, make_line, nearest, nest
from tracekit.interval import Bools, Intervals, Ints
from tracekit.model.analysis import IDLE_CAUSES, Place
from tracekit.model.trace import Trace

#: No call started anything: see `lay_flat`.
NO_CALLS = pl.DataFrame(schema={"call": pl.UInt32, "waits_from_ns": pl.Int64})

CAUSE_CODES = {cause: code for code, cause in enumerate(IDLE_CAUSES)}

#: Host API calls that wait for the GPU; Intel's Unified Runtime calls waiting otherwise. Of all vendors' copies those
#: that are not called asynchronous return when they are done.
SYNC_CALL = re.compile(r"Synchronize|^urQueueFinish$|^urEventWait$|^(cuda|cu|hip)Memcpy(?!.*Async)", re.DOTALL)
MEMORY_CALL = re.compile("Malloc|Free|MemAlloc|MemCreate|MemMap|MemUnmap|MemRelease|HostAlloc|HostRegister")
#: The search for code whose guards hold, at every call of compiled code.
LOOKUP = "TorchDynamo Cache Lookup"
#: What a compiled frame begins with, and what else the generated Python does before its graph runs.
PREGRAPH = "Pregraph bytecode"
ENTRY_OPS = (PREGRAPH, "AOTDispatcher Runtime Wrapper Prologue")
COMPILED_REGION = "Torch-Compiled Region"
#: Inductor's event around the launch of a Triton kernel, which its generated Python makes.
TRITON = "triton_"
INDUCTOR_CALL = "## Call CompiledFxGraph"
COMPILING = " (dynamo_timed)"
#: The profiler's own event (`record_python_gc_info`), and gc.collect where Python stacks are recorded.
COLLECTING = ("Python GC", "<built-in function collect>")

#: The profiler's overhead is laid over each thread; of many threads the longest of it, in so many rows.
MOST_OVERHEAD = 200_000

#: What the profiler calls a module's forward, and a function of torch's own or of Python's.
MODULE = "nn.Module: "
LIBRARY = r"^(torch/|<built-in|<string>|<frozen|threading\.py|contextlib\.py)|/torch/|\\torch\\"


@cache
def is_sync_call(name: str) -> bool:
    return SYNC_CALL.search(name) is not None


@cache
def cause_of_call(name: str, *, starts_work: bool) -> str:
    """Why the GPU has nothing to do while the host is in this API call."""
    if is_sync_call(name):
        return "sync_wait"
    if starts_work:
        return "launch_call"
    return "memory" if MEMORY_CALL.search(name) else "op_dispatch"


@cache
def cause_of_host_event(kind: str, name: str) -> str | None:
    """Why the GPU has nothing to do while this is the innermost event on the host.

    None for a span that somebody named: it says where the host was, not what it did.
    """
    if name.startswith(INDUCTOR_CALL):
        # The wrapper that Inductor generated, between the operators and kernels it calls; an operator or an
        # annotation, depending on the profiler's settings.
        return "compiled_wrapper"
    if name.endswith(COMPILING):
        return "compile"
    if name in COLLECTING:
        return "gc"
    if kind == "overhead":
        return "profiler"
    if kind != "op":
        return "python" if kind == "python" else None
    if name == LOOKUP:
        return "guards"
    if name in ENTRY_OPS or name.startswith(TRITON):
        return "compiled_wrapper"
    # Of a region what is in no graph: the user's own code where a graph breaks.
    return "python" if name.startswith(COMPILED_REGION) else "op_dispatch"


class Timeline(Struct, frozen=True):
    """Threads, flat: stretches of the `line` that do not overlap, each with the cause code of its innermost event.

    `events` is the row of that event in `table`; between the stretches nothing is recorded. `parents` is the row of the
    event around each row of `table`, -1 for none, and `begins` where on the line it begins. The column `call` of
    `table` is the row of `Trace.calls`, and `code` the cause of an event by itself. Of one thread the line's moments
    are the trace's own.
    """

    starts: Ints
    ends: Ints
    codes: Ints
    events: Ints
    table: pl.DataFrame
    parents: Ints
    begins: Ints
    line: Line

    def on_line(self, threads: Ints, within: Intervals) -> Intervals:
        """Where on the line these stretches of these threads are."""
        return np.stack([self.line.place(threads, within[:, at]) for at in (0, 1)], axis=1)

    def time_by_cause(self, within: Intervals) -> Ints:
        """Nanoseconds of each cause (columns, by code) within each stretch of the line (rows); unrecorded time is in
        none."""
        times = np.zeros((len(within), len(IDLE_CAUSES)), dtype=np.int64)
        for code in np.unique(self.codes).tolist():
            own = self.codes == code
            times[:, code] = interval.covered_within(np.stack((self.starts[own], self.ends[own]), axis=1), within)
        return times

    def silent_within(self, start: int, end: int) -> list[tuple[int, int]]:
        """The parts of one stretch of the line in which nothing is recorded, counted from its start."""
        first, last = np.searchsorted(self.ends, start, side="right"), np.searchsorted(self.starts, end, side="left")
        covered = np.stack((self.starts[first:last], self.ends[first:last]), axis=1)
        silences, _ = interval.holes(covered, np.array([[start, end]], dtype=np.int64))
        return [(begun, over) for begun, over in (silences - start).tolist()]

    def innermost_within(self, start: int, end: int) -> tuple[Ints, Ints]:
        """The rows of `table` that are innermost at some time of the stretch of the line, and for how many ns."""
        first, last = np.searchsorted(self.ends, start, side="right"), np.searchsorted(self.starts, end, side="left")
        lengths = np.minimum(self.ends[first:last], end) - np.maximum(self.starts[first:last], start)
        return self.events[first:last], lengths


def lay_flat(trace: Trace, threads: Iterable[int], launching: pl.DataFrame = NO_CALLS) -> Timeline:
    """The timeline of these threads. `launching` are the calls that started something on the GPU
    (`links.launching_calls`).

    The profiler's own overhead is recorded on a thread that does not exist; it is laid over every thread.
    """
    line = make_line(trace, threads)
    lanes = pl.DataFrame({"thread": pl.Series(line.lanes, dtype=trace.host.schema["thread"])})
    kept = trace.host.select("kind", "name", "start_ns", "end_ns", "thread")
    overhead = kept.filter(pl.col("kind") == "overhead").drop("thread")
    if overhead.height * lanes.height > MOST_OVERHEAD:
        longest = (pl.col("end_ns") - pl.col("start_ns")).arg_sort(descending=True)
        overhead = overhead.select(pl.all().gather(longest.head(MOST_OVERHEAD // lanes.height)))
    own = kept.filter((pl.col("kind") != "overhead") & pl.col("thread").is_in(lanes["thread"].implode()))
    host = pl.concat([own, overhead.join(lanes, how="cross")]) if overhead.height else own
    host = _with_codes(host, ("kind", "name"), cause_of_host_event).with_columns(call=pl.lit(None, dtype=pl.UInt32))
    calls = _calls_of(trace, lanes["thread"], launching).with_columns(kind=pl.lit("call")).select(host.columns)
    table = pl.concat([host, calls])
    numbers = table["thread"].to_numpy()
    starts, ends = (line.place(numbers, table[key].to_numpy()) for key in ("start_ns", "end_ns"))
    # Host events and calls are each in order already, which this sort makes use of.
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    if ((starts[1:] == starts[:-1]) & (ends[1:] > ends[:-1])).any():
        # The longer first where two begin together.
        longest_first = np.lexsort((-ends, starts))
        order, starts, ends = (each[longest_first] for each in (order, starts, ends))
    table = table[order].drop("thread")
    # Of a large trace these are hundreds of megabytes.
    del kept, own, host, calls, numbers, order
    nesting = nest(starts, ends)
    codes = table["code"].to_numpy().astype(np.int64)
    # Whatever happens while code is compiled, compiling is why; so for finalizers that garbage collection runs. What
    # ends later only follows: collections are timed by another clock than operators.
    ends_within = ends <= np.append(ends, 0)[nesting.parents]
    around = np.where(ends_within, nesting.parents, -1)
    for code in (CAUSE_CODES["gc"], CAUSE_CODES["compile"]):
        own = table["code"].to_numpy() == code
        codes = np.where(own | (nearest(around, own) >= 0), code, codes) if own.any() else codes
    pieces = codes[nesting.rows]
    pieces[_before_graphs(table, nesting, starts) & (pieces == CAUSE_CODES["python"])] = CAUSE_CODES["compiled_wrapper"]
    return Timeline(nesting.starts, nesting.ends, pieces, nesting.rows, table, nesting.parents, starts, line)


def _before_graphs(table: pl.DataFrame, nesting: Nesting, starts: Ints) -> Bools:
    """Which stretches are a compiled region's own from its begin to its first graph, be that inside of a
    `CompiledFunction`. Of a region that has the bytecode before a graph all of that is generated: the user's own code
    comes after a graph."""
    names = table["name"]
    of_regions = names.str.starts_with(COMPILED_REGION).to_numpy()
    if not of_regions.any():
        return np.zeros(len(nesting.rows), dtype=bool)
    regions = nearest(nesting.parents, of_regions)
    graphs = np.flatnonzero((regions >= 0) & names.str.starts_with(INDUCTOR_CALL).to_numpy())
    first = np.full(len(starts), -1, dtype=np.int64)
    # The first one is written last.
    first[regions[graphs][::-1]] = starts[graphs][::-1]
    begins = np.zeros(len(starts), dtype=bool)
    begins[regions[np.flatnonzero((regions >= 0) & (names == PREGRAPH).to_numpy())]] = True
    found: Bools = (of_regions & begins)[nesting.rows] & (nesting.ends <= first[nesting.rows])
    return found


def _calls_of(trace: Trace, threads: pl.Series, launching: pl.DataFrame) -> pl.DataFrame:
    """The threads' calls. One that held its caller after its work had begun launched until then, and waited after."""
    calls = trace.calls.with_row_index("call").filter(pl.col("thread").is_in(threads.implode()))
    calls = calls.join(launching.with_columns(starts_work=True), on="call", how="left", maintain_order="left")
    calls = calls.with_columns(pl.col("starts_work").fill_null(value=False))
    calls = _with_codes(calls, ("starts_work", "name"), lambda starts, name: cause_of_call(name, starts_work=starts))
    held = calls.filter(pl.col("waits_from_ns").is_not_null())
    if not held.height:
        return calls
    code = pl.lit(CAUSE_CODES["sync_wait"], dtype=calls.schema["code"])
    waited = held.with_columns(start_ns=pl.col("waits_from_ns"), code=code)
    return pl.concat([calls.with_columns(end_ns=pl.coalesce("waits_from_ns", "end_ns")), waited])


def _with_codes(events: pl.DataFrame, keys: tuple[str, str], cause: Callable[..., str | None]) -> pl.DataFrame:
    """The events that have a cause, with its code; each pair of keys is looked at once."""
    pairs = events.select(keys).unique()
    causes = [cause(*pair) for pair in pairs.iter_rows()]
    codes = [None if each is None else CAUSE_CODES[each] for each in causes]
    coded = pairs.with_columns(code=pl.Series(codes, dtype=pl.Int8))
    return events.join(coded, on=keys, how="left", maintain_order="left").filter(pl.col("code").is_not_null())


def find_places(timeline: Timeline, rows: Ints) -> list[Place | None]:
    """Where each of these rows of the timeline's table was called from: the operator, module and Python function around
    it. None where nothing of it is recorded."""
    kinds, names = timeline.table["kind"], timeline.table["name"]
    operators = _nearest(timeline, rows, (kinds == "op").to_numpy())
    python = kinds == "python"
    if not python.any():
        return [Place(operator, None, None) if operator else None for operator in operators]
    distinct = names.unique()
    library = names.is_in(distinct.filter(distinct.str.contains(LIBRARY)).implode())
    is_line = python & names.str.contains("): ", literal=True)
    modules = _nearest(timeline, rows, (python & names.str.starts_with(MODULE)).to_numpy())
    own = _nearest(timeline, rows, (is_line & ~library).to_numpy())
    lines = _nearest(timeline, rows, is_line.to_numpy())
    return [
        Place(operator, module.removeprefix(MODULE) if module else None, mine or line)
        if operator is not None or module is not None or line is not None
        else None
        for operator, module, mine, line in zip(operators, modules, own, lines, strict=True)
    ]


def _nearest(timeline: Timeline, rows: Ints, wanted: Bools) -> list[str | None]:
    return names_at(timeline.table["name"], nearest(timeline.parents, wanted)[rows])


def names_at(names: pl.Series, rows: Ints) -> list[str | None]:
    """The names in these rows; None for the row -1."""
    at = pl.Series(rows)
    return names.gather(at.set(at < 0, None)).to_list()
