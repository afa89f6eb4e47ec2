"""What a reader should know or do, a file each; findings of one kind share one. A healthy comparison has none that asks
for action."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from tracekit.comparison.findings.blocking_calls import find_pageable_copies, find_synchronising_calls
from tracekit.comparison.findings.broken_graphs import find_broken_graphs
from tracekit.comparison.findings.cold_start import find_cold_start
from tracekit.comparison.findings.compile_slower import find_compile_slower
from tracekit.comparison.findings.cuda_graphs import find_graphed_launches, find_launch_bound, find_skipped_cuda_graphs
from tracekit.comparison.findings.eager_code import find_eager_fallback, find_little_compiled, find_uncompiled_component
from tracekit.comparison.findings.gpu_work import find_fewer_kernels, find_more_gpu_time
from tracekit.comparison.findings.lost_attention import find_lost_attention
from tracekit.comparison.findings.outputs_differ import find_outputs_differ
from tracekit.comparison.findings.profiler_distortion import find_profiler_distortion
from tracekit.comparison.findings.recompiles import find_compiled_again, find_recompiled_during_timing
from tracekit.comparison.findings.single_precision import find_single_precision
from tracekit.comparison.findings.slower_kernels import find_slower_attention, find_slower_convolutions
from tracekit.model.comparison import Bound, Comparison, Deltas, Finding, Side, Verdict
from tracekit.model.note import Severity

Finder = Callable[[Comparison], Finding | None]
#: The least first.
SEVERITIES = get_args(Severity)
#: What puts the figures in doubt, before anything else.
DOUBTING: tuple[Finder, ...] = (
    find_outputs_differ,
    find_recompiled_during_timing,
    find_eager_fallback,
    find_compile_slower,
)
#: A new finding is one file here and one line below. Of equally grave ones that promise the same the upper comes first.
FINDERS: tuple[Finder, ...] = (
    find_lost_attention,
    find_slower_attention,
    find_slower_convolutions,
    find_more_gpu_time,
    find_launch_bound,
    find_skipped_cuda_graphs,
    find_broken_graphs,
    find_little_compiled,
    find_compiled_again,
    find_cold_start,
    find_synchronising_calls,
    find_pageable_copies,
    find_single_precision,
    find_uncompiled_component,
    find_graphed_launches,
    find_fewer_kernels,
    find_profiler_distortion,
)
#: Those that look at one side alone.
FINDERS_OF_ONE_SIDE = (
    find_recompiled_during_timing,
    find_eager_fallback,
    find_launch_bound,
    find_skipped_cuda_graphs,
    find_broken_graphs,
    find_little_compiled,
    find_compiled_again,
    find_synchronising_calls,
    find_pageable_copies,
    find_single_precision,
    find_profiler_distortion,
)


def find_of_one_side(side: Side, bound: Bound | None = None) -> tuple[Finding, ...]:
    """What is found of one side without another: it stands on both sides of the comparison that is looked at."""
    nothing = Verdict("not_timed", None, None, None, None, None)
    deltas = Deltas(None, None, None, None)
    itself = Comparison(side, side, nothing, deltas, None, (), None, (), (), bound, bound)
    found = (find(itself) for find in FINDERS_OF_ONE_SIDE)
    return tuple(finding for finding in found if finding is not None)


def find_all(comparison: Comparison) -> tuple[Finding, ...]:
    """The graver first, and of equally grave ones what may save most; what puts the figures in doubt before both."""
    doubting = tuple(finding for find in DOUBTING if (finding := find(comparison)) is not None)
    found = [finding for find in FINDERS if (finding := find(comparison)) is not None]
    return (*doubting, *sorted(found, key=lambda each: (-SEVERITIES.index(each.severity), -(each.saving_us or 0.0))))
