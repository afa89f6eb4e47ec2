"""Does compiling cost so much at the start that it takes many calls to pay?"""

from __future__ import annotations

import math
from typing import Any

from tracekit.comparison.commands import can_be_regional, profile_command
from tracekit.model.advice import Action
from tracekit.model.comparison import Comparison, Finding
from tracekit.model.timing import BreakEven

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
        facts={
            "startup_us": cold.startup_us,
            "calls": cold.calls,
            "calls_at_most": cold.calls_at_most,
            **_saved(comparison),
            "warm": _warm(warm),
            "warm_was_measured": saving_us is not None,
            "can_be_regional": regional,
        },
        saving_us=None,
        action=(
            Action("run_again", profile_command(settings, {"scope": "regional"})) if settings and regional else None
        ),
        start_saving_us=saving_us,
    )


def _warm_start(comparison: Comparison) -> BreakEven | None:
    return next((each for each in comparison.break_even if each.kind == "compiled_warm_cache"), None)


def _saving(cold: BreakEven, warm: BreakEven | None) -> float | None:
    """None where it was not measured, or the cache that was kept gave nothing."""
    if warm is None or cold.source != "fresh_process" or warm.source != "fresh_process" or not warm.cache_hits:
        return None
    return max(cold.startup_us - warm.startup_us, 0.0)


def _saved(comparison: Comparison) -> dict[str, float | None]:
    """What a call saves by the speed-up, as the number of calls is, and what the medians are apart."""
    verdict = comparison.verdict
    if verdict.a_wall_us is None or verdict.speedup is None:
        raise AssertionError("a verdict of faster comes with both")
    apart_us = verdict.a_wall_us - verdict.b_wall_us if verdict.b_wall_us is not None else None
    return {"call_saving_us": verdict.a_wall_us * (1 - 1 / verdict.speedup), "medians_apart_us": apart_us}


def _warm(warm: BreakEven | None) -> dict[str, Any] | None:
    """What a warm cache makes of it; None where that was not measured, or it never pays."""
    if warm is None or warm.calls is None or math.isinf(warm.calls):
        return None
    return {"startup_us": warm.startup_us, "calls": warm.calls, "calls_at_most": warm.calls_at_most}
