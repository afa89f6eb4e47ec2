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
from tracekit.model.analysis import GpuUse, HealthFinding
from tracekit.model.trace import Trace

#: Field measurements on an H200, torch 2.11: with_stack on compiled FLUX.1-dev took 4.02 times as long as unprofiled.
STACKS_FACTOR = "up to 4 times"

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
    message = "the file ends before its JSON does: what could be read is analysed, the rest is missing"
    return HealthFinding("truncated", "error", message, 1)


def _skipped(trace: Trace) -> HealthFinding | None:
    count = sum(trace.skipped.values())
    if not count:
        return None
    reasons = ", ".join(f"{reason}: {n}" for reason, n in sorted(trace.skipped.items()))
    return HealthFinding("skipped_events", "error", f"events that could not be read were left out ({reasons})", count)


def _compiling(trace: Trace, scope: Scope | None) -> HealthFinding | None:
    """Compiling before the window or between its steps costs none of its time."""
    compiling = trace.host.filter(pl.col("name").str.ends_with(COMPILING))
    if scope is not None:
        compiling = compiling.filter(pl.Series(touching(scope, *columns(compiling, "start_ns", "end_ns"))))
    count = compiling.height
    if not count:
        return None
    message = "torch.compile was compiling while this was recorded: times are not those of compiled code alone"
    return HealthFinding("compile_in_window", "warning", message, count)


def _stacks(trace: Trace) -> HealthFinding | None:
    count = trace.host.filter(pl.col("kind") == "python").height
    if not count and not trace.record_flags.get("with_stack"):
        return None
    message = f"Python stacks were recorded (with_stack), which slows the host {STACKS_FACTOR}: idle time is overstated"
    return HealthFinding("python_stacks_recorded", "warning", message, count)


def _unlinked(scope: Scope) -> HealthFinding | None:
    kernels = scope.activities.filter((pl.col("kind") == "kernel") & pl.col("call").is_null())
    if not kernels.height:
        return None
    message = "kernels whose launch was not recorded: their idle gaps are unattributed"
    return HealthFinding("unlinked_kernels", "warning", message, kernels.height)


def _ambiguous(scope: Scope) -> HealthFinding | None:
    """Correlation ids are counted per process: traces of several that were merged use the same ones."""
    count = count_ambiguous(scope.linked, scope.calls)
    if not count:
        return None
    message = (
        "GPU activities name a correlation id that several host calls carry (merged processes?): each is joined to the"
        " last such call before it, which may be another's launch"
    )
    return HealthFinding("ambiguous_correlations", "warning", message, count)


def _unplaced(trace: Trace) -> HealthFinding | None:
    if not trace.unplaced:
        return None
    message = "GPU activities do not say which GPU they ran on: they are counted for GPU 0"
    return HealthFinding("unnamed_device", "warning", message, trace.unplaced)


def _no_gpu(trace: Trace) -> HealthFinding | None:
    """Why a recording shows no GPU; nothing for tracekit's own CPU runs, which have none."""
    if trace.metadata.get("device") == "cpu":
        return None
    if trace.calls.height:
        message = (
            "the host called the GPU and no GPU activity was recorded: the profiler was not allowed to see it (CUPTI"
            " permission), or ended before the work did"
        )
        return HealthFinding("no_gpu_activity", "warning", message, trace.calls.height)
    message = "no GPU activity was recorded: the profiler was run without ProfilerActivity.CUDA, or there is no GPU"
    return HealthFinding("no_gpu_activity", "info", message, 0)


def _processes(trace: Trace, scope: Scope) -> HealthFinding | None:
    """Several processes that call the GPU: ranks that were merged into one file."""
    pids = pl.Series([thread.pid for thread in trace.threads], dtype=pl.String)
    callers = scope.calls.select("call", process=pids.gather(scope.calls["thread"]))
    count = callers["process"].n_unique()
    if count < 2:
        return None
    launched = scope.linked.join(callers, on="call").group_by("device").agg(pl.col("process").n_unique())
    shared = launched.filter(pl.col("process") > 1)["device"].sort().to_list()
    if shared:
        named = ", ".join(f"GPU {device}" for device in shared)
        message = (
            f"several processes launched the work of {named}: if ranks were merged that each call their own GPU by that"
            " number, figures mix these GPUs; analyse each rank's trace by itself"
        )
        return HealthFinding("several_processes", "warning", message, count)
    message = (
        "several processes call the GPU (ranks merged into one trace?): figures are sums over their GPUs, and steps of"
        " one count beside those of the others"
    )
    return HealthFinding("several_processes", "info", message, count)


def _coarse(trace: Trace) -> HealthFinding | None:
    """Epoch times with a fraction have more digits than the number they are read as."""
    if trace.resolution_ns <= COARSE_NS:
        return None
    message = (
        f"times are counted from 1970 and have fractions: they are exact to {trace.resolution_ns / 1e3:g} us only, so"
        " short gaps and overlaps are doubtful"
    )
    return HealthFinding("coarse_times", "warning", message, 1)


