"""Was anything compiled inside the timed calls?"""

from __future__ import annotations

from tracekit.comparison.commands import profile_command
from tracekit.model.comparison import Comparison, Finding


def find_recompiled_during_timing(comparison: Comparison) -> Finding | None:
    """Found when a side's timed calls hold compilation, so that its times are not of compiled code alone."""
    for side in (comparison.a, comparison.b):
        count = side.form.compilation.during_timing if side.form and side.form.compilation else 0
        if count:
            command = profile_command(side.settings, mode=side.settings.mode) if side.settings else None
            return Finding(
                code="recompiled_during_timing",
                severity="warning",
                title=f"{side.label} compiled again while it was timed",
                evidence=f"{count} compilations ran inside timed calls, so the times are not of compiled code alone.",
                saving_us=None,
                advice=f"TORCH_LOGS=recompiles {command}" if command else None,
            )
    return None
