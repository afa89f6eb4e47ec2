"""Findings in words: one file a finding, which has `title(facts)` and `evidence(facts)`."""

from __future__ import annotations

from types import ModuleType

from tracekit.model.comparison import Finding
from tracekit.report.words.actions import action_words
from tracekit.report.words.findings import (
    broken_graphs,
    cold_start,
    compile_slower,
    compiled_again,
    eager_fallback,
    fewer_kernels,
    graphed_launches,
    launch_bound,
    little_compiled,
    lost_attention,
    more_gpu_time,
    outputs_differ,
    pageable_copies,
    profiler_distortion,
    recompiled_during_timing,
    single_precision,
    skipped_cuda_graphs,
    slower_attention,
    slower_convolutions,
    synchronising_calls,
    uncompiled_component,
)

WORDS: dict[str, ModuleType] = {
    "broken_graphs": broken_graphs,
    "cold_start": cold_start,
    "compile_slower": compile_slower,
    "compiled_again": compiled_again,
    "eager_fallback": eager_fallback,
    "fewer_kernels": fewer_kernels,
    "graphed_launches": graphed_launches,
    "launch_bound": launch_bound,
    "little_compiled": little_compiled,
    "lost_attention": lost_attention,
    "more_gpu_time": more_gpu_time,
    "outputs_differ": outputs_differ,
    "pageable_copies": pageable_copies,
    "profiler_distortion": profiler_distortion,
    "recompile_limit": eager_fallback,
    "recompiled_during_timing": recompiled_during_timing,
    "single_precision": single_precision,
    "skipped_cuda_graphs": skipped_cuda_graphs,
    "slower_attention": slower_attention,
    "slower_convolutions": slower_convolutions,
    "synchronising_calls": synchronising_calls,
    "uncompiled_component": uncompiled_component,
}


def finding_title(finding: Finding) -> str:
    return str(WORDS[finding.code].title(finding.facts))


def finding_evidence(finding: Finding) -> str:
    return str(WORDS[finding.code].evidence(finding.facts))


def finding_advice(finding: Finding) -> str | None:
    """The command to type, or what to change; None where there is none."""
    return action_words(finding.action)
