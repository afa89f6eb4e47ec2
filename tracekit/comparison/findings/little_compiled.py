"""Does most of the GPU's work come from outside of compiled code?"""

from __future__ import annotations

from tracekit.model.action import Action
from tracekit.model.comparison import Comparison, Finding

#: Compiled code that launches less than this share of GPU time is little.
LITTLE = 0.5


def find_little_compiled(comparison: Comparison) -> Finding | None:
    """Found when B ran compiled code, and over half of GPU time was launched elsewhere."""
    side = comparison.b
    regions = side.entering.regions if side.entering else None
    share = regions.gpu_share if regions is not None and regions.count else None
    if share is None or share >= LITTLE or side.entering is None or side.entering.window.kind == "span":
        return None
    return Finding(
        code="little_compiled",
        severity="warning",
        facts={
            "side": side.label,
            "compiled_share": share,
            "busy_us": side.busy_us,
            "scope": side.settings.scope if side.settings else None,
        },
        saving_us=None,
        # Lists what --scope takes.
        action=Action("list_scopes", "tracekit workloads") if side.settings else None,
    )
