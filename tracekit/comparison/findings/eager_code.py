"""Did something run eager that was to be compiled, or is little of the GPU's work that of compiled code?"""

from __future__ import annotations

from tracekit.comparison.commands import profile_command
from tracekit.comparison.judging.fairness import ran_eager
from tracekit.model.action import Action
from tracekit.model.comparison import Comparison, Finding

#: Compiled code that launches less than this share of GPU time is little.
LITTLE = 0.5


def find_eager_fallback(comparison: Comparison) -> Finding | None:
    """Found when B fell back to eager, in whole or in part. The share of GPU time outside of compiled code is told
    where it was recorded."""
    side, settings = comparison.b, comparison.b.settings
    parts = side.diagnostics.fallbacks if side.diagnostics else ()
    if not parts and not ran_eager(side):
        return None
    limit = next((part for part in parts if part.kind == "recompile_limit"), None)
    part = limit or (parts[0] if parts else None)
    regions = side.entering.regions if side.entering else None
    action = None
    if settings:
        # Sizes that change are compiled once with --dynamic; for the rest an error says where it happens.
        sizes = limit is not None and not settings.dynamic
        command = profile_command(settings, {"dynamic": "True"} if sizes else {}, () if sizes else ("--fullgraph",))
        action = Action("run_again", command)
    return Finding(
        code="recompile_limit" if limit else "eager_fallback",
        severity="warning",
        facts={
            "side": side.label,
            "part": (
                {"kind": part.kind, "function": part.function, "where": part.where, "reason": part.reason}
                if part
                else None
            ),
            "ran_eager": ran_eager(side),
            "eager_gpu_share": None if regions is None or regions.gpu_share is None else 1 - regions.gpu_share,
        },
        saving_us=None,
        action=action,
    )


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
