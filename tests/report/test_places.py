from __future__ import annotations

from dataclasses import replace

from tracekit.model.comparison import KernelGroup
from tracekit.report.sections.groups import clipped_before, distinct_places, group_place

GROUP = KernelGroup("fused", "6 kernels -> 1 Triton", "provenance", (), (), -5, -10.0, ())


def at(*where: str, sizes: str = "") -> KernelGroup:
    return replace(GROUP, where=where, sizes=sizes)


def test_a_group_is_placed_by_its_innermost_modules():
    assert group_place(at("blocks.*", "blocks.*.norm2", "model.py:12")) == "blocks.*.norm2"
    assert group_place(at("blocks.*.attn.norm_q", "blocks.*.attn.norm_k", "blocks.*.attn")) == (
        "blocks.*.attn.norm_q, .norm_k"
    )
    assert group_place(at("a.x", "b.y", "c.z", "d.w", "e.v")) == "a.x, b.y, c.z, 2 more"


def test_a_group_without_modules_is_placed_by_its_line_and_one_without_lines_nowhere():
    assert group_place(at("model.py:12", "model.py:14")) == "model.py:12"
    assert group_place(at()) == ""


def test_a_module_whose_name_begins_like_another_s_is_not_inside_it():
    assert group_place(at("blocks.*.norm1", "blocks.*.norm1_context")) == "blocks.*.norm1, .norm1_context"


def test_groups_of_one_label_and_place_are_told_apart_by_sizes_and_then_by_number():
    groups = [at("norm", sizes="4x8"), at("norm", sizes="4x16"), at("norm", sizes="4x16"), at("act", sizes="4x8")]
    assert distinct_places(groups) == ("norm · 4x8", "norm · 4x16 · 1 of 2 alike", "norm · 4x16 · 2 of 2 alike", "act")
    assert distinct_places([at(), replace(at(), label="other")]) == ("", "")


def test_long_places_lose_their_beginning():
    assert clipped_before("transformer.blocks.*.norm", 12) == "…ocks.*.norm"
    assert clipped_before("norm", 12) == "norm"
