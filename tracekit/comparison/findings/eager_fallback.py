"""Did something run eager that was to be compiled?"""

from __future__ import annotations

from tracekit.comparison.commands import profile_command
from tracekit.comparison.fallbacks import place, ran_eager
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.model.compilation import FallbackKind
from tracekit.numbers import percent

TITLES: dict[FallbackKind, str] = {
    "recompile_limit": "{} was compiled so often that torch gave up: it runs eager",
    "skipped": "Dynamo passed over {}: it runs eager",
    "error": "{} could not be compiled: it runs eager",
}


def find_eager_fallback(comparison: Comparison) -> Finding | None:
    """Found when B fell back to eager, in whole or in part. The share of GPU time outside of compiled code is told
    where it was recorded."""
    side = comparison.b
    parts = side.diagnostics.fallbacks if side.diagnostics else ()
    if not parts and not ran_eager(side):
        return None
    limit = next((part for part in parts if part.kind == "recompile_limit"), None)
    part = limit or (parts[0] if parts else None)
    title = TITLES[part.kind].format(place(part)) if part else f"{side.label} ran eager"
    return Finding(
        code="recompile_limit" if limit else "eager_fallback",
        severity="warning",
        title=title,
        evidence=f"{part.reason if part else 'torch.compile gave no reason'}. {_share(side)}",
        saving_us=None,
        advice=_advice(side, limited=limit is not None),
    )


def _share(side: Side) -> str:
    if ran_eager(side):
        return "No recorded step entered compiled code."
    regions = side.entering.regions if side.entering else None
    if regions is None or regions.gpu_share is None:
        return "The rest ran compiled."
    return f"{percent(1 - regions.gpu_share, 0)} of GPU time was launched outside of compiled code."


def _advice(side: Side, *, limited: bool) -> str | None:
    """Sizes that change are compiled once with --dynamic; for the rest an error says where it happens."""
    if side.settings is None:
        return None
    if limited and not side.settings.dynamic:
        return profile_command(side.settings, {"dynamic": "True"})
    return profile_command(side.settings, more=("--fullgraph",))
