"""What must a reader of the figures know about the recording?"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.analysis.links import CLOCK_NS, count_ambiguous
from tracekit.analysis.timeline import COMPILING
from tracekit.analysis.window import Scope, columns, touching
from tracekit.interval import Ints
from tracekit.model.analysis import GpuUse, Health
from tracekit.model.trace import Trace
from tracekit.statements import health as statements

#: Field measurements on an H200, torch 2.11: with_stack on compiled FLUX.1-dev took 4.02 times as long as unprofiled.
STACKS_FACTOR = 4
#: A first step this much longer than the others is worth saying.
FIRST_STEP_FACTOR = 1.5
#: Host API calls that launch kernels, of all vendors.
LAUNCH_CALL = r"Launch\w*Kernel|KernelLaunch|GraphLaunch|LaunchByPtr"
#: Calls that can ask for a programmatic dependent launch: the kernel may begin while the one before it ends (NVIDIA,
#: from compute capability 9.0 on).
DEPENDENT_LAUNCH = "LaunchKernelEx"
#: Between these a thread's launches are recorded into a graph, and start nothing.
BEGIN_CAPTURE, END_CAPTURE = "StreamBeginCapture", "StreamEndCapture"
#: One activity or gap so much of the window, and so much longer than the next, is no measurement.
LONGEST_SHARE, LONGEST_FACTOR = 0.9, 1000
#: More than this share of busy time by work from outside the window is worth saying.
MOST_OUTSIDE = 0.001
#: Times that are less exact than this are worth saying.
COARSE_NS = 10


def check_health(trace: Trace, scope: Scope | None, gpu: GpuUse | None) -> tuple[Health, ...]:
    """The findings, worst first; `scope` and `gpu` are None for a CPU-only recording."""
    found = [*_of_recording(trace, scope)]
    if scope is not None:
        found += [*_of_links(scope), *_of_steps(scope), *_of_activities(trace), *_of_processes(trace, scope)]
        found += [*_of_launches(scope)]
    if gpu is not None and gpu.outside_us > MOST_OUTSIDE * gpu.busy_us:
        found += [statements.WorkFromOutside(1, outside_us=gpu.outside_us)]
    return tuple(sorted(found, key=lambda each: ("error", "warning", "info").index(each.severity)))


def _of_recording(trace: Trace, scope: Scope | None) -> Iterator[Health]:
    """What of the file could not be read, or not exactly; and what the profiler was told to record, and when."""
    if trace.truncated:
        yield statements.Truncated(1)
    if skipped := sum(trace.skipped.values()):
        yield statements.SkippedEvents(skipped, reasons=dict(sorted(trace.skipped.items())))
    # Epoch times with a fraction have more digits than the number they are read as.
    if trace.resolution_ns > COARSE_NS:
        yield statements.CoarseTimes(1, exact_to_us=trace.resolution_ns / 1e3)
    compiling = trace.host.filter(pl.col("name").str.ends_with(COMPILING))
    if scope is not None:
        # Compiling before the window or between its steps costs none of its time.
        compiling = compiling.filter(touching(scope, *columns(compiling, "start_ns", "end_ns")))
    if compiling.height:
        yield statements.CompileInWindow(compiling.height)
    stacks = trace.host.filter(pl.col("kind") == "python").height
    if stacks or trace.record_flags.get("with_stack"):
        yield statements.PythonStacksRecorded(stacks, host_slower_up_to=STACKS_FACTOR)
    if scope is None and trace.metadata.get("device") != "cpu":
        # tracekit's own CPU runs have no GPU.
        calls = trace.calls.height
        yield statements.NoGpuActivity(calls, host_calls=calls)


def _of_links(scope: Scope) -> Iterator[Health]:
    """What is wrong between launches and what they launched, or with the times of both."""
    unlinked = scope.activities.filter((pl.col("kind") == "kernel") & pl.col("call").is_null()).height
    if unlinked:
        yield statements.UnlinkedKernels(unlinked)
    starts, ends = columns(scope.activities.sort("start_ns"), "start_ns", "end_ns")
    gaps = starts[1:] - np.maximum.accumulate(ends)[:-1]
    named: tuple[tuple[Literal["activity", "gap"], Ints], ...] = (("activity", ends - starts), ("gap", gaps))
    for what, lengths in named if len(starts) >= 3 else ():
        # One time that dwarfs all others: a broken clock, a flipped digit.
        second, longest = (int(each) for each in np.sort(lengths)[-2:])
        if longest > LONGEST_SHARE * int(ends.max() - starts.min()) and longest > LONGEST_FACTOR * max(second, 1):
            yield statements.ImplausibleTimes(1, what, longest / 1e3, longest / max(second, 1))
            break
    # Correlation ids are counted per process: traces of several that were merged use the same ones.
    if ambiguous := count_ambiguous(scope.linked, scope.calls):
        yield statements.AmbiguousCorrelations(ambiguous)
    # No kernel begins before the host launches it: the two clocks disagree.
    early = scope.linked.select(ns=pl.col("called_ns") - pl.col("start_ns")).filter(pl.col("ns") > CLOCK_NS)
    if early.height:
        most_us = int(early["ns"].to_numpy().max()) / 1e3
        yield statements.ClockDisorder(early.height, early_by_up_to_us=most_us)


def _of_steps(scope: Scope) -> Iterator[Health]:
    steps = len(scope.spans)
    lengths = np.array([span.end_ns - span.start_ns for span in scope.spans])
    if scope.kind == "steps" and steps >= 3:
        # The profiler's own first step is slow, and so is one that still warms up.
        factor = float(lengths[0] / max(np.median(lengths[1:]), 1))
        if factor >= FIRST_STEP_FACTOR:
            yield statements.SlowFirstStep(1, times_the_others=factor)
    # A mark around nothing, or a step whose work the profiler did not record.
    empty = steps - scope.activities["step"].n_unique()
    if steps and empty:
        yield statements.EmptySteps(empty, empty_steps=empty, steps=steps)
    if scope.doubtful:
        yield statements.AmbiguousSteps(scope.doubtful)
    # Steps may overlap where the host runs ahead of the GPU, or on several threads.
    shared_ns = max(
        (interval.length(each) - interval.length(scope.windows[device]) for device, each in scope.step_windows.items()),
        default=0,
    )
    if shared_ns > CLOCK_NS:
        yield statements.OverlappingSteps(steps, overlap_us=shared_ns / 1e3)


def _of_activities(trace: Trace) -> Iterator[Health]:
    if trace.unplaced:
        yield statements.UnnamedDevice(trace.unplaced)
    # Kernels of one stream run one after the other; a microsecond's overlap is the profiler's clock. One launched to
    # depend on the one before by its own program (cuBLASLt's split-K sums on an H200) may begin before that has ended.
    known = trace.activities.filter(pl.col("stream").is_not_null())
    before = pl.col("start_ns", "end_ns").cum_max().shift(1).over("device", "stream").name.prefix("before_")
    overlap = pl.col("before_end_ns") - pl.col("start_ns")
    late = known.with_columns(before).filter(overlap > CLOCK_NS)
    dependent = trace.calls.filter(pl.col("name").str.contains(DEPENDENT_LAUNCH))["correlation"].drop_nulls().unique()
    in_turn = (pl.col("start_ns") > pl.col("before_start_ns")) & (pl.col("end_ns") >= pl.col("before_end_ns"))
    late = late.filter(~(pl.col("correlation").is_in(dependent.implode()).fill_null(value=False) & in_turn))
    if late.height:
        most_us = int(late.select(overlap.max()).item()) / 1e3
        yield statements.OverlappingKernels(late.height, overlap_up_to_us=most_us)
    # The same activity twice, in every respect; looked for only where two begin and end together.
    starts, ends = columns(trace.activities, "start_ns", "end_ns")
    if ((starts[1:] == starts[:-1]) & (ends[1:] == ends[:-1])).any():
        keys = ["kind", "name", "device", "stream", "start_ns", "end_ns", "correlation"]
        if twice := trace.activities.height - trace.activities.select(keys).n_unique():
            yield statements.DuplicatedEvents(twice)


def _of_processes(trace: Trace, scope: Scope) -> Iterator[Health]:
    if scope.kind == "whole":
        spans = trace.host.filter((pl.col("kind") == "annotation") & ~pl.col("name").str.starts_with("##"))
        names = spans["name"].unique(maintain_order=True).head(3).to_list()
        yield statements.WholeTrace(1, spans=names)
    # Several processes that call the GPU: ranks that were merged into one file.
    pids = pl.Series([thread.pid for thread in trace.threads], dtype=pl.String)
    callers = scope.calls.select("call", process=pids.gather(scope.calls["thread"]))
    count = callers["process"].n_unique()
    if count > 1:
        launched = scope.linked.join(callers, on="call").group_by("device").agg(pl.col("process").n_unique())
        shared = launched.filter(pl.col("process") > 1)["device"].sort().to_list()
        yield statements.SeveralProcesses(count, shared_gpus=shared)


def _of_launches(scope: Scope) -> Iterator[Health]:
    launches = scope.calls.filter(pl.col("name").str.contains(LAUNCH_CALL))
    named = launches.filter(pl.col("correlation").is_not_null())
    kernels = scope.linked.filter(pl.col("kind") == "kernel")
    if launches.height and kernels.height and not (named.height and kernels["correlation"].count()):
        # Nothing says what they launched: older profilers and tools that rewrite traces leave correlation ids out, on
        # either side.
        yield statements.UnlinkableLaunches(launches.height)
        return
    # Dropped when the session began, or when the buffers were full.
    # Which of the calls only recorded a launch into a CUDA graph.
    marks = scope.calls.filter(pl.col("name").str.contains(f"{BEGIN_CAPTURE}|{END_CAPTURE}"))
    begins = pl.col("name").str.contains(BEGIN_CAPTURE, literal=True)
    marked = marks.select("thread", "start_ns", captured=begins)
    last = named.join_asof(marked, on="start_ns", by="thread", check_sortedness=False)["captured"]
    calls = named.filter(~last.fill_null(value=False))
    lost = calls.join(scope.linked, on="correlation", how="anti")
    if lost.height:
        first = calls.filter(~pl.col("call").is_in(lost["call"].implode()))["start_ns"].min()
        late = lost.height if first is None else lost.filter(pl.col("start_ns") > first).height
        yield statements.LaunchesWithoutKernels(lost.height, in_the_middle=late)
