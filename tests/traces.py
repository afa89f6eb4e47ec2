"""Traces built by hand, and the real ones under tests/data."""

import json
from pathlib import Path
from typing import Any

from tracekit import analysis
from tracekit.model.trace import Trace
from tracekit.tracefile import read_trace

DATA = Path(__file__).parent / "data"

Json = dict[str, Any]


def make_kernel(
    start_us: float,
    end_us: float,
    *,
    name: str = "gemm",
    stream: int = 7,
    device: int = 0,
    correlation: int | None = None,
) -> Json:
    """A kernel as Kineto writes it."""
    return _activity("kernel", name, start_us, end_us, stream, device, correlation)


def make_copy(start_us: float, end_us: float, *, kind: str = "memcpy", correlation: int | None = None) -> Json:
    return _activity(f"gpu_{kind}", f"{kind.title()} HtoD", start_us, end_us, 7, 0, correlation)


def _activity(
    category: str, name: str, start_us: float, end_us: float, stream: int, device: int, correlation: int | None
) -> Json:
    args: Json = {"device": device, "stream": stream}
    if correlation is not None:
        args["correlation"] = correlation
    event = _complete(category, name, start_us, end_us)
    return {**event, "pid": device, "tid": stream, "args": args}


def make_call(
    start_us: float,
    end_us: float,
    *,
    name: str = "cudaLaunchKernel",
    correlation: int = 0,
    thread: int = 1,
    category: str = "cuda_runtime",
) -> Json:
    """A host API call."""
    event = _complete(category, name, start_us, end_us, thread)
    return {**event, "args": {"correlation": correlation}}


def make_op(start_us: float, end_us: float, *, name: str = "aten::add", thread: int = 1, **args: Any) -> Json:
    return {**_complete("cpu_op", name, start_us, end_us, thread), "args": args}


def make_span(start_us: float, end_us: float, *, name: str = "tracekit.step#0", thread: int = 1) -> Json:
    return _complete("user_annotation", name, start_us, end_us, thread)


def make_event(category: str, start_us: float, end_us: float, *, name: str, thread: int = 1) -> Json:
    return _complete(category, name, start_us, end_us, thread)


def _complete(category: str, name: str, start_us: float, end_us: float, thread: int = 1) -> Json:
    dur = round(end_us - start_us, 6)
    return {"ph": "X", "cat": category, "name": name, "pid": 100, "tid": thread, "ts": start_us, "dur": dur}


def write_trace(folder: Path, events: list[Json], **top: Any) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events, **top}))
    return path


def make_trace(folder: Path, events: list[Json], **top: Any) -> Trace:
    """The trace a file with these events is read as."""
    return read_trace(write_trace(folder, events, **top))


def analyze(trace: Trace, **options: Any) -> Any:
    """The trace's analysis, as whoever knows which parts of it there are takes it."""
    return analysis.analyze(trace, **options)


def launched(at_us: float, lasting_us: float, correlation: int, *, thread: int = 1, name: str = "gemm") -> list[Json]:
    """A launch of 1 us at this moment, and its kernel, which begins 2 us after it."""
    kernel = make_kernel(at_us + 2, at_us + 2 + lasting_us, correlation=correlation, name=name)
    return [make_call(at_us, at_us + 1, correlation=correlation, thread=thread), kernel]
