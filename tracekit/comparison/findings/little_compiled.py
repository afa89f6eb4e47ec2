"""Does most of the GPU's work come from outside of compiled code?"""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Finding
from tracekit.numbers import duration, percent

#: Compiled code that launches less than this share of GPU time is little.
LITTLE = 0.5


def find_little_compiled(comparison: Comparison) -> Finding | None:
    """Found when B ran compiled code, and over half of GPU time was launched elsewhere."""
    side = comparison.b
    regions = side.entering.regions if side.entering else None
    share = regions.gpu_share if regions is not None and regions.count else None
    if share is None or share >= LITTLE or side.entering is None or side.entering.window.kind == "span":
        return None
    busy = f" of {duration(side.busy_us)} a step" if side.busy_us is not None else ""
    scope = f" The scope was {side.settings.scope}." if side.settings else ""
    return Finding(
        code="little_compiled",
        severity="warning",
        title=f"Compiled code does {percent(share, 0)} of the GPU's work in {side.label}",
        evidence=f"{percent(1 - share, 0)} of GPU time{busy} was launched outside of compiled code.{scope}",
        saving_us=None,
        # Lists what --scope takes.
        advice="tracekit workloads" if side.settings else None,
    )
