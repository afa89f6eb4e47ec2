"""What must a reader of the figures know about the recording?"""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis import interval
from tracekit.analysis.links import CLOCK_NS, count_ambiguous
from tracekit.analysis.timeline import COMPILING
from tracekit.analysis.window import Scope, columns, touching
from tracekit.model.analysis import GpuUse, HealthFinding, Severity
from tracekit.model.trace import Trace

#: Field measurements on an H200, torch 2.11: with_stack on compiled FLUX.1-dev took 4.02 times as long as unprofiled.
STACKS_FACTOR = 4

#: A first step this much longer than the others is worth saying.
FIRST_STEP_FACTOR = 1.5
#: Host API calls that launch kernels, of all vendors.
LAUNCH_CALL = re.compile(r"Launch\w*Kernel|KernelLaunch|GraphLaunch|LaunchByPtr")
#: Calls that can ask for a programmatic dependent launch: the kernel may begin while the one before it ends (NVIDIA,
#: from compute capability 9.0 on).
DEPENDENT_LAUNCH = re.compile(r"LaunchKernelEx")
#: Between these a thread's launches are recorded into a graph, and start nothing.
BEGIN_CAPTURE, END_CAPTURE = "StreamBeginCapture", "StreamEndCapture"

#: One activity or gap so much of the window, and so much longer than the next, is no measurement.
LONGEST_SHARE, LONGEST_FACTOR = 0.9, 1000

#: More than this share of busy time by work from outside the window is worth saying.
MOST_OUTSIDE = 0.001

#: Times that are less exact than this are worth saying.
COARSE_NS = 10


def check_health(trace: Trace, scope: Scope | None, gpu: GpuUse | None) -> tuple[HealthFinding, ...]:
    """The findings, worst first; `scope` and `gpu` are None for a CPU-only recording."""
    found = [_truncated(trace), _skipped(trace), _coarse(trace), _compiling(trace, scope), _stacks(trace)]
    if scope is None:
        found += [_no_gpu(trace)]
    else:
        found += [ask(scope) for ask in ABOUT_SCOPE]
        found += [_unplaced(trace), _overlapping(trace), _duplicated(trace), _no_steps(trace, scope)]
        found += [_processes(trace, scope), _unlinkable(scope) or _lost_kernels(scope)]
    if gpu is not None:
        found += [_outside_work(gpu)]
    order = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted((each for each in found if each), key=lambda each: order[each.severity]))


def _truncated(trace: Trace) -> HealthFinding | None:
    if not trace.truncated:
        return None
    return HealthFinding("truncated", "error", 1)


def _skipped(trace: Trace) -> HealthFinding | None:
    count = sum(trace.skipped.values())
    if not count:
        return None
    return HealthFinding("skipped_events", "error", count, {"reasons": dict(sorted(trace.skipped.items()))})


def _compiling(trace: Trace, scope: Scope | None) -> HealthFinding | None:
    """Compiling before the window or between its steps costs none of its time."""
    compiling = trace.host.filter(pl.col("name").str.ends_with(COMPILING))
    if scope is not None:
        compiling = compiling.filter(pl.Series(touching(scope, *columns(compiling, "start_ns", "end_ns"))))
    count = compiling.height
    if not count:
        return None
    return HealthFinding("compile_in_window", "warning", count)


def _stacks(trace: Trace) -> HealthFinding | None:
    count = trace.host.filter(pl.col("kind") == "python").height
    if not count and not trace.record_flags.get("with_stack"):
        return None
    return HealthFinding("python_stacks_recorded", "warning", count, {"host_slower_up_to": STACKS_FACTOR})


def _unlinked(scope: Scope) -> HealthFinding | None:
    kernels = scope.activities.filter((pl.col("kind") == "kernel") & pl.col("call").is_null())
    if not kernels.height:
        return None
    return HealthFinding("unlinked_kernels", "warning", kernels.height)


def _ambiguous(scope: Scope) -> HealthFinding | None:
    """Correlation ids are counted per process: traces of several that were merged use the same ones."""
    count = count_ambiguous(scope.linked, scope.calls)
    if not count:
        return None
    return HealthFinding("ambiguous_correlations", "warning", count)


def _unplaced(trace: Trace) -> HealthFinding | None:
    if not trace.unplaced:
        return None
    return HealthFinding("unnamed_device", "warning", trace.unplaced)


def _no_gpu(trace: Trace) -> HealthFinding | None:
    """Why a recording shows no GPU; nothing for tracekit's own CPU runs, which have none."""
    if trace.metadata.get("device") == "cpu":
        return None
    calls = trace.calls.height
    return HealthFinding("no_gpu_activity", "warning" if calls else "info", calls, {"host_calls": calls})


