"""From a trace to its analysis, one question after the other."""

from typing import NoReturn

from tracekit.analysis import devices, idle, kernels, queue
from tracekit.analysis.communication import measure_communication
from tracekit.analysis.cpu import measure_cpu
from tracekit.analysis.health import check_health
from tracekit.analysis.regions import find_regions
from tracekit.analysis.window import Scope, find_named_or_steps, find_scope
from tracekit.errors import TracekitError
from tracekit.model.analysis import Analysis, MemorySummary, TraceFacts, Window
from tracekit.model.trace import Trace


def analyze(trace: Trace, *, window: str = "auto", steps: tuple[int, int] | None = None, cpu: bool = False) -> Analysis:
    """Every question asked of one trace.

    `window` is `auto` (steps if any are marked, else whole), `steps`, `whole`, or the name or regular expression of a
    host span. `steps` leaves only the marked steps with these numbers, the first and the last of them. A trace without
    GPU activity is analysed for its operators if tracekit recorded it on a CPU or `cpu` is set. Raises TracekitError
    when it is neither, or when nothing matches `window`.
    """
    if trace.activities.height:
        return _analyze_gpu(trace, find_scope(trace, window, steps))
    if not cpu and trace.metadata.get("device") != "cpu":
        _refuse_without_gpu(trace)
    return _analyze_cpu(trace, window, steps)


def _refuse_without_gpu(trace: Trace) -> NoReturn:
    if trace.truncated:
        raise TracekitError(
            f"{trace.path} is truncated, and the readable part has no GPU activity;"
            " copy or record it again, or pass --cpu to analyze its host operators"
        )
    if trace.skipped:
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in sorted(trace.skipped.items()))
        raise TracekitError(
            f"{trace.path} has no readable GPU activity; events were skipped ({reasons}); record it again"
        )
    if trace.calls.height:
        raise TracekitError(
            f"{trace.path} has kernel launches but no GPU activity: the profiler had no CUPTI permission;"
            " `tracekit doctor` prints the fix"
        )
    raise TracekitError(
        f"{trace.path} has no GPU activity: record it with ProfilerActivity.CUDA,"
        " or pass --cpu to analyze its host operators"
    )


def _analyze_gpu(trace: Trace, scope: Scope) -> Analysis:
    if not scope.activities.height:
        raise TracekitError(f"{trace.path} has no GPU activity inside the window; pass --window whole or another span")
    used = devices.measure_devices(trace, scope)
    gpu = devices.sum_devices(used)
    peak = trace.peak_allocated_bytes
    return Analysis(
        trace=TraceFacts(trace.path, trace.events, trace.bytes, trace.skipped),
        health=check_health(trace, scope, gpu),
        window=Window(scope.kind, len(scope.spans), max(device.span_us for device in used)),
        devices=used,
        gpu=gpu,
        kernels=kernels.summarize_kernels(scope),
        copies=kernels.summarize_copies(scope),
        launches=kernels.count_launches(scope),
        idle=idle.explain_idle(trace, scope),
        memory=None if peak is None else MemorySummary(peak, trace.allocations),
        steps=devices.measure_steps(trace, scope),
        cpu=None,
        queue=queue.measure_queues(trace, scope),
        regions=find_regions(trace, scope.spans, scope),
        communication=measure_communication(trace, scope, gpu),
    )


def _analyze_cpu(trace: Trace, window: str, steps: tuple[int, int] | None) -> Analysis:
    kind, spans = find_named_or_steps(trace, window, steps)
    use = measure_cpu(trace, spans)
    return Analysis(
        trace=TraceFacts(trace.path, trace.events, trace.bytes, trace.skipped),
        health=check_health(trace, None, None),
        window=Window(kind, len(spans), use.span_us),
        devices=(),
        gpu=None,
        kernels=None,
        copies=None,
        launches=None,
        idle=None,
        memory=None,
        steps=devices.time_steps(spans),
        cpu=use,
        regions=find_regions(trace, spans),
    )
