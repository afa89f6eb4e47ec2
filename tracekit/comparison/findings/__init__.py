"""What a reader should know or do, a file each; findings of one kind share one. A healthy comparison has none that asks
for action."""

from collections.abc import Callable
from typing import get_args

from tracekit.comparison.findings import (
    blocking_calls,
    compilation,
    eager_code,
    launch_bound,
    precision,
    slower_kernels,
    times,
)
from tracekit.model.comparison import Comparison, Deltas, Finding, Side, Verdict
from tracekit.model.statement import Severity
from tracekit.wings import load, over_ranks

Finder = Callable[[Comparison], Finding | None]
#: The least first.
SEVERITIES = get_args(Severity)
#: What puts the figures in doubt, before anything else.
DOUBTING: tuple[Finder, ...] = (
    precision.find_outputs_differ,
    compilation.find_recompiled_during_timing,
    eager_code.find_eager_fallback,
    times.find_compile_slower,
)
#: A new finding is one file here and one line below. Of equally grave ones that promise the same the upper comes first.
FINDERS: tuple[Finder, ...] = (
    slower_kernels.find_lost_attention,
    slower_kernels.find_slower_attention,
    slower_kernels.find_slower_convolutions,
    launch_bound.find_more_gpu_time,
    launch_bound.find_launch_bound,
    launch_bound.find_skipped_cuda_graphs,
    compilation.find_broken_graphs,
    eager_code.find_little_compiled,
    compilation.find_compiled_again,
    times.find_cold_start,
    blocking_calls.find_synchronising_calls,
    blocking_calls.find_pageable_copies,
    precision.find_single_precision,
    eager_code.find_uncompiled_component,
    launch_bound.find_small_kernels,
    launch_bound.find_graphed_launches,
    launch_bound.find_fewer_kernels,
    times.find_profiler_distortion,
)


def find_of_one_side(side: Side) -> tuple[Finding, ...]:
    """What is found of one side without another: beside itself nothing is found that takes two."""
    itself = Comparison(side, side, Verdict("not_timed"), Deltas(), None, (), None, (), ())
    return tuple(finding for find in (*DOUBTING, *FINDERS) if (finding := find(itself)) is not None)


def find_all(comparison: Comparison) -> tuple[Finding, ...]:
    """The graver first, and of equally grave ones what may save most; what puts the figures in doubt before both."""
    doubting = tuple(finding for find in DOUBTING if (finding := find(comparison)) is not None)
    known = over_ranks() if comparison.job is not None else None
    finders: tuple[Finder, ...] = (*FINDERS, *(load(known.finders) if known else ()))
    found = [finding for find in finders if (finding := find(comparison)) is not None]
    return (*doubting, *sorted(found, key=lambda each: (-SEVERITIES.index(each.severity), -(each.saving_us or 0.0))))
