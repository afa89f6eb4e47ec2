"""What a reader should know or do, one finding a file. A healthy comparison has none that asks for action."""

from __future__ import annotations

from collections.abc import Callable

from tracekit.comparison.findings.compile_slower import find_compile_slower
from tracekit.comparison.findings.fewer_kernels import find_fewer_kernels
from tracekit.comparison.findings.graphed_launches import find_graphed_launches
from tracekit.comparison.findings.launch_bound import find_launch_bound
from tracekit.comparison.findings.lost_attention import find_lost_attention
from tracekit.comparison.findings.more_gpu_time import find_more_gpu_time
from tracekit.comparison.findings.outputs_differ import find_outputs_differ
from tracekit.comparison.findings.profiler_distortion import find_profiler_distortion
from tracekit.comparison.findings.recompiled_during_timing import find_recompiled_during_timing
from tracekit.model.comparison import Comparison, Finding

#: The most serious first. A new finding is one file here and one line below.
FINDERS: tuple[Callable[[Comparison], Finding | None], ...] = (
    find_outputs_differ,
    find_recompiled_during_timing,
    find_compile_slower,
    find_lost_attention,
    find_more_gpu_time,
    find_launch_bound,
    find_graphed_launches,
    find_fewer_kernels,
    find_profiler_distortion,
)


def find_all(comparison: Comparison) -> tuple[Finding, ...]:
    found = (find(comparison) for find in FINDERS)
    return tuple(finding for finding in found if finding is not None)