def _implausible(scope: Scope) -> HealthFinding | None:
    """One time that dwarfs all others: a broken clock, a flipped digit."""
    starts, ends = columns(scope.activities.sort("start_ns"), "start_ns", "end_ns")
    if len(starts) < 3:
        return None
    whole = int(ends.max() - starts.min())
    gaps = starts[1:] - np.maximum.accumulate(ends)[:-1]
    for what, lengths in (("activity", ends - starts), ("gap between activities", gaps)):
        second, longest = (int(each) for each in np.sort(lengths)[-2:])
        if longest > LONGEST_SHARE * whole and longest > LONGEST_FACTOR * max(second, 1):
            message = (
                f"one {what} of {longest / 1e3:,.0f} us is {longest / max(second, 1):,.0f} times as long as the next:"
                " if that is no measurement but a broken clock, busy and idle time are wrong"
            )
            return HealthFinding("implausible_times", "warning", message, 1)
    return None


def _early(scope: Scope) -> HealthFinding | None:
    """No kernel begins before the host launches it: the two clocks disagree."""
    launches = scope.calls.select("call", launch_ns="start_ns")
    early = scope.linked.join(launches, on="call").filter(pl.col("launch_ns") - pl.col("start_ns") > CLOCK_NS)
    if not early.height:
        return None
    most_us = int((early["launch_ns"] - early["start_ns"]).max()) / 1e3  # type: ignore[arg-type]
    message = (
        f"GPU activities begin before the call that launched them, by up to {most_us:,.1f} us: the clocks of host and"
        " GPU disagree, and so may idle causes"
    )
    return HealthFinding("clock_disorder", "warning", message, early.height)


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
    message = (
        "launch calls cannot be linked to kernels, for the trace has no correlation ids: launches are counted as 0, and"
        " kernels are placed in steps by their own start"
    )
    return HealthFinding("unlinkable_launches", "warning", message, calls.height)


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
    if not late:
        message = "launches at the beginning have no kernels: the profiler had not begun to record the GPU"
        return HealthFinding("launches_without_kernels", "info", message, lost.height)
    message = (
        f"launches have no kernels, {late:,} of them in the middle: the profiler's buffers were full, or the GPU had"
        " not finished when it stopped (synchronise before that); counts and busy time are too low"
    )
    return HealthFinding("launches_without_kernels", "warning", message, lost.height)


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
    message = (
        f"the first step took {factor:.1f} times as long as the others: it holds what happens once (the profiler's own"
        " start, warming up); --steps leaves it out"
    )
    return HealthFinding("slow_first_step", "warning", message, 1)


def _duplicated(trace: Trace) -> HealthFinding | None:
    """The same activity twice, in every respect."""
    starts, ends = columns(trace.activities, "start_ns", "end_ns")
    if not ((starts[1:] == starts[:-1]) & (ends[1:] == ends[:-1])).any():
        return None
    keys = ["kind", "name", "device", "stream", "start_ns", "end_ns", "correlation"]
    count = trace.activities.height - trace.activities.select(keys).n_unique()
    if not count:
        return None
    message = "GPU activities are in the file twice: counts and sums of kernels hold them twice, busy time once"
    return HealthFinding("duplicated_events", "warning", message, count)


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
    message = (
        f"activities of one stream overlap by up to {most_us:,.1f} us and were not launched to (programmatic dependent"
        " launch): their times are doubtful; busy time counts what overlaps once"
    )
    return HealthFinding("overlapping_kernels", "warning", message, late.height)


def _no_steps(trace: Trace, scope: Scope) -> HealthFinding | None:
    if scope.kind != "whole":
        return None
    message = "the whole trace is analysed: figures are totals, not per step"
    spans = trace.host.filter((pl.col("kind") == "annotation") & ~pl.col("name").str.starts_with("##"))
    names = spans["name"].unique(maintain_order=True).head(3).to_list()
    if names:
        message += f"; it has spans called {', '.join(names)}: --window takes a name or a regular expression"
    return HealthFinding("whole_trace", "info", message, 1)


def _empty_steps(scope: Scope) -> HealthFinding | None:
    """A mark around nothing, or a step whose work the profiler did not record."""
    count = len(scope.spans) - scope.activities["step"].n_unique()
    if not scope.spans or not count:
        return None
    message = (
        f"{count:,} of {len(scope.spans):,} steps have no GPU work (nothing was launched in them, or nothing recorded):"
        " figures per step count them, and are lower than those of the other steps"
    )
    return HealthFinding("empty_steps", "warning", message, count)


def _shared_steps(scope: Scope) -> HealthFinding | None:
    if not scope.doubtful:
        return None
    message = (
        "GPU activities launched on another thread lie in spans of several threads at once: each is counted for the"
        " span that began last"
    )
    return HealthFinding("ambiguous_steps", "warning", message, scope.doubtful)


def _overlapping_steps(scope: Scope) -> HealthFinding | None:
    """Steps may overlap where the host runs ahead of the GPU, or on several threads."""
    shared_ns = max(
        (interval.length(each) - interval.length(scope.windows[device]) for device, each in scope.step_windows.items()),
        default=0,
    )
    if shared_ns <= CLOCK_NS:
        return None
    message = (
        f"steps overlap on the GPU by {shared_ns / 1e3:,.1f} us in all: the list of steps counts that time in each of"
        " them, all other figures count it once"
    )
    return HealthFinding("overlapping_steps", "warning", message, len(scope.spans))


def _outside_work(gpu: GpuUse) -> HealthFinding | None:
    if gpu.outside_us <= MOST_OUTSIDE * gpu.busy_us:
        return None
    message = (
        f"for {gpu.outside_us:,.1f} us of the window nothing ran on the GPU but work launched outside of it: that is"
        " in its busy time, and among none of its kernels"
    )
    return HealthFinding("work_from_outside", "warning", message, 1)


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
