"""What does a recording without a GPU show?"""

import re

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.analysis.regions import find_regions
from tracekit.analysis.timeline import COMPILED_REGION, ENTRY_OPS, INDUCTOR_CALL, LOOKUP, lay_flat
from tracekit.analysis.window import Span, beginning_within, columns, union_of
from tracekit.errors import TracekitError
from tracekit.model.analysis import CpuUse, OperatorTime
from tracekit.model.trace import Trace

#: Inductor names its C++ kernels after the graph they are in; the same kernel of two graphs is one name here.
GRAPH_PREFIX = re.compile(r"^graph_\d+_(?=cpp_fused_)")
FUSED = "cpp_fused_"
#: What calls compiled code is recorded as operators are, and is none.
WRAPPER = re.compile(
    "|".join((*map(re.escape, (COMPILED_REGION, INDUCTOR_CALL, LOOKUP, *ENTRY_OPS)), "CompiledFunction(Backward)?$"))
)


def measure_cpu(trace: Trace, spans: tuple[Span, ...]) -> CpuUse:
    """Operators by their own time, in the given spans or the whole trace. Raises TracekitError without operators."""
    operators = trace.host.filter(pl.col("kind") == "op")
    if not operators.height:
        raise TracekitError(f"{trace.path} has neither GPU activity nor operators; record it again with torch.profiler")
    times: dict[str, list[int]] = {}
    wrapper_ns = 0
    timeline = lay_flat(trace, trace.host["thread"].unique())
    spent = np.zeros(timeline.table.height, dtype=np.int64)
    np.add.at(spent, timeline.events, timeline.ends - timeline.starts)
    table = timeline.table.with_columns(spent=pl.Series(spent)).filter(pl.col("kind") == "op")
    for name, ns in beginning_within(table, spans).select("name", "spent").iter_rows():
        if WRAPPER.match(name):
            wrapper_ns += ns
        else:
            times.setdefault(GRAPH_PREFIX.sub("", name), []).append(ns)
    top = [OperatorTime(name, len(each), sum(each) / 1e3) for name, each in times.items()]
    top.sort(key=lambda each: (-each.self_us, each.name))
    fused = [each for each in top if each.name.startswith(FUSED)]
    # C++ kernels record no event unless they were compiled to (`cpp.enable_kernel_profile`), as `tracekit profile` has
    # them and no program by itself: where compiled code ran and shows none, nobody knows whether there were any.
    regions = find_regions(trace, spans)
    is_compiled = regions is not None and bool(regions.count or regions.graphs)
    are_compiled_to = trace.metadata.get("form") == "compiled" and not trace.metadata.get("program")
    is_known = bool(fused) or are_compiled_to or not is_compiled
    starts, ends = columns(operators, "start_ns", "end_ns")
    return CpuUse(
        span_us=(interval.length(union_of(spans)) if spans else int(ends.max() - starts.min())) / 1e3,
        operator_count=sum(map(len, times.values())),
        operator_us=sum(map(sum, times.values())) / 1e3,
        compiled_wrapper_us=wrapper_ns / 1e3,
        fused_count=sum(each.count for each in fused) if is_known else None,
        fused_us=sum(each.self_us for each in fused) if is_known else None,
        top=tuple(top),
    )
