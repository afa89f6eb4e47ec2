"""Traces that are large in one respect, and how much time and memory a command takes for them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tests.traces import Json, launched, make_call, make_event, make_op, make_span

#: What the child process may have; a Python with polars and numpy reserves several gigabytes and touches few of them.
MOST_ADDRESSES = 8 << 30


def chain(
    depth: int, *, kind: str = "cpu_op", name: str = "aten::add", at_us: float = 0, thread: int = 1
) -> list[Json]:
    """Events around each other, 4 us from one start to the next, and a launch in each of them."""
    over = at_us + 8 * depth
    events = [make_event(kind, at_us + 4 * i, over - i, name=name, thread=thread) for i in range(depth)]
    launches = (launched(at_us + 4 * i + 1, 1, 1 + i + int(at_us), thread=thread, delay_us=1) for i in range(depth))
    return [*events, *flat(launches)]


def overlapping(count: int) -> list[Json]:
    """Operators that all overlap and none of which lies in another, and a launch in each."""
    events = [make_op(4 * i, 4 * (count + i)) for i in range(count)]
    return [*events, *flat(launched(4 * i + 1, 1, i + 1, delay_us=1) for i in range(count))]


def threads(count: int) -> list[Json]:
    """Each thread with a step, an operator, a launch, a call that waits, a graph's capture, and some of the profiler's
    own work."""
    return flat(
        [
            make_span(20 * i, 20 * i + 18, name=f"ProfilerStep#{i}", thread=i + 10),
            make_op(20 * i, 20 * i + 5, thread=i + 10),
            *launched(20 * i + 1, 3, i + 1, thread=i + 10),
            make_call(20 * i + 7, 20 * i + 9, name="cudaDeviceSynchronize", correlation=-i - 1, thread=i + 10),
            make_call(20 * i + 12, 20 * i + 13, name="cudaStreamBeginCapture", correlation=10**6 + i, thread=i + 10),
            make_event("overhead", 20 * i + 10, 20 * i + 11, name="Buffer Request", thread=0),
        ]
        for i in range(count)
    )


def processes(count: int) -> list[Json]:
    """Each process with a step and a region of compiled code around a launch."""
    events = flat(
        [
            make_span(20 * i, 20 * i + 18, name=f"ProfilerStep#{i}", thread=i + 10),
            make_op(20 * i, 20 * i + 5, name=f"Torch-Compiled Region: {i}/0", thread=i + 10),
            *launched(20 * i + 1, 3, i + 1, thread=i + 10),
        ]
        for i in range(count)
    )
    return [{**event, "pid": event["tid"]} if event["cat"] != "kernel" else event for event in events]


def overlapping_steps(count: int) -> list[Json]:
    """Steps that all overlap, and an idle GPU between their kernels."""
    steps = [make_span(20 * i, 20 * (count + i), name=f"ProfilerStep#{i}") for i in range(count)]
    return [*steps, *flat(launched(20 * i + 1, 3, i + 1) for i in range(count))]


def flat(some: Iterable[list[Json]]) -> list[Json]:
    return [event for events in some for event in events]


#: Each with a count that takes what is quadratic a multiple of the bounds.
SHAPES: dict[str, tuple[Callable[[int], list[Json]], int]] = {
    "chain": (chain, 6000),
    "overlapping": (overlapping, 6000),
    "threads": (threads, 3000),
    "processes": (processes, 3000),
    "overlapping steps": (overlapping_steps, 5000),
}


class Cost(NamedTuple):
    """Of a process: what it printed, the processor's seconds, and the most memory it held."""

    output: str
    seconds: float
    mebibytes: float


def cost_of(*arguments: str | Path) -> Cost:
    """Of this command line of tracekit. It must succeed within a bound of address space."""
    command = [sys.executable, "-c", COMMAND, str(MOST_ADDRESSES), *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    seconds, kib = done.stderr.strip().splitlines()[-1].split()
    return Cost(done.stdout, float(seconds), int(kib) / 1024)


#: Says last what it took. The interpreter ends at once behind it: see `end_at_once`.
COMMAND = """
import resource, sys
most = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_AS, (most, most))
from tracekit.cli.main import main
try:
    main(standalone_mode=False)
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    # Not ru_maxrss, which counts what the process that started this one held.
    (kib,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(f"\\n{used.ru_utime + used.ru_stime} {kib}", file=sys.stderr, flush=True)
"""


def write_events(path: Path, events: list[Json]) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path
