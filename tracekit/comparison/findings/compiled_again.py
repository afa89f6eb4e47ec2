"""Was code compiled more than once before the form was quiet?"""

from __future__ import annotations

from tracekit.comparison.commands import profile_command
from tracekit.model.action import Action
from tracekit.model.comparison import Comparison, Finding

#: So many are worth an action: torch gives up at eight of one function.
MANY = 4
ANY_SIZES = {"dynamic": "True"}


def find_compiled_again(comparison: Comparison) -> Finding | None:
    """Found when B was compiled again while it was warmed up with the sizes that were timed, with the check that cost
    most. Any size is advised where sizes were what failed."""
    side = comparison.b
    again = [each for each in side.diagnostics.recompiles if each.phase == "warm-up"] if side.diagnostics else []
    if not again or (side.diagnostics and side.diagnostics.warmed_up_at):
        return None
    dearest = max(again, key=lambda each: each.seconds or 0.0)
    of_size = any(each.because[0].is_of_size for each in again)
    settings = side.settings if of_size and side.settings and not side.settings.dynamic else None
    return Finding(
        code="compiled_again",
        severity="warning" if len(again) >= MANY else "info",
        facts={
            "side": side.label,
            "times": len(again),
            "function": dearest.function,
            "where": dearest.where,
            "failed_check": dearest.because[0].facts,
            "dearest_s": dearest.seconds,
            "whole_s": sum(each.seconds or 0.0 for each in again),
        },
        saving_us=None,
        action=Action("run_again", profile_command(settings, ANY_SIZES)) if settings else None,
        changes=ANY_SIZES if settings else {},
    )
