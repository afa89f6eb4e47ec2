"""What recording adds to the host's time of each kind of event: on this GPU, in this process, per kind of recording."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np
import torch
from torch.profiler import record_function

from tracekit.interpreter import collector_paused
from tracekit.interval import Floats
from tracekit.measure.device import synchronize
from tracekit.measure.host import host_us
from tracekit.measure.recording import begin_session, profiler_of
from tracekit.model.progress import Progress
from tracekit.model.recording_cost import Cost, EventCosts, RecordingCost

#: How often each loop is timed, unless that takes longer. Of a launch and a wait, the longest, it takes 20 ms.
REPEATS, MOST_NS = 20, 50_000_000
#: So many launches fit the GPU's queue: the host waits for none.
EVENTS, REPLAYS = 50, 5
#: Kernels of the larger graph.
NODES = 100
#: Each makes one launch by one operator. Of those that are `cold`, other work comes before: their code is no longer in
#: the processor's caches. `several` operators are hardly in them either.
LAUNCHES = ("in_place", "allocating", "several", "cold")
#: Matrix products, which call more of CUDA for each launch: what a process pays for every call once it has recorded.
LIBRARY_LAUNCHES = ("product", "linear", "cold_linear")
SEVERAL = "sin cos tanh abs neg relu sigmoid floor ceil sign erf square trunc exp2".split()
#: More than a core's own caches hold.
OTHER_WORK_BYTES = 4 * 2**20


class Loop(NamedTuple):
    call: Callable[[], object]
    events: int  #: How many calls are timed together.
    before: Callable[[], object] | None = None  #: What is done before each, and not timed.
    launches: int = 1  #: Of each.


def measure_recording_cost(device: str, progress: Progress, *, triton: bool) -> RecordingCost | None:
    """None on a CPU. With `triton` that of launching Triton kernels too, which this machine can compile.

    To be called before anything is recorded in the process: from then on launches take longer, recorded or not."""
    if device == "cpu":
        return None
    progress.phase("measuring what recording adds", still=True)
    return cost_of_recording(_loops(device, triton=triton), device)


def cost_of_recording(loops: dict[str, Loop], device: str) -> RecordingCost:
    unprofiled, host = _times(loops, device)
    # As in what is recorded: under a process's first session, launches take longer than under later ones.
    with profiler_of(device, "light"):
        begin_session(device)
    with profiler_of(device, "light"):
        begin_session(device)
        light, _ = _times(loops, device)
    with profiler_of(device, "rich"):
        begin_session(device)
        rich, _ = _times(loops, device)
    return RecordingCost(_event_costs(unprofiled, light, host), _event_costs(unprofiled, rich, host), host)


def _loops(device: str, *, triton: bool) -> dict[str, Loop]:
    on_gpu, pinned = torch.zeros(16, device=device), torch.zeros(16, pin_memory=True)
    other_work = np.zeros(OTHER_WORK_BYTES, dtype=np.uint8)
    matrix, bias = (torch.zeros(*shape, device=device, dtype=torch.float16) for shape in ((64, 64), (64,)))
    operators = [getattr(torch, name) for name in SEVERAL]

    def several() -> None:
        for operator in operators:
            operator(on_gpu)

    def launch_and_sync() -> None:
        on_gpu.add_(1)
        synchronize(device)

    def span() -> None:
        with record_function("span"):
            pass

    loops = {
        "in_place": Loop(lambda: on_gpu.add_(1), EVENTS),
        "allocating": Loop(lambda: torch.add(on_gpu, 1), EVENTS),
        "copy": Loop(lambda: on_gpu.copy_(pinned, non_blocking=True), EVENTS),
        "several": Loop(several, EVENTS // len(operators), launches=len(operators)),
        "cold": Loop(lambda: torch.add(on_gpu, 1), REPLAYS, partial(other_work.fill, 1)),
        "launch_and_sync": Loop(launch_and_sync, EVENTS),
        "view": Loop(lambda: on_gpu.view(4, 4), EVENTS),
        "span": Loop(span, EVENTS),
    }
    with suppress(RuntimeError):
        # No memory for the library's own. A GPU that is broken says so again at the next call.
        torch.addmm(bias, matrix, matrix)
        loops |= {
            "product": Loop(lambda: torch.mm(matrix, matrix), EVENTS),
            "linear": Loop(lambda: torch.addmm(bias, matrix, matrix), EVENTS),
            "cold_linear": Loop(lambda: torch.addmm(bias, matrix, matrix), REPLAYS, partial(other_work.fill, 1)),
        }
    if triton:
        # Needs Triton, as nothing else here does.
        from tracekit.doctor.small_kernel import launch

        launch(on_gpu)
        loops["driver"] = Loop(lambda: launch(on_gpu), EVENTS)
    # The kernel is loaded, which no capture may do.
    launch_and_sync()
    with suppress(torch.OutOfMemoryError, torch.AcceleratorError):
        # No memory for a graph, or none can be captured here. A GPU that is broken says so again at the next call.
        loops |= {name: Loop(_captured(on_gpu, nodes).replay, REPLAYS) for name, nodes in (("one", 1), ("many", NODES))}
    return loops


def _captured(on_gpu: torch.Tensor, nodes: int) -> torch.cuda.CUDAGraph:
    """A CUDA graph that needs no memory of torch's. `torch.cuda.graph` would give the workload's cached memory back."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.Stream()):
        # Other threads of the program do what they like meanwhile.
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            for _ in range(nodes):
                on_gpu.add_(1)
        finally:
            graph.capture_end()
    return graph


