"""Did something run eager that was to be compiled?"""

from __future__ import annotations

from typing import Any

from tracekit.comparison.commands import profile_command
from tracekit.comparison.judging.fairness import ran_eager
from tracekit.model.action import Action
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.model.compilation import EagerFallback


def find_eager_fallback(comparison: Comparison) -> Finding | None:
    """Found when B fell back to eager, in whole or in part. The share of GPU time outside of compiled code is told
    where it was recorded."""
    side = comparison.b
    parts = side.diagnostics.fallbacks if side.diagnostics else ()
    if not parts and not ran_eager(side):
        return None
    limit = next((part for part in parts if part.kind == "recompile_limit"), None)
    part = limit or (parts[0] if parts else None)
    return Finding(
        code="recompile_limit" if limit else "eager_fallback",
        severity="warning",
        facts={
            "side": side.label,
            "part": _part(part) if part else None,
            "ran_eager": ran_eager(side),
            "eager_gpu_share": _eager_share(side),
        },
        saving_us=None,
        action=_action(side, limited=limit is not None),
    )


def _part(part: EagerFallback) -> dict[str, Any]:
    return {"kind": part.kind, "function": part.function, "where": part.where, "reason": part.reason}


def _eager_share(side: Side) -> float | None:
    """The share of GPU time that was launched outside of compiled code; None where that is not known."""
    regions = side.entering.regions if side.entering else None
    return None if regions is None or regions.gpu_share is None else 1 - regions.gpu_share


def _action(side: Side, *, limited: bool) -> Action | None:
    """Sizes that change are compiled once with --dynamic; for the rest an error says where it happens."""
    if side.settings is None:
        return None
    if limited and not side.settings.dynamic:
        return Action("run_again", profile_command(side.settings, {"dynamic": "True"}))
    return Action("run_again", profile_command(side.settings, more=("--fullgraph",)))
