"""Does compiling cost so much at the start that it takes many calls to pay?"""

from __future__ import annotations

import math

from tracekit.comparison.commands import can_be_regional, run_again
from tracekit.model.comparison import Comparison, Finding

#: From so many calls on, and so long a start-up, it is worth a line: nobody waits ten seconds unawares, and a hundred
#: calls are more than a trial or a test makes.
MANY_CALLS = 100
LONG_US = 10e6


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
    pays = warm is not None and warm.calls is not None and not math.isinf(warm.calls)
    regional = can_be_regional(comparison.b)
    return Finding(
        code="cold_start",
        severity="info",
        facts={
            "startup_us": cold.startup_us,
            "calls": cold.calls,
            "calls_at_most": cold.calls_at_most,
            # By the speed-up, as the number of calls is; and by how much the medians differ.
            "call_saving_us": verdict.a_wall_us * (1 - 1 / verdict.speedup),
            "medians_apart_us": verdict.a_wall_us - verdict.b_wall_us if verdict.b_wall_us is not None else None,
            "warm": (
                {"startup_us": warm.startup_us, "calls": warm.calls, "calls_at_most": warm.calls_at_most}
                if warm and pays
                else None
            ),
            "warm_was_measured": saving_us is not None,
            "can_be_regional": regional,
        },
        saving_us=None,
        action=run_again(comparison.b.settings, {"scope": "regional"}) if regional else None,
        start_saving_us=saving_us,
    )
