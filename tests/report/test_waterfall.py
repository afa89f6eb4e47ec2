from __future__ import annotations

from dataclasses import replace

from tracekit.model.comparison import Comparison, KernelGroup, Waterfall, WaterfallPart
from tracekit.report.sections.waterfall import part_labels

from .conftest import timed_comparison


def test_parts_that_are_called_alike_are_followed_by_their_modules():
    groups = tuple(
        KernelGroup("fused", label, "provenance", (), (), -1, us, (place,))
        for label, place, us in (("2 -> 1", "a.norm1", -3.0), ("2 -> 1", "a.norm2", -2.0), ("3 -> 1", "b", -1.0))
    )
    parts = (*(WaterfallPart("gpu", each.label, each.delta_us) for each in groups), WaterfallPart("idle", "gc", 0.0))
    comparison: Comparison = replace(
        timed_comparison(), groups=groups, waterfall=Waterfall("trace", 10.0, 4.0, parts, 0.0)
    )
    assert part_labels(comparison) == (
        "GPU: 2 -> 1, a.norm1",
        "GPU: 2 -> 1, a.norm2",
        "GPU: 3 -> 1",
        "idle: garbage collection",
    )
