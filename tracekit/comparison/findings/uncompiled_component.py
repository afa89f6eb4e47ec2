"""Is a part of the model left out of the compiled scope that has much to fuse?"""

from __future__ import annotations

import math
from collections import defaultdict

from tracekit.comparison.commands import can_be_whole, profile_command
from tracekit.model.advice import Action
from tracekit.model.comparison import Comparison, Finding, KernelGroup, Side
from tracekit.model.run import Component

#: Less than this share of the call's GPU time is not worth a line.
WORTH_SAYING = 0.03
#: Families of kernels that the compiler fuses.
FUSIBLE = ("pointwise", "normalization", "reduction", "copy")


def find_uncompiled_component(comparison: Comparison) -> Finding | None:
    """Found when kernels that could be fused take over 3 % of B's GPU time in a component, or what is left of one, that
    was not compiled.

    Needs the modules of kernels (provenance) and fused groups in this very run: the saving supposes that the component
    would keep the same share of such kernels' time as the compiled ones did.
    """
    side, kept = comparison.b, _kept_share(comparison)
    if kept is None or kept >= 1 or not side.busy_us or side.settings is None or not _knows_parts(side):
        return None
    by_component = _fusible_time(comparison)
    if not by_component:
        return None
    component = max(by_component, key=lambda each: by_component[each])
    us = by_component[component]
    if us < WORTH_SAYING * side.busy_us:
        return None
    return Finding(
        code="uncompiled_component",
        severity="info",
        facts={
            "component": component,
            "partly_compiled": _is_partly_compiled(side, component),
            "fusible_us": us,
            "busy_us": side.busy_us,
            "kept_share": kept,
        },
        saving_us=us * (1 - kept),
        action=Action("run_again", profile_command(side.settings, {"scope": "all"})),
        changes={"scope": "all"},
    )


def _knows_parts(side: Side) -> bool:
    return side.settings is not None and can_be_whole(side.settings) and len(side.components) > 1


def _kept_share(comparison: Comparison) -> float | None:
    """How much of their time fused groups kept; None without any."""
    fused = [group for group in comparison.groups if group.kind == "fused" and group.how == "provenance"]
    before = math.fsum(member.total_us for group in fused for member in group.a)
    return math.fsum(member.total_us for group in fused for member in group.b) / before if before else None


def _is_partly_compiled(side: Side, component: str) -> bool:
    return any(each.compiled for each in side.components if each.name == component)


def _fusible_time(comparison: Comparison) -> dict[str, float]:
    """GPU time per call of B's kernels that could be fused, by component, in modules that were not compiled."""
    kernels = comparison.b.analysis.kernels
    families = {each.name: each.family for each in kernels.by_name} if kernels else {}
    found: dict[str, float] = defaultdict(float)
    for group in comparison.groups:
        component = _component(group, comparison.b.components) if group.kind == "unchanged" else None
        if component is not None:
            found[component] += math.fsum(each.total_us for each in group.b if families.get(each.name) in FUSIBLE)
    return found


def _component(group: KernelGroup, components: tuple[Component, ...]) -> str | None:
    """The component that all of the group's modules are in, and none of them compiled; None where there are several,
    or none is known."""
    modules = [place for place in group.where if ":" not in place]
    left = {_left_in(each, components) for each in modules}
    return left.pop() if len(left) == 1 else None


def _left_in(module: str, components: tuple[Component, ...]) -> str | None:
    """The component of a module that is not compiled; None for one that is, or is in no component."""
    within = next((each for each in components if _is_within(module, each.name)), None)
    if within is None or (within.compiled and not within.compiled_parts):
        return None
    compiled = any(_is_within(module, part.removesuffix(".*")) for part in within.compiled_parts)
    return None if compiled else within.name


def _is_within(module: str, part: str) -> bool:
    return module == part or module.startswith(f"{part}.")
