"""Does compiling cost so much at the start that it takes many calls to pay?"""

from __future__ import annotations

import math

from tracekit.comparison.commands import can_be_regional, profile_command
from tracekit.model.comparison import Comparison, Finding
from tracekit.model.startup import BreakEven
from tracekit.numbers import calls_span, duration

#: From so many calls on, and so long a start-up, it is worth a line: nobody waits ten seconds unawares, and a hundred
#: calls are more than a trial or a test makes.
MANY_CALLS = 100
LONG_US = 10e6


def find_cold_start(comparison: Comparison) -> Finding | None:
    """Found when B is faster, and an empty cache costs over 10 s and over 100 calls to make up for.

    What would be gained is a start, not a call: what a warm cache saved of one, where both were started in fresh
    processes. What a smaller scope would save was not measured, and is not promised.
    """
    cold = next((each for each in comparison.break_even if each.kind != "compiled_warm_cache"), None)
    if cold is None or comparison.verdict.result != "faster" or cold.calls is None or math.isinf(cold.calls):
        return None
    if cold.calls < MANY_CALLS or cold.startup_us < LONG_US:
        return None
    settings, warm = comparison.b.settings, _warm_start(comparison)
    regional, saving_us = can_be_regional(comparison.b), _saving(cold, warm)
    return Finding(
        code="cold_start",
        severity="info",
        title=f"Compiling pays after {calls_span(cold.calls, cold.calls_at_most)} calls",
        evidence=(
            f"Starting up compiled takes {duration(cold.startup_us)} more than steady calls, and each call saves "
            f"{_saved(comparison)}.{_warm(warm)} For fewer calls in one process keep Inductor's cache between "
            "processes (TORCHINDUCTOR_CACHE_DIR, or torch.compiler.save_cache_artifacts)"
            f"{', or compile one block of many' if regional else ''}."
            f"{'' if saving_us is not None else ' What a warm cache saves was not measured: --startup does.'}"
        ),
        saving_us=None,
        advice=profile_command(settings, {"scope": "regional"}) if settings and regional else None,
        start_saving_us=saving_us,
    )


def _warm_start(comparison: Comparison) -> BreakEven | None:
    return next((each for each in comparison.break_even if each.kind == "compiled_warm_cache"), None)


def _saving(cold: BreakEven, warm: BreakEven | None) -> float | None:
    """None where it was not measured, or the cache that was kept gave nothing."""
    if warm is None or cold.source != "fresh_process" or warm.source != "fresh_process" or not warm.cache_hits:
        return None
    return max(cold.startup_us - warm.startup_us, 0.0)


def _saved(comparison: Comparison) -> str:
    """By the speed-up, as the number of calls is; said where the two medians differ by something else."""
    verdict = comparison.verdict
    if verdict.a_wall_us is None or verdict.speedup is None:
        raise AssertionError("a verdict of faster comes with both")
    saved = duration(verdict.a_wall_us * (1 - 1 / verdict.speedup))
    between = duration(verdict.a_wall_us - verdict.b_wall_us) if verdict.b_wall_us is not None else saved
    return saved if between == saved else f"{saved} (by the speed-up of the rounds; the medians are {between} apart)"


def _warm(warm: BreakEven | None) -> str:
    """What a warm cache makes of it, where that was measured."""
    if warm is None or warm.calls is None or math.isinf(warm.calls):
        return ""
    pays = calls_span(warm.calls, warm.calls_at_most)
    return f" With a warm cache it takes {duration(warm.startup_us)} and pays after {pays}."
