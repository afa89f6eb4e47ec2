from __future__ import annotations

from dataclasses import replace

from tracekit.model.comparison import Comparison, KernelGroup, Waterfall, WaterfallPart
from tracekit.report.sections import waterfall as section
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


def test_places_are_told_apart_once_however_many_parts_are_called_alike(monkeypatch):
    asked = []

    def once(groups):
        asked.append(len(groups))
        return tuple(f"place {at}" for at in range(len(groups)))

    monkeypatch.setattr(section, "distinct_places", once)
    groups = tuple(KernelGroup("fused", "2 -> 1", "names", (), (), -1, -float(at), ()) for at in range(8))
    parts = tuple(WaterfallPart("gpu", each.label, each.delta_us) for each in groups)
    comparison = replace(timed_comparison(), groups=groups, waterfall=Waterfall("trace", 99.0, 71.0, parts, 0.0))
    assert part_labels(comparison)[7] == "GPU: 2 -> 1, place 7"
    assert asked == [8]
    # Where no label is repeated nobody asks.
    assert part_labels(replace(comparison, waterfall=Waterfall("trace", 9.0, 9.0, parts[:1], 0.0))) == ("GPU: 2 -> 1",)
    assert asked == [8]
