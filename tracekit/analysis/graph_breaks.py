"""What does a graph break cost?"""

from dataclasses import replace

from tracekit.model.compilation import CompiledRegions, Diagnostics


def with_break_costs(found: Diagnostics, regions: CompiledRegions, steps: int) -> Diagnostics:
    """Each break with the host time per step outside of graphs around it, as regions of so many steps show it."""
    breaks = []
    for each in found.breaks:
        outside = [region.outside_us for region in regions.regions if region.id in each.frames]
        breaks.append(replace(each, per_step_us=sum(outside) / steps if outside else None))
    return replace(found, breaks=tuple(breaks))
