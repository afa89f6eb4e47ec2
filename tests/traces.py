"""Traces built by hand, the real ones under tests/data, and the runs and the sweep that come with the checkout."""

import json
import re
from pathlib import Path
from typing import Any

from tracekit import analysis
from tracekit.model.trace import Trace
from tracekit.tracefile.read import read_trace

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"


def recording(name: str) -> Path:
    """A committed recording, however it is packed."""
    return next(DATA.glob(f"{name}.json.*"))


#: Folders that only exist on the machine a run was made on.
PRIVATE = re.compile(r"/(home|root|tmp|work|opt|mnt|Users|var)/[\w.-]+")
#: From the repository's top. Others lie beside them as soon as somebody measures something.
RUNS = FLUX, QWEN, VIT, GRAPHED = tuple(
    Path("traces", name)
    for name in ("h100-flux-compiled", "h100-qwen2.5-vl-decode", "h100-vit", "h100-vit-reduce-overhead")
)
SWEEP = Path("sweeps/h200-qwen2.5-vl")

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


def launched(
    at_us: float, lasting_us: float, correlation: int, *, thread: int = 1, name: str = "gemm", delay_us: float = 2
) -> list[Json]:
    """A launch of 1 us at this moment, and its kernel, which begins so much after it."""
    begin_us = at_us + delay_us
    kernel = make_kernel(begin_us, begin_us + lasting_us, correlation=correlation, name=name)
    return [make_call(at_us, at_us + 1, correlation=correlation, thread=thread), kernel]


def make_overlapping_launches(count: int) -> list[Json]:
    """A launch of 4 us every 5.4 us, of kernels of 2 us that begin 5 us after their calls return. When one ends the
    next one's call has returned, but nothing is behind anything else."""
    events = []
    for number in range(count):
        at_us = round(5.4 * number, 1)
        kernel = make_kernel(at_us + 9, at_us + 11, correlation=number + 1)
        events += [make_call(at_us, at_us + 4, correlation=number + 1), kernel]
    return events


def make_step(
    number: int, names: str, *, start: float | None = None, length: float = 90, size: int = 8, us: float = 4
) -> list[Json]:
    """A step that launches each of its kernels by an operator of its own, whose input has this size."""
    start = 100 * number if start is None else start
    inputs: Json = {"Input Dims": [[size]], "Input type": ["float"]}
    events = [make_span(start, start + length, name=f"tracekit.step#{number}")]
    for at, name in enumerate(names):
        begin = start + 10 * at
        events += [
            make_op(begin, begin + 5, **inputs),
            *launched(begin + 1, us, 100 * number + at + 1, name=name, delay_us=3),
        ]
    return events


def make_steps(*steps: tuple[str, float, int]) -> list[Json]:
    """Steps one after the other: the names of each, its length and the size of its inputs."""
    made = (make_step(at, names, length=length, size=size) for at, (names, length, size) in enumerate(steps))
    return [event for each in made for event in each]


def make_replay(number: int, names: str, *, length: float = 90) -> list[Json]:
    """A step that launches one CUDA graph, whose kernels start in this order; the longest are called `a`."""
    start = 100 * number
    kernels = [
        make_kernel(start + 10 * at, start + 10 * at + (8 if name == "a" else 4), name=name, correlation=number + 1)
        for at, name in enumerate(names, start=1)
    ]
    call = make_call(start + 1, start + 2, name="cudaGraphLaunch", correlation=number + 1)
    return [make_span(start, start + length, name=f"tracekit.step#{number}"), call, *kernels]