def _times(loops: dict[str, Loop], device: str) -> tuple[dict[str, list[float]], float]:
    """The host's time of one event, repeat by repeat, in times of what `host_us` then was: the host is not as fast in
    every repeat. And the median of that, in microseconds."""
    times: dict[str, list[float]] = {name: [] for name in loops}
    with collector_paused():
        for loop in loops.values():
            # What is called first takes longer.
            loop.call()
        synchronize(device)
        spent, host = dict.fromkeys(loops, 0), []
        # In rounds, so that what disturbs the machine for a while disturbs no loop alone.
        for _ in range(REPEATS):
            for name, loop in loops.items():
                if spent[name] <= MOST_NS:
                    before_us = host_us()
                    spent[name] += (ns := _time_ns(loop))
                    host.append((before_us + host_us()) / 2)
                    times[name].append(ns / 1e3 / (loop.events * loop.launches) / host[-1])
                    synchronize(device)
    return times, float(np.median(host))


def _time_ns(loop: Loop) -> int:
    if loop.before is None:
        began = perf_counter_ns()
        for _ in range(loop.events):
            loop.call()
        return perf_counter_ns() - began
    spent = 0
    for _ in range(loop.events):
        loop.before()
        began = perf_counter_ns()
        loop.call()
        spent += perf_counter_ns() - began
    return spent


def _event_costs(unprofiled: dict[str, list[float]], recorded: dict[str, list[float]], fast_us: float) -> EventCosts:
    """Of a host that is so fast."""
    added = {name: fast_us * _less(_quartiles(times), _quartiles(unprofiled[name])) for name, times in recorded.items()}
    where_possible = {"driver_launch": _cost(added["driver"])} if "driver" in added else {}
    if "product" in added:
        where_possible["library_launch"] = _cost(*(added[name] for name in LIBRARY_LAUNCHES))
    if "many" in added:
        # A line through both graphs: so much a launch, and so much a node.
        node = _less(added["many"], added["one"]) / (NODES - 1)
        where_possible |= {"graph_launch": _cost(_less(added["one"], node)), "graph_node": _cost(node)}
    return EventCosts(
        launch=_cost(*(added[name] for name in LAUNCHES)),
        copy=_cost(added["copy"]),
        operator=_cost(added["view"]),
        span=_cost(added["span"]),
        sync=_cost(_less(added["launch_and_sync"], added["in_place"])),
        **where_possible,
    )


def _quartiles(times: list[float]) -> Floats:
    found: Floats = np.quantile(times, (0.25, 0.5, 0.75))
    return found


def _less(some: Floats, others: Floats) -> Floats:
    """Low, middle and high of a difference, of those of what it is between."""
    found: Floats = some - others[::-1]
    return found


def _cost(*loops: Floats) -> Cost:
    """The median of the loops' middles, between the smallest low and the largest high."""
    low, us, high = np.stack(loops).T
    return Cost(*(max(each, 0.0) for each in (float(np.median(us)), float(low.min()), float(high.max()))))
