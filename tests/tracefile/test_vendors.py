"""Traces of all ages and vendors, by the category and function names that are public."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.traces import Json, analyze, make_event, make_op, make_trace

#: Of each: the categories of a kernel, a copy, a launching call and a waiting call, and the calls' names.
VENDORS = {
    "NVIDIA": ("kernel", "gpu_memcpy", "cuda_runtime", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize"),
    "CUDA driver": ("kernel", "gpu_memcpy", "cuda_driver", "cuLaunchKernelEx", "cuMemcpyAsync", "cuStreamSynchronize"),
    "AMD": ("kernel", "gpu_memcpy", "hip_runtime", "hipModuleLaunchKernel", "hipMemcpyAsync", "hipDeviceSynchronize"),
    "AMD, newer": ("kernel", "gpu_memcpy", "runtime", "hipExtLaunchKernel", "hipMemcpyAsync", "hipStreamSynchronize"),
    "Intel": ("kernel", "gpu_memcpy", "xpu_runtime", "urEnqueueKernelLaunch", "urEnqueueUSMMemcpy", "urQueueFinish"),
    "Meta MTIA": ("mtia_ccp_events", "gpu_memcpy", "mtia_runtime", "runFunction", "copy", "mtiaSynchronize"),
    "Enflame": ("kernel", "GCU_MEMCPY", "gcu_runtime", "topsLaunchKernel", "topsMemcpyAsync", "topsStreamSynchronize"),
    "other": ("kernel", "gpu_memcpy", "privateuse1_runtime", "launch", "copy", "deviceSynchronize"),
    "torch 1.8": ("Kernel", "Memcpy", "Runtime", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize"),
}


def trace_of(vendor: str) -> list[Json]:
    kernel, copy, call, launch, copying, waiting = VENDORS[vendor]
    operator = "Operator" if kernel == "Kernel" else "cpu_op"
    device = {"device": 0, "stream": 7}
    return [
        make_event(operator, 0, 30, name="aten::add"),
        {**make_event(call, 2, 4, name=launch), "args": {"correlation": 1, "external id": 5}},
        {**make_event(call, 6, 8, name=copying), "args": {"correlation": 2}},
        make_event(call, 20, 29, name=waiting),
        {**make_event(kernel, 10, 14, name="add_kernel"), "pid": 0, "tid": 7, "args": {**device, "correlation": 1}},
        {**make_event(copy, 16, 18, name="Memcpy DtoH"), "pid": 0, "tid": 7, "args": {**device, "correlation": 2}},
        {**make_event(kernel, 25, 26, name="late"), "pid": 0, "tid": 7, "args": {**device, "correlation": 1}},
    ]


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_vendor_s_trace_is_understood(vendor: str, tmp_path: Path) -> None:
    found = analyze(make_trace(tmp_path, trace_of(vendor)))
    assert (found.kernels.count, found.copies.memcpy_count) == (2, 1)
    assert (found.launches.count, found.launches.unlinked_kernels) == (1, 0)
    assert (found.gpu.busy_us, found.gpu.idle_us) == (7, 9)
    assert [sync.count for sync in found.idle.syncs] == [1]


@pytest.mark.parametrize("base", [None, 1_700_000_000_000_000_000])
@pytest.mark.parametrize("whole", [True, False])
def test_times_of_any_origin_whole_or_not(tmp_path: Path, base: int | None, whole: bool) -> None:
    events = trace_of("NVIDIA")
    for event in events:
        event["ts"] = int(event["ts"] + 5e9) if whole else event["ts"] + 5e9 + 0.25
        event["dur"] = int(event["dur"]) if whole else event["dur"]
    top = {"baseTimeNanoseconds": base} if base else {}
    found = analyze(make_trace(tmp_path, events, schemaVersion=1, **top))
    assert (found.gpu.busy_us, found.gpu.idle_us) == (7, 9)


def test_beginnings_and_ends_are_events_too(tmp_path: Path) -> None:
    split: list[Json] = []
    for event in trace_of("NVIDIA"):
        rest = {key: value for key, value in event.items() if key not in ("dur", "ph", "args")}
        split.append({**rest, "ph": "B", "args": event.get("args", {})})
        split.append({"ph": "E", "ts": event["ts"] + event["dur"], "pid": event["pid"], "tid": event["tid"]})
    split.sort(key=lambda event: (event["ts"], event["ph"] == "B"))
    trace = make_trace(tmp_path, split)
    found = analyze(trace)
    assert (found.gpu.busy_us, found.gpu.idle_us) == (7, 9)
    assert trace.skipped == {}


def test_beginnings_without_ends_are_counted(tmp_path: Path) -> None:
    begun = {"ph": "B", "cat": "cpu_op", "name": "endless", "pid": 1, "tid": 1, "ts": 0}
    ended = {"ph": "E", "cat": "cpu_op", "pid": 1, "tid": 2, "ts": 0}
    trace = make_trace(tmp_path, [*trace_of("NVIDIA"), begun, ended])
    assert trace.skipped == {"begun and never ended": 1, "an end without a beginning": 1}


def begun(at: float, name: str, thread: int = 1) -> Json:
    return {"ph": "B", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread, "ts": at}


def ended(at: float, name: str | None = None, thread: int = 1) -> Json:
    event: Json = {"ph": "E", "pid": 1, "tid": thread, "ts": at}
    return event if name is None else {**event, "name": name}


def lengths(folder: Path, events: list[Json]) -> tuple[dict[str, float], dict[str, int]]:
    trace = make_trace(folder, events)
    host = trace.host.select("name", us=(pl.col("end_ns") - pl.col("start_ns")) / 1e3)
    return dict(host.iter_rows()), trace.skipped


def test_the_last_that_began_ends_first(tmp_path: Path) -> None:
    events = [begun(0, "outer"), begun(1, "inner"), begun(1, "other", thread=2), ended(3), ended(9), ended(5, thread=2)]
    assert lengths(tmp_path, events) == ({"outer": 9, "inner": 2, "other": 4}, {})


def test_an_end_with_a_name_belongs_to_the_last_beginning_of_that_name(tmp_path: Path) -> None:
    # What overlaps instead of nesting is counted, not given another's length.
    crossed = [begun(0, "a"), begun(5, "b"), ended(10, "a"), ended(15, "b")]
    assert lengths(tmp_path, crossed) == ({"a": 10}, {"begun and never ended": 1})


def test_what_began_in_one_piece_of_the_file_may_end_in_another(tmp_path: Path) -> None:
    filling = [make_op(2 + i / 1e4, 2.00001 + i / 1e4, name=f"filling {i}") for i in range(9000)]
    found, skipped = lengths(tmp_path, [begun(0, "long"), *filling, ended(9, "long")])
    assert (tmp_path / "trace.json").stat().st_size > 1 << 20
    assert (found["long"], skipped) == (9, {})


def as_brackets(pairs: list[tuple[str, str | None]]) -> tuple[list[tuple[str, int, int]], int, int]:
    """What `test_pairs...` expects, looked for from the top of a stack each time: name, begin and end of each pair, how
    many beginnings are lost, and how many ends."""
    stack: list[tuple[str | None, int]] = []
    found, lost, stray = [], 0, 0
    for at, (phase, name) in enumerate(pairs):
        if phase == "B":
            stack.append((name, at))
            continue
        fitting = [i for i, (begun_name, _) in enumerate(stack) if name is None or begun_name in (name, None)]
        if not fitting:
            stray += 1
            continue
        lost += len(stack) - 1 - fitting[-1]
        begun_name, begun_at = stack[fitting[-1]]
        del stack[fitting[-1] :]
        found.append((begun_name, begun_at, at))
    return [each for each in found if each[0] is not None], lost + len(stack), stray


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("BE"), st.sampled_from(["a", "b", "c", None])), max_size=30))
def test_pairs_belong_together_as_brackets_do(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str | None]]
) -> None:
    events: list[Json] = [
        {"ph": phase, "cat": "cpu_op", "pid": 1, "tid": 1, "ts": at} | ({} if name is None else {"name": name})
        for at, (phase, name) in enumerate(pairs)
    ]
    trace = make_trace(tmp_path_factory.getbasetemp(), [*trace_of("NVIDIA"), *events])
    found, lost, stray = as_brackets(pairs)
    own = {number for number, thread in enumerate(trace.threads) if (thread.pid, thread.tid) == ("1", "1")}
    host = trace.host.filter(pl.col("thread").is_in(list(own)))
    assert sorted(zip(host["name"], host["end_ns"] - host["start_ns"], strict=True)) == sorted(
        (name, 1000 * (end - begin)) for name, begin, end in found
    )
    assert trace.skipped.get("begun and never ended", 0) == lost
    assert trace.skipped.get("an end without a beginning", 0) == stray


def test_ends_of_what_never_began_are_passed_over_in_no_time_to_speak_of(tmp_path: Path) -> None:
    count = 30_000
    events = [*(begun(at, "a") for at in range(count)), *(ended(count + at, "b") for at in range(count))]
    seconds = time.process_time()
    trace = make_trace(tmp_path, events)
    assert trace.skipped["begun and never ended"] == count
    # A second for each thousand beginnings that were looked through for each end.
    assert time.process_time() - seconds < 10
