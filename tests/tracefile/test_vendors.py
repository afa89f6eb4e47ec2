"""Traces of all ages and vendors, by the category and function names that are public."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.traces import Json, make_event, make_op, make_trace

from tracekit.analysis import analyze

#: Of each: the categories of a kernel, a copy, a launching call and a waiting call, and the calls' names.
VENDORS = {
    "NVIDIA": ("kernel", "gpu_memcpy", "cuda_runtime", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize"),
    "NVIDIA driver": (
        "kernel",
        "gpu_memcpy",
        "cuda_driver",
        "cuLaunchKernelEx",
        "cuMemcpyAsync",
        "cuStreamSynchronize",
    ),
    "AMD": ("kernel", "gpu_memcpy", "hip_runtime", "hipModuleLaunchKernel", "hipMemcpyAsync", "hipDeviceSynchronize"),
    "AMD, newer": ("kernel", "gpu_memcpy", "runtime", "hipExtLaunchKernel", "hipMemcpyAsync", "hipStreamSynchronize"),
    "Intel": ("kernel", "gpu_memcpy", "xpu_runtime", "urEnqueueKernelLaunch", "urEnqueueUSMMemcpy", "urQueueFinish"),
    "Meta MTIA": ("mtia_ccp_events", "gpu_memcpy", "mtia_runtime", "runFunction", "copy", "mtiaSynchronize"),
    "Enflame": ("kernel", "GCU_MEMCPY", "gcu_runtime", "topsLaunchKernel", "topsMemcpyAsync", "topsStreamSynchronize"),
    "other": ("kernel", "gpu_memcpy", "privateuse1_runtime", "launch", "copy", "deviceSynchronize"),
    "Kineto of torch 1.8": (
        "Kernel",
        "Memcpy",
        "Runtime",
        "cudaLaunchKernel",
        "cudaMemcpyAsync",
        "cudaDeviceSynchronize",
    ),
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
    assert found.kernels is not None
    assert found.copies is not None
    assert found.launches is not None
    assert found.idle is not None
    assert found.gpu is not None
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
    assert found.gpu is not None
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
    assert found.gpu is not None
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
