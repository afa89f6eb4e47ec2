"""Did something run eager: what was to be compiled, most of the GPU's work, or a component with much to fuse?"""

import math
from collections import defaultdict

from tracekit.comparison.commands import run_again
from tracekit.comparison.judging.fairness import ran_eager
from tracekit.comparison.matching.groups_by_name import time_of
from tracekit.comparison.modules import is_within
from tracekit.comparison.waiting import most_slowed
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.statements.advice import ListScopes
from tracekit.statements.findings.compiling import FellBack, HitRecompileLimit, LittleCompiled, UncompiledComponent

#: Compiled code that launches less than this share of GPU time is little.
LITTLE = 0.5
#: Less than this share of the call's GPU time is not worth a line.
WORTH_SAYING = 0.03
#: Families of kernels that the compiler fuses.
FUSIBLE = ("pointwise", "normalization", "reduction", "copy")


def find_eager_fallback(comparison: Comparison) -> Finding | None:
    """Found when B fell back to eager, in whole or in part. The share of GPU time outside of compiled code is told
    where it was recorded."""
    side, settings = comparison.b, comparison.b.settings
    parts = side.diagnostics.unmeant_fallbacks if side.diagnostics else ()
    if not parts and not ran_eager(side):
        return None
    limit = next((part for part in parts if part.kind == "recompile_limit"), None)
    part = limit or (parts[0] if parts else None)
    regions = side.entering.regions if side.entering else None
    # Sizes that change are compiled once with --dynamic; for the rest an error says where it happens.
    of_sizes = limit is not None and settings is not None and not settings.dynamic
    advice = run_again(settings, {"dynamic": "True"}) if of_sizes else run_again(settings, more=("--fullgraph",))
    share = None if regions is None or regions.gpu_share is None else 1 - regions.gpu_share
    kind = HitRecompileLimit if limit else FellBack
    return Finding(kind(side.label, part, ran_eager(side), share), advice=advice)


def find_little_compiled(comparison: Comparison) -> Finding | None:
    """Found when B ran compiled code, and over half of GPU time was launched elsewhere."""
    side = comparison.b
    regions = side.entering.regions if side.entering else None
    share = regions.gpu_share if regions is not None and regions.count else None
    if share is None or share >= LITTLE or side.entering is None or side.entering.window.kind == "span":
        return None
    scope = side.settings.scope if side.settings else None
    statement = LittleCompiled(side=side.label, compiled_share=share, busy_us=side.busy_us, scope=scope)
    # Lists what --scope takes.
    return Finding(statement, advice=ListScopes("tracekit workloads") if side.settings else None)


def find_uncompiled_component(comparison: Comparison) -> Finding | None:
    """Found when kernels that could be fused take over 3 % of B's GPU time in a component, or what is left of one, that
    was not compiled.

    Needs the modules of kernels (provenance) and fused groups in this very run. The saving is of all that the wider
    scope compiles: their GPU time, and the idle time before their kernels. What the compiled modules kept of kernels
    that could be fused is no bound: on an H200 FLUX's other components gained 22 ms where that was 13.
    """
    side, settings = comparison.b, comparison.b.settings
    fused = [group for group in comparison.groups if group.kind == "fused" and group.how == "provenance"]
    before = math.fsum(time_of(group.a) for group in fused)
    kept = math.fsum(time_of(group.b) for group in fused) / before if before else 1.0
    if kept >= 1 or not side.busy_us or settings is None or settings.scope == "all" or len(side.components) < 2:
        return None
    component, us = max(_fusible_time(comparison).items(), key=lambda each: each[1], default=("", 0.0))
    if not component or us < WORTH_SAYING * side.busy_us:
        return None
    whole = {"scope": "all"}
    statement = UncompiledComponent(
        component=component,
        partly_compiled=any(each.compiled for each in side.components if each.name == component),
        fusible_us=us,
        busy_us=side.busy_us,
        kept_share=kept,
        others=tuple(each.name for each in side.components if not each.compiled and each.name != component),
    )
    return Finding(statement, _eager_us(side), run_again(settings, whole), whole)


def _eager_us(side: Side) -> float | None:
    """Time per call of what compiled code did not launch, at most; None where it is not known what launched it."""
    entering = side.entering
    if entering is None or entering.regions is None or entering.regions.gpu_share is None or side.busy_us is None:
        return None
    idle_us = entering.regions.idle_us
    recorded_us = entering.gpu.idle_us - idle_us if entering.gpu and idle_us is not None else math.inf
    all_idle_us = side.recorded_idle_us if side.unprofiled_idle_us is None else side.unprofiled_idle_us
    waits_us = min(most_slowed(side) * recorded_us / max(entering.window.steps, 1), all_idle_us or 0.0)
    return (1 - entering.regions.gpu_share) * side.busy_us + waits_us


def _fusible_time(comparison: Comparison) -> dict[str, float]:
    """GPU time per call of B's kernels that could be fused, by the one component that all modules of a group are in,
    where none of them was compiled."""
    kernels, components = comparison.b.analysis.kernels, comparison.b.components
    families = {each.name: each.family for each in kernels.by_name} if kernels else {}
    found: dict[str, float] = defaultdict(float)
    for group in comparison.groups:
        left: set[str | None] = set()
        for module in group.modules:
            within = next((each for each in components if is_within(module, each.name)), None)
            compiled = within is None or (within.compiled and not within.compiled_parts)
            for part in within.compiled_parts if within else ():
                compiled = compiled or is_within(module, part.removesuffix(".*"))
            left.add(within.name if within and not compiled else None)
        component = left.pop() if group.kind == "unchanged" and len(left) == 1 else None
        if component is not None:
            found[component] += time_of(each for each in group.b if families.get(each.name) in FUSIBLE)
    return found
