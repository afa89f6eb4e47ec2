"""Is the compiled form slower, does its start take many calls to pay, or does a recording mislead about times?"""

import math

from tracekit.comparison.commands import run_again, scope_changes
from tracekit.comparison.findings.launch_bound import graphs_saving
from tracekit.model.comparison import Comparison, Finding
from tracekit.statements.findings.times import ColdStart, CompileSlower, ProfilerDistortion, Slowdown, WarmStart

#: From so many calls on, and so long a start-up, it is worth a line: nobody waits ten seconds unawares, and a hundred
#: calls are more than a trial or a test makes.
MANY_CALLS = 100
LONG_US = 10e6
#: A recorded step this much slower than an unprofiled call is worth a line.
MUCH_LONGER = 1.1


def find_compile_slower(comparison: Comparison) -> Finding | None:
    """Found only when the verdict says so and B is known to be the compiled form. The saving is that of going back."""
    verdict, form = comparison.verdict, comparison.b.form
    if verdict.result != "slower" or not (form and form.name == "compiled"):
        return None
    if verdict.a_wall_us is None or verdict.b_wall_us is None or verdict.speedup is None:
        raise AssertionError("a verdict of slower comes with both walls and their ratio")
    # CUDA graphs, where they may save more than was lost, or nobody knows. On a CPU there are none.
    side, settings = comparison.b, comparison.b.settings
    graphs_us = None if side.unprofiled_idle_us is None else graphs_saving(side)
    may_gain = graphs_us is None or graphs_us > verdict.b_wall_us - verdict.a_wall_us
    advice = None
    if settings and settings.device != "cpu" and settings.mode == "default" and may_gain:
        advice = run_again(settings, {"mode": "reduce-overhead"})
    # By the ratio within rounds, on which the verdict stands: the medians need not differ by the same.
    saving_us = verdict.b_wall_us * (1 - verdict.speedup)
    return Finding(CompileSlower(verdict.a_wall_us, verdict.b_wall_us), saving_us, advice)


def find_cold_start(comparison: Comparison) -> Finding | None:
    """Found when B is faster, and an empty cache costs over 10 s and over 100 calls to make up for.

    What would be gained is a start, not a call: what a warm cache saved of one, where both were started in fresh
    processes. What a smaller scope would save was not measured, and is not promised.
    """
    warm = next((each for each in comparison.break_even if each.kind == "compiled_warm_cache"), None)
    cold = next((each for each in comparison.break_even if each.kind != "compiled_warm_cache"), None)
    verdict = comparison.verdict
    if cold is None or verdict.result != "faster" or cold.calls is None or math.isinf(cold.calls):
        return None
    if verdict.a_wall_us is None or verdict.speedup is None:
        raise AssertionError("a verdict of faster comes with both")
    if cold.calls < MANY_CALLS or cold.startup_us < LONG_US:
        return None
    # Not measured, or the cache that was kept gave nothing.
    saving_us = None
    if warm and warm.cache_hits and cold.source == warm.source == "fresh_process":
        saving_us = max(cold.startup_us - warm.startup_us, 0.0)
    settings = comparison.b.settings
    changes, warm_start = scope_changes(comparison.b), None
    if warm is not None and warm.calls is not None and not math.isinf(warm.calls):
        warm_start = WarmStart(warm.startup_us, warm.calls, warm.calls_at_most, warm.calls_ci95)
    statement = ColdStart(
        startup_us=cold.startup_us,
        calls=cold.calls,
        calls_at_most=cold.calls_at_most,
        calls_ci95=cold.calls_ci95,
        call_saving_us=verdict.a_wall_us * (1 - 1 / verdict.speedup),
        medians_apart_us=verdict.a_wall_us - verdict.b_wall_us if verdict.b_wall_us is not None else None,
        warm=warm_start,
        warm_was_measured=saving_us is not None,
        can_start_anew=not comparison.b.ranks and not (settings and settings.in_program),
        can_be_regional=bool(changes),
    )
    advice = run_again(comparison.b.settings, changes) if changes else None
    return Finding(statement, advice=advice, start_saving_us=saving_us)


def find_profiler_distortion(comparison: Comparison) -> Finding | None:
    """Found when a recorded step took over 10 % longer than the unprofiled call."""
    slowed = {
        side.label: Slowdown(side.label, slowdown)
        for side in (comparison.a, comparison.b)
        if (slowdown := side.recorded_ratio) is not None and slowdown > MUCH_LONGER
    }
    on_gpu = comparison.a.analysis.gpu is not None or comparison.b.analysis.gpu is not None
    return Finding(ProfilerDistortion(list(slowed.values()), on_gpu)) if slowed else None
