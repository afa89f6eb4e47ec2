"""Was code compiled more than once before the form was quiet?"""

from __future__ import annotations

from tracekit.comparison.commands import profile_command
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
    seconds = sum(each.seconds or 0.0 for each in again)
    dearest = max(again, key=lambda each: each.seconds or 0.0)
    of_size = any(each.because[0].is_of_size for each in again)
    settings = side.settings if of_size and side.settings and not side.settings.dynamic else None
    return Finding(
        code="compiled_again",
        severity="warning" if len(again) >= MANY else "info",
        title=f"{side.label} was compiled again {len(again)} times before it was quiet",
        evidence=(
            f"{dearest.function or 'A function'} ({dearest.where or 'place not told'}): {dearest.because[0].words}."
            f"{_took(dearest.seconds, seconds, len(again))}"
        ),
        saving_us=None,
        advice=profile_command(settings, ANY_SIZES) if settings else None,
        changes=ANY_SIZES if settings else {},
    )


def _took(dearest: float | None, seconds: float, count: int) -> str:
    if count == 1 or dearest is None:
        return f" It took {seconds:.1f} s."
    return f" It took {dearest:.1f} s, all together {seconds:.1f} s."