def _processes(trace: Trace, scope: Scope) -> HealthFinding | None:
    """Several processes that call the GPU: ranks that were merged into one file."""
    pids = pl.Series([thread.pid for thread in trace.threads], dtype=pl.String)
    callers = scope.calls.select("call", process=pids.gather(scope.calls["thread"]))
    count = callers["process"].n_unique()
    if count < 2:
        return None
    launched = scope.linked.join(callers, on="call").group_by("device").agg(pl.col("process").n_unique())
    shared = launched.filter(pl.col("process") > 1)["device"].sort().to_list()
    return HealthFinding("several_processes", "warning" if shared else "info", count, {"shared_gpus": shared})


def _coarse(trace: Trace) -> HealthFinding | None:
    """Epoch times with a fraction have more digits than the number they are read as."""
    if trace.resolution_ns <= COARSE_NS:
        return None
    return HealthFinding("coarse_times", "warning", 1, {"exact_to_us": trace.resolution_ns / 1e3})


def _implausible(scope: Scope) -> HealthFinding | None:
    """One time that dwarfs all others: a broken clock, a flipped digit."""
    starts, ends = columns(scope.activities.sort("start_ns"), "start_ns", "end_ns")
    if len(starts) < 3:
        return None
    whole = int(ends.max() - starts.min())
    gaps = starts[1:] - np.maximum.accumulate(ends)[:-1]
    for what, lengths in (("activity", ends - starts), ("gap", gaps)):
        second, longest = (int(each) for each in np.sort(lengths)[-2:])
        if longest > LONGEST_SHARE * whole and longest > LONGEST_FACTOR * max(second, 1):
            facts = {"longest": what, "longest_us": longest / 1e3, "times_the_next": longest / max(second, 1)}
            return HealthFinding("implausible_times", "warning", 1, facts)
    return None


def _early(scope: Scope) -> HealthFinding | None:
    """No kernel begins before the host launches it: the two clocks disagree."""
    launches = scope.calls.select("call", launch_ns="start_ns")
    early = scope.linked.join(launches, on="call").filter(pl.col("launch_ns") - pl.col("start_ns") > CLOCK_NS)
    if not early.height:
        return None
    most_us = int((early["launch_ns"] - early["start_ns"]).max()) / 1e3  # type: ignore[arg-type]
    return HealthFinding("clock_disorder", "warning", early.height, {"early_by_up_to_us": most_us})


def _launch_calls(scope: Scope) -> pl.DataFrame:
    return scope.calls.filter(pl.col("name").is_in([n for n in scope.calls["name"].unique() if LAUNCH_CALL.search(n)]))


def _unlinkable(scope: Scope) -> HealthFinding | None:
    """Launch calls are there, and nothing says what they launched: older profilers and tools that rewrite traces leave
    correlation ids out, on either side."""
    calls = _launch_calls(scope)
    kernels = scope.linked.filter(pl.col("kind") == "kernel")
    named = (side["correlation"].count() for side in (calls, kernels))
    if not calls.height or not kernels.height or all(named):
        return None
    return HealthFinding("unlinkable_launches", "warning", calls.height)


def _lost_kernels(scope: Scope) -> HealthFinding | None:
    """Launch calls without anything launched: dropped when the session began, or when the buffers were full."""
    calls = _launch_calls(scope).filter(pl.col("correlation").is_not_null())
    calls = calls.filter(~pl.Series(_captured(scope, calls), dtype=pl.Boolean))
    lost = calls.join(scope.linked.select("correlation"), on="correlation", how="anti")
    if not lost.height:
        return None
    linked = calls.filter(~pl.col("call").is_in(lost["call"].implode()))
    first = linked["start_ns"].min()
    late = lost.height if first is None else lost.filter(pl.col("start_ns") > first).height
    severity: Severity = "warning" if late else "info"
    return HealthFinding("launches_without_kernels", severity, lost.height, {"in_the_middle": late})


def _captured(scope: Scope, calls: pl.DataFrame) -> NDArray[np.bool_]:
    """Which of the calls only recorded a launch into a CUDA graph."""
    marks = scope.calls.filter(pl.col("name").str.contains(f"{BEGIN_CAPTURE}|{END_CAPTURE}"))
    captured = np.zeros(calls.height, dtype=bool)
    threads, starts = columns(calls, "thread", "start_ns")
    for thread in marks["thread"].unique():
        own = marks.filter(pl.col("thread") == thread)
        begins = own["name"].str.contains(BEGIN_CAPTURE, literal=True).to_numpy()
        last = np.searchsorted(own["start_ns"].to_numpy(), starts, side="right") - 1
        captured |= (threads == thread) & (last >= 0) & begins[np.maximum(last, 0)]
    return captured


