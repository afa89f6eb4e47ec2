"""Does compiling cost so much at the start that it takes many calls to pay?"""

from __future__ import annotations

import math

from tracekit.comparison.commands import profile_command
from tracekit.model.comparison import Comparison, Finding
from tracekit.model.run import Settings
from tracekit.model.startup import BreakEven
from tracekit.numbers import count, duration

#: From so many calls on, and so long a start-up, it is worth a line.
MANY_CALLS = 1000
LONG_US = 30e6


def find_cold_start(comparison: Comparison) -> Finding | None:
    """Found when B is faster, and an empty cache costs over 30 s and over 1,000 calls to make up for.

    What would be gained is a start, not a call, so there is no saving; the advice is what shortens it.
    """
    cold = next((each for each in comparison.break_even if each.kind != "compiled_warm_cache"), None)
    if cold is None or comparison.verdict.result != "faster" or cold.calls is None or math.isinf(cold.calls):
        return None
    if cold.calls < MANY_CALLS or cold.startup_us < LONG_US:
        return None
    settings = comparison.b.settings
    scope = _smaller_scope(settings)
    return Finding(
        code="cold_start",
        severity="info",
        title=f"Compiling pays after {count(math.ceil(cold.calls))} calls",
        evidence=(
            f"Starting up compiled takes {duration(cold.startup_us)} more than steady calls, and each call saves "
            f"{_saved(comparison)}.{_warm(comparison)} For fewer calls in one process keep Inductor's cache between "
            "processes (TORCHINDUCTOR_CACHE_DIR, or torch.compiler.save_cache_artifacts), or compile one block of many."
        ),
        saving_us=None,
        advice=profile_command(settings, {"scope": scope}) if settings and scope else None,
    )


def _saved(comparison: Comparison) -> str:
    verdict = comparison.verdict
    if verdict.a_wall_us is None or verdict.b_wall_us is None:
        raise AssertionError("a verdict of faster comes with both walls")
    return duration(verdict.a_wall_us - verdict.b_wall_us)


def _warm(comparison: Comparison) -> str:
    """What a warm cache makes of it, where that was measured."""
    warm: BreakEven | None = next((each for each in comparison.break_even if each.kind == "compiled_warm_cache"), None)
    if warm is None or warm.calls is None or math.isinf(warm.calls):
        return ""
    return f" With a warm cache it takes {duration(warm.startup_us)} and pays after {count(math.ceil(warm.calls))}."


def _smaller_scope(settings: Settings | None) -> str | None:
    """`regional`, where the workload has blocks that are compiled once for all and the scope was another."""
    return "regional" if settings and settings.workload == "flux" and settings.scope != "regional" else None