def _first_step(scope: Scope) -> HealthFinding | None:
    """The profiler's own first step is slow, and so is one that still warms up."""
    lengths = np.array([span.end_ns - span.start_ns for span in scope.spans])
    if scope.kind != "steps" or len(lengths) < 3:
        return None
    factor = float(lengths[0] / max(np.median(lengths[1:]), 1))
    if factor < FIRST_STEP_FACTOR:
        return None
    return HealthFinding("slow_first_step", "warning", 1, {"times_the_others": factor})


def _duplicated(trace: Trace) -> HealthFinding | None:
    """The same activity twice, in every respect."""
    starts, ends = columns(trace.activities, "start_ns", "end_ns")
    if not ((starts[1:] == starts[:-1]) & (ends[1:] == ends[:-1])).any():
        return None
    keys = ["kind", "name", "device", "stream", "start_ns", "end_ns", "correlation"]
    count = trace.activities.height - trace.activities.select(keys).n_unique()
    if not count:
        return None
    return HealthFinding("duplicated_events", "warning", count)


def _overlapping(trace: Trace) -> HealthFinding | None:
    """Kernels of one stream run one after the other; a microsecond's overlap is the profiler's clock. One launched to
    depend on the one before by its own program (cuBLASLt's split-K sums on an H200) may begin before that has ended."""
    known = trace.activities.filter(pl.col("stream").is_not_null())
    before = (pl.col("start_ns", "end_ns").cum_max().shift(1).over("device", "stream").name.prefix("before_"),)
    overlap = pl.col("before_end_ns") - pl.col("start_ns")
    late = known.with_columns(*before).filter(overlap > CLOCK_NS)
    dependent = [name for name in trace.calls["name"].unique() if DEPENDENT_LAUNCH.search(name)]
    asked = trace.calls.filter(pl.col("name").is_in(dependent))["correlation"].drop_nulls().unique()
    in_turn = (pl.col("start_ns") > pl.col("before_start_ns")) & (pl.col("end_ns") >= pl.col("before_end_ns"))
    late = late.filter(~(pl.col("correlation").is_in(asked.implode()).fill_null(value=False) & in_turn))
    if not late.height:
        return None
    most_us = int(late.select(overlap.max()).item()) / 1e3
    return HealthFinding("overlapping_kernels", "warning", late.height, {"overlap_up_to_us": most_us})


def _no_steps(trace: Trace, scope: Scope) -> HealthFinding | None:
    if scope.kind != "whole":
        return None
    spans = trace.host.filter((pl.col("kind") == "annotation") & ~pl.col("name").str.starts_with("##"))
    names = spans["name"].unique(maintain_order=True).head(3).to_list()
    return HealthFinding("whole_trace", "info", 1, {"spans": names})


def _empty_steps(scope: Scope) -> HealthFinding | None:
    """A mark around nothing, or a step whose work the profiler did not record."""
    count = len(scope.spans) - scope.activities["step"].n_unique()
    if not scope.spans or not count:
        return None
    return HealthFinding("empty_steps", "warning", count, {"empty_steps": count, "steps": len(scope.spans)})


def _shared_steps(scope: Scope) -> HealthFinding | None:
    if not scope.doubtful:
        return None
    return HealthFinding("ambiguous_steps", "warning", scope.doubtful)


def _overlapping_steps(scope: Scope) -> HealthFinding | None:
    """Steps may overlap where the host runs ahead of the GPU, or on several threads."""
    shared_ns = max(
        (interval.length(each) - interval.length(scope.windows[device]) for device, each in scope.step_windows.items()),
        default=0,
    )
    if shared_ns <= CLOCK_NS:
        return None
    return HealthFinding("overlapping_steps", "warning", len(scope.spans), {"overlap_us": shared_ns / 1e3})


def _outside_work(gpu: GpuUse) -> HealthFinding | None:
    if gpu.outside_us <= MOST_OUTSIDE * gpu.busy_us:
        return None
    return HealthFinding("work_from_outside", "warning", 1, {"outside_us": gpu.outside_us})


#: What is asked of every recording of a GPU, about the window and the whole of it.
ABOUT_SCOPE = (
    _unlinked,
    _implausible,
    _ambiguous,
    _early,
    _first_step,
    _empty_steps,
    _shared_steps,
    _overlapping_steps,
)
